-- Write what became of attempts, and claim: [now, worker, ends, queues, limit]. An end is
-- [id, claim, outcome, took, keep, wait, excuse, looks, reason, result, kind, message, trace].
-- Answers the ids of those attempts that did not count, and the jobs that were claimed.

local worker, ends, queues, limit = input[2], input[3], input[4], input[5]

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

local stale, ids = {}, {}
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

local claimed = {}

-- Claim a job that was met, unless it is gone: somebody may delete keys by hand.
local function claim(id)
  local job = load(id)
  if not job or job[STATE] ~= 'queued' then return end
  count(job, -1)
  job[STATE], job[WORKER], job[CLAIMED], job[CLAIM], job[ROOM] = 'running', worker, now, job[CLAIM] + 1, nil
  if job[FLEETING] then drop_key(id, job) end
  place(id, job)
  claimed[#claimed + 1] = tell(id, job, save(id, job))
end

if limit > 0 and call('HEXISTS', WORKERS, worker) == 1 then
  local next_waiting = walk_lines('queued', queues, limit)
  repeat
    local met = {}
    while #claimed + #met < limit do
      local id, key = next_waiting()
      if not id then break end
      remove(key, id)
      met[#met + 1] = id
    end
    fetch(met)
    for _, id in ipairs(met) do claim(id) end
  until #met == 0 or #claimed == limit
end

return done(array(2) .. pack(stale) .. list(claimed))
