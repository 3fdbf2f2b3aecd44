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

local stale = {}
for _, ended in ipairs(ends) do
  local id, claim = ended[1], ended[2]
  local job = load(id)
  if job and job[STATE] == 'running' and job[WORKER] == worker and job[CLAIM] == claim then
    finish(id, job, unpack(ended, 3, 13))
  else
    stale[#stale + 1] = id
  end
end

local claimed, taken, ids = {}, {}, {}
if limit > 0 and call('HEXISTS', WORKERS, worker) == 1 then
  local next_waiting = walk_lines('queued', queues, limit)
  while #claimed < limit do
    local id, key = next_waiting()
    if not id then break end
    taken[key] = taken[key] or {}
    table.insert(taken[key], id)
    local job = load(id)
    if job and job[STATE] == 'queued' then -- else it was lost to whoever deletes keys by hand
      count(job, -1)
      job[STATE], job[WORKER], job[CLAIMED], job[CLAIM] = 'running', worker, now, job[CLAIM] + 1
      job[ROOM] = nil
      if job[FLEETING] then drop_key(id, job) end
      count(job, 1)
      claimed[#claimed + 1] = tell(id, job, save(id, job))
      ids[#ids + 1] = id
    end
  end
  for key, gone in pairs(taken) do in_pieces('ZREM', key, gone) end
  in_pieces('SADD', running_key(worker), ids)
end

return done(array(2) .. pack(stale) .. list(claimed))
