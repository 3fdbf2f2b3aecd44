-- Claim what may start of some queued jobs, and have limits hold what meets a full one:
-- [now, worker, ids, kinds, needs, sizes, overrides, names, slots, at once, limit].
--
-- The jobs come in the order promised, as `candidates` told them; one that has moved since is passed over. `kinds` has for each
-- its number in `needs`, which has the rooms that jobs need, [name, key], or 0 for none. `names`, `sizes` and `overrides` are
-- as there. The rule is that of `rota.rules.admission`, which has the reasons.
--
-- Answers nil where the worker is not known, false where other overrides are in force, and nothing was done; else the jobs that
-- were claimed, how many were held, looked at and still there, the rooms [name, key] with room that had held jobs which were
-- not let in there, and how long until time makes room, or 0 where one of these is to be looked at now.

local worker, ids, kinds, needs, sizes, overrides, names, slots, at_once, limit = unpack(input, 2, 11)

local AGAIN = 60000000 -- a room that holds jobs is looked at after so long, whatever else happens
local KEEP = 3600000000 -- the last start of a rate is remembered for so long beyond its interval, in case the rate becomes slower
local SPARE = 100 -- so many places of a room, or half of them where that is less, are for jobs that begin at once

if call('HEXISTS', WORKERS, worker) == 0 then return done(pack(nil)) end
if other_overrides(overrides) then return done(pack(false)) end

local rooms = {} -- those that were looked into

local function room(place)
  local name = room_of(place)
  local is = rooms[name]
  if not is then
    is = look_into(name)
    is.room, is.place, is.size, is.let = name, place, sizes[is.name], 0
    if is.size then
      local open, most = opens_at(is.size, is, is.running, is.started) == now, is.size[1]
      if most then
        is.left = open and most - is.running or 0
        is.left_ahead = math.max(math.floor(most / 2), most - SPARE) - is.running
      else
        is.left, is.left_ahead = open and 1 or 0, 0
      end
    end
    rooms[name] = is
  end
  return is
end

-- What jobs of one kind need, and how they are claimed.
local function kind_of(needed)
  local kind, places = {rooms = {}}, {}
  for _, place in ipairs(needed) do
    kind.rooms[#kind.rooms + 1] = room(place)
    if sizes[place[1]][1] then places[#places + 1] = place end
  end
  kind.how = manner(worker, places)
  return kind
end

local none = {rooms = {}, how = manner(worker)}
local made = {}
local function kind(number)
  if number == 0 then return none end
  made[number] = made[number] or kind_of(needs[number])
  return made[number]
end

local candidates = {}
fetch(ids)
for number, id in ipairs(ids) do
  local job = load(id)
  if job and job[STATE] == 'queued' then 
    candidates[#candidates + 1] = {id = id, job = job, kind = kind(kinds[number]), needs = needs[kinds[number]]}
  end
end

-- The first room without a place, and whether one has none to spare for a job that does not begin at once.
local function met(needed)
  local crowded = false
  for _, is in ipairs(needed) do
    if is.left <= 0 then return is end
    crowded = crowded or is.left_ahead <= 0
  end
  return nil, crowded
end

local admitted, held, looked = {}, {}, 0
for _, candidate in ipairs(candidates) do
  if #admitted >= slots then break end
  local full, crowded = met(candidate.kind.rooms)
  if full then
    candidate.by = full
    held[#held + 1] = candidate
  elseif crowded and #admitted >= at_once then
    break
  else
    admitted[#admitted + 1] = candidate
    for _, is in ipairs(candidate.kind.rooms) do
      is.let, is.left, is.left_ahead = is.let + 1, is.left - 1, is.left_ahead - 1
    end
  end
  looked = looked + 1
end
if #admitted == slots then -- those without limits come in up to the first that has some
  while looked < #candidates and #admitted < limit and #candidates[looked + 1].kind.rooms == 0 do
    looked = looked + 1
    admitted[#admitted + 1] = candidates[looked]
  end
end

local diverted, again = {}, false

-- Whoever had been freed by a room and is not let in there has it looked at again: others may be held behind it.
local function divert(mark)
  local is = room(mark)
  if is.held > 0 then diverted[is.room] = mark end
end

local function claim()
  local claimed, moved = {}, {}
  for number, candidate in ipairs(admitted) do
    local id, job = candidate.id, candidate.job
    if job[ROOM] and not among(candidate.needs, job[ROOM]) then divert(job[ROOM]) end
    job[ROOM] = nil
    leave_line('queued', job[QUEUE], job[PRIORITY], id)
    local how, packed = candidate.kind.how, known[id]
    local head, claims = heading(packed)
    if head then
      claimed[number] = begin_plain(running_key(worker), id, packed, claims, how)
      moved[head] = (moved[head] or 0) + 1
      if how.places then how.many = how.many + 1 end
    else
      claimed[number] = begin(worker, id, job, how)
    end
  end
  count_plain(moved, 'queued', 'running')
  for _, each in pairs(made) do
    if each.how.places then take_places(each.how.places, each.how.many) end
  end
  return claimed
end

local function hold()
  for _, candidate in ipairs(held) do
    local id, job, by = candidate.id, candidate.job, candidate.by
    if job[ROOM] and room_of(job[ROOM]) ~= by.room then divert(job[ROOM]) end
    job[ROOM] = nil
    displace(id, job)
    job[STATE], job[ROOM] = 'held', by.place
    place(id, job)
    save(id, job)
    by.holding = true
  end
end

-- Note of the rooms what became of them, once it is written who runs and who is held.
local function note_rooms()
  for name, is in pairs(rooms) do
    local started = is.started
    if is.let > 0 and not is.size[1] then
      started = now
      remember(name, now + is.size[2] + KEEP, 'started', now, 'keep', now + is.size[2] + KEEP)
    end
    local opening, look = opens_at(is.size, is, is.running + is.let, started), is.look
    if diverted[name] and opening == now then
      look, again = now, true
    elseif is.holding then
      look = math.min(look or now + AGAIN, opening or now + AGAIN, now + AGAIN)
    elseif look and opening and opening ~= now then
      look = math.min(look, opening)
    end
    if is.holding or is.let > 0 or look ~= is.look then note_room(name, look, opening) end
  end
end

local claimed = claim()
hold()
settle()
settle_rooms()
note_rooms()
local marks = {}
for _, mark in pairs(diverted) do marks[#marks + 1] = mark end
rung = looked < #candidates or #marks > 0 -- another may take what was left here, or wait for what is opened now
return done(array(6) .. list(claimed) .. pack(#held, looked, #candidates, marks, again and 0 or until_opening(names)))
