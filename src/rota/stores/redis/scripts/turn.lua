-- Write what became of attempts, and claim: [now, worker, succeeded, ends, queues, limit, closes, rooms, places].
--
-- Attempts that succeeded, with jobs to be kept, are [ids, claims, tooks, results]. Every other end is [id, claim, outcome,
-- took, keep, wait, excuse, looks, reason, result, kind, message, trace]. The rooms of limits that outcomes close are [name,
-- key, span]. Where a claim is ample, `rooms` are [name, key, enough], how many places may be taken in each before, and
-- `places` those that the jobs of each task take, by its name. Answers the ids of those attempts that did not count, and the
-- jobs that were claimed.

local worker, succeeded, ends, queues, limit, closes, rooms, places = unpack(input, 2, 9)
local running = running_key(worker)
local stale, claimed = {}, {}
call('HDEL', OFFERS, worker) -- it is awake, and asks for as much as it has room for

local function finish(id, job, outcome, took, keep, wait, excuse, looks, reason, result, kind, message, trace)
  if FINAL[outcome] and not keep then
    displace(id, job)
    forget(id, job)
    return
  end
  if outcome ~= 'succeeded' then note(id, job, outcome, took, kind, message, trace) end
  if FINAL[outcome] then
    put(id, job, RESULT, result)
    conclude(id, job, outcome, reason, took)
  elseif job[CANCELLING] then
    conclude(id, job, 'cancelled', 'cancelled while running', took)
  else
    job[EXCUSED] = job[EXCUSED] + excuse
    job[LOOKS] = looks > 0 and looks or nil
    put_back(id, job, reason, wait)
  end
end

-- A plain job with places up to its number of claims, and what stands behind that once it has ended and gave them back.
local function without_places(packed, given, ended_at)
  local high, low = packed:byte(-2, -1)
  local tail = packed:sub(-high * 256 - low)
  local gave = given[tail]
  if not gave then
    local worker, claimed, _, _, _, places = cmsgpack.unpack(tail)
    gave = {claim = -#tail - 1, ended = pack(worker, claimed) .. ended_at, places = places, many = 0}
    given[tail] = gave
  end
  gave.many = gave.many + 1
  return packed:sub(1, gave.claim), gave.ended
end

local function finish_plain()
  local ids, claims, tooks, results = unpack(succeeded)
  local history, ended_at, moved, given = finished_key('succeeded'), pack(now), {}, {}
  for first = 1, #ids, 1000 do
    local last = math.min(first + 999, #ids)
    for offset, packed in ipairs(call('HMGET', running, unpack(ids, first, last))) do
      local number = first + offset - 1
      local id, claim, result = ids[number], claims[number], results[number]
      local head, claims_before
      if packed and not known[id] then head, claims_before = heading(packed) end
      if head and claims_before + 1 == claim and not (result and #result > LONG) then
        local ended, mark, zero = ended_at, packed:byte(-9, -8)
        if mark == 0xd3 and zero == 0 then packed, ended = without_places(packed, given, ended_at) end -- as PLACED begins
        packed = packed .. ended .. pack(tooks[number], result)
        known[id], unsaved[id] = packed, packed
        stop(running, id)
        add(history, now, id)
        moved[head] = (moved[head] or 0) + 1
      else
        ends[#ends + 1] = {id, claim, 'succeeded', tooks[number], true, nil, nil, nil, nil, result}
      end
    end
  end
  count_plain(moved, 'running', 'succeeded')
  for _, gave in pairs(given) do give_back(gave.places, gave.many) end
end

local function finish_rest()
  local ids = {}
  for number, ended in ipairs(ends) do ids[number] = ended[1] end
  fetch(ids)
  for _, ended in ipairs(ends) do
    local id, claim = ended[1], ended[2]
    local job = load(id)
    if job and job[STATE] == 'running' and job[WORKER] == worker and job[CLAIM] == claim then
      finish(id, job, unpack(ended, 3, 13))
    else
      stale[#stale + 1] = id
    end
  end
end

-- Claim jobs that were taken off their lines, save those that are gone: somebody may delete keys by hand.
local function claim(ids)
  local moved, manners, alike = {}, {}, not places and manner(worker)
  fetch(ids)
  for _, id in ipairs(ids) do
    local packed = known[id]
    local head, claims
    if packed then head, claims = heading(packed) end
    if head then
      local how = alike or manners[head]
      if not how then
        how = manner(worker, places[cmsgpack.unpack(head)])
        manners[head] = how
      end
      claimed[#claimed + 1] = begin_plain(running, id, packed, claims, how)
      moved[head] = (moved[head] or 0) + 1
    elseif packed then
      local job = load(id)
      claimed[#claimed + 1] = begin(worker, id, job, alike or manner(worker, places[job[TASK]]))
    end
  end
  count_plain(moved, 'queued', 'running')
  for head, how in pairs(manners) do
    if how.places then take_places(how.places, moved[head]) end
  end
end

-- Let none into a room for so long from now.
local function close(room, span)
  remember(room, now + span, 'closed', math.max(now + span, look_into(room).closed or 0))
end

-- Whether all rooms are far from full, as sizes are that were set at run time where there are such.
local function are_ample()
  settle_rooms()
  for _, each in ipairs(rooms) do
    local room, most, enough = look_into(room_of(each)), tonumber(call('HGET', LIMITS, each[1])), each[3]
    if most then enough = math.max(math.floor(most / 2), most - 100) - limit end
    if room.running > enough or room.held > 0 or (room.closed or 0) > now then return false end
  end
  return true
end

if #succeeded > 0 then finish_plain() end
if #ends > 0 then finish_rest() end
for _, each in ipairs(closes or {}) do close(room_of(each), each[3]) end
if limit > 0 and call('HEXISTS', WORKERS, worker) == 1 and (not rooms or are_ample()) then
  repeat
    local wanted = limit - #claimed
    local ids, taken = first_in_line('queued', queues, wanted)
    for key, many in pairs(taken) do call('ZREMRANGEBYRANK', key, 0, many - 1) end
    claim(ids)
  until #ids < wanted or #claimed == limit
end
return done(array(2) .. pack(stale) .. list(claimed))
