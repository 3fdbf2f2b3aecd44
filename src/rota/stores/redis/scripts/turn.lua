-- Write what became of attempts, and claim: [now, worker, succeeded, ends, queues, limit].
--
-- Attempts that succeeded, with jobs to be kept, are [ids, claims, tooks, results]. Every other end is
-- [id, claim, outcome, took, keep, wait, excuse, looks, reason, result, kind, message, trace].
-- Answers the ids of those attempts that did not count, and the jobs that were claimed.

local worker, succeeded, ends, queues, limit = unpack(input, 2, 6)
local running = running_key(worker)
local stale, claimed = {}, {}

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

-- Plain jobs by their headings: how many were moved.
local function count_plain(moved, from, to)
  for head, many in pairs(moved) do
    local task, queue = cmsgpack.unpack(head)
    count_many(queue, task, from, -many)
    count_many(queue, task, to, many)
  end
end

local function finish_plain()
  local ids, claims, tooks, results = unpack(succeeded)
  local history, at, moved = finished_key('succeeded'), pack(now), {}
  for first = 1, #ids, 1000 do
    local last = math.min(first + 999, #ids)
    for offset, packed in ipairs(call('HMGET', running, unpack(ids, first, last))) do
      local number = first + offset - 1
      local id, claim, result = ids[number], claims[number], results[number]
      local head, claims_before
      if packed and not known[id] then head, claims_before = heading(packed) end
      if head and claims_before + 1 == claim and not (result and #result > LONG) then
        packed = packed .. at .. pack(tooks[number], result)
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
  local begun, moved = pack(worker, now), {}
  fetch(ids)
  for _, id in ipairs(ids) do
    local packed = known[id]
    local head, claims_before
    if packed then head, claims_before = heading(packed) end
    if head then
      local whole = packed .. string.char(claims_before + 1) .. begun
      known[id], unsaved[id] = whole, whole
      start(running, id, whole)
      moved[head] = (moved[head] or 0) + 1
      claimed[#claimed + 1] = '\147\217\32' .. id .. '\192' .. packed
    elseif packed then
      local job = load(id)
      count(job, -1)
      job[STATE], job[WORKER], job[CLAIMED], job[CLAIM], job[ROOM] = 'running', worker, now, job[CLAIM] + 1, nil
      if job[FLEETING] then drop_key(id, job) end
      place(id, job)
      claimed[#claimed + 1] = tell(id, job, save(id, job))
    end
  end
  count_plain(moved, 'queued', 'running')
end

if #succeeded > 0 then finish_plain() end
if #ends > 0 then finish_rest() end
if limit > 0 and call('HEXISTS', WORKERS, worker) == 1 then
  repeat
    local wanted = limit - #claimed
    local ids, taken = first_in_line('queued', queues, wanted)
    for key, many in pairs(taken) do call('ZREMRANGEBYRANK', key, 0, many - 1) end
    claim(ids)
  until #ids < wanted or #claimed == limit
end
return done(array(2) .. pack(stale) .. list(claimed))
