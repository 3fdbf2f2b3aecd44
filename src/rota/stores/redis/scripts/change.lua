-- Cancel, retry or delete these jobs: [now, move, ids, only], where `only` has the states that it is for, or is nil.
-- Answers the state of each before and after: nil for one that is not there.

local move, ids, only = input[2], input[3], input[4]

local able = {}
for _, state in ipairs(only or {'scheduled', 'queued', 'held', 'running', 'succeeded', 'failed', 'cancelled'}) do
  able[state] = true
end
if move ~= 'cancel' then able.running = nil end

local function cancel(id, job)
  if job[STATE] == 'running' then
    job[CANCELLING] = true
    save(id, job)
  elseif not FINAL[job[STATE]] then
    conclude(id, job, 'cancelled', 'cancelled')
  end
end

-- One that was due keeps its place; all its attempts are before it.
local function retry(id, job)
  local state = job[STATE]
  if FINAL[state] then
    if holder(job) then return end
    hold_key(id, job)
  end
  displace(id, job)
  if FINAL[state] then
    put(id, job, RESULT, nil)
    put(id, job, PROGRESS, nil)
    job[WORKER], job[CLAIMED], job[FINISHED], job[TOOK] = nil, nil, nil, nil
  end
  if FINAL[state] or state == 'scheduled' or job[DUE] > now then job[DUE] = now end
  job[STATE], job[EXCUSED], job[LOOKS] = 'queued', job[CLAIM], nil
  place(id, job)
  save(id, job)
end

local function delete(id, job)
  displace(id, job)
  forget(id, job)
end

local moves = {cancel = cancel, retry = retry, delete = delete}
local told = {}
fetch(ids)
for _, id in ipairs(ids) do
  local job = load(id)
  local before = job and job[STATE] or nil
  if able[before or ''] then
    moves[move](id, job)
    job = load(id)
  end
  told[#told + 1] = record(before, job and job[STATE] or nil)
end
return done(list(told))
