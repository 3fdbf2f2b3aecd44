-- Change jobs that wait: [now, ids, only, priority, queue, run_at, delay, exact], where `only` has the states that it is for, or is
-- nil, and what else is nil stays as it is. Answers the state of each before and after: nil for one that is not there.

local ids, only, priority, queue, run_at, delay, exact = unpack(input, 2, 8)

local able = {}
for _, state in ipairs(only or {'scheduled', 'queued', 'held'}) do able[state] = true end

-- What a limit held is queued, for it to be looked at by what it is now. A job that goes back to the scheduled ones counts on
-- no limit any more.
local function edit(id, job)
  local due = run_at or delay and now + delay
  displace(id, job)
  job[PRIORITY], job[QUEUE], job[DUE] = priority or job[PRIORITY], queue or job[QUEUE], due or job[DUE]
  if due then job[EXACT] = exact end
  if due and due > now then
    job[STATE], job[ROOM] = 'scheduled', nil
  elseif due or job[STATE] ~= 'scheduled' then
    job[STATE] = 'queued'
  end
  place(id, job)
  save(id, job)
end

local told = {}
fetch(ids)
for _, id in ipairs(ids) do
  local job = load(id)
  local before = job and job[STATE] or nil
  if able[before or ''] and before ~= 'running' and not FINAL[before] then edit(id, job) end
  told[#told + 1] = record(before, job and job[STATE] or nil)
end
return done(list(told))
