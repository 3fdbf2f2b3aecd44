-- Queue up to so many scheduled jobs whose time has come, the earliest first: [now, limit].
-- Answers how many, and how long until the next is due.

local promoted = 0
local due = call('ZRANGEBYSCORE', SCHEDULED, '-inf', now, 'LIMIT', 0, input[2])
fetch(due)
for _, id in ipairs(due) do
  local job = load(id)
  if job and job[STATE] == 'scheduled' then
    displace(id, job)
    job[STATE] = 'queued'
    place(id, job)
    save(id, job)
    promoted = promoted + 1
  else
    remove(SCHEDULED, id)
  end
end

settle()
local next_due = call('ZRANGE', SCHEDULED, 0, 0, 'WITHSCORES')[2]
return done(record(promoted, next_due and math.max(0, next_due - now) or nil))
