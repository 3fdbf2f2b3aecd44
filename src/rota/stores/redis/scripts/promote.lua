-- Queue up to so many scheduled jobs whose time has come, the earliest first: [now, limit].
-- Answers how many, and how long until the next is due.

local promoted = 0
for _, id in ipairs(call('ZRANGEBYSCORE', SCHEDULED, '-inf', now, 'LIMIT', 0, input[2])) do
  local job = load(id)
  if job and job[STATE] == 'scheduled' then
    displace(id, job)
    job[STATE] = 'queued'
    place(id, job)
    save(id, job)
    promoted = promoted + 1
  else
    call('ZREM', SCHEDULED, id)
  end
end

local next_due = call('ZRANGE', SCHEDULED, 0, 0, 'WITHSCORES')[2]
return done(record(promoted, next_due and math.max(0, next_due - now) or nil))
