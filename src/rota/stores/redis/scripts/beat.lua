-- Renew a worker's lease, store progress, and look at the jobs that it reports: [now, worker, reports], a report being
-- [id, claim, progress]. Answers whether it is known, the ids of those that it has lost and of those that it is to stop, and
-- which version of the layout a process must know.

local worker, reports = input[2], input[3]
local row = call('HGET', WORKERS, worker)
local lost, cancelled = {}, {}
if row then
  call('ZADD', LEASES, now + cmsgpack.unpack(row)[LEASE], worker)
  local ids = {}
  for number, report in ipairs(reports) do ids[number] = report[1] end
  fetch(ids)
  for _, report in ipairs(reports) do
    local id, claim, progress = report[1], report[2], report[3]
    local job = load(id)
    if not (job and job[STATE] == 'running' and job[WORKER] == worker and job[CLAIM] == claim) then
      lost[#lost + 1] = id
    else
      if progress then
        put(id, job, PROGRESS, progress)
        save(id, job)
      end
      if job[CANCELLING] then cancelled[#cancelled + 1] = id end
    end
  end
end
return done(record(row ~= false, lost, cancelled, tonumber(call('HGET', VERSION, 'needs'))))
