-- Take back up to so many jobs of workers whose lease ran out, and forget those that hold none any more: [now, limit].
-- Answers the jobs, each as `Lost` has its fields, and how long until the next lease runs out.

local limit = input[2]
local lost = {}

local function lose(worker, name, id)
  local job = owned(worker, id)
  if not job then return end
  local attempt = job[CLAIM] - job[EXCUSED]
  local who = name == '' and worker or name .. ' (' .. worker .. ')'
  local reason = 'worker lost: the lease of ' .. who .. ' ran out'
  note(id, job, 'lost', now - (job[CLAIMED] or now), 'WorkerLost', reason, '')
  if job[CANCELLING] then
    conclude(id, job, 'cancelled', reason)
  elseif attempt < job[MOST] then
    put_back(id, job, reason)
  else
    conclude(id, job, 'failed', reason)
  end
  lost[#lost + 1] = record(id, job[TASK], job[QUEUE], attempt, worker, job[STATE], name)
end

for _, worker in ipairs(call('ZRANGEBYSCORE', LEASES, '-inf', now, 'LIMIT', 0, 1000)) do
  if #lost == limit then break end
  local row = call('HGET', WORKERS, worker)
  local name = row and cmsgpack.unpack(row)[NAME] or ''
  local ids = call('HRANDFIELD', running_key(worker), limit - #lost) -- one that is held up may hold many
  fetch(ids)
  for _, id in ipairs(ids) do lose(worker, name, id) end
  settle()
  if call('EXISTS', running_key(worker)) == 0 then forget_worker(worker) end
end

local next_lease = call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2]
return done(array(2) .. list(lost) .. pack(next_lease and math.max(0, next_lease - now) or nil))
