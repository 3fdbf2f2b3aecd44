-- Delete the first so many jobs in a final state that ended longer ago than an age: [now, state, age, limit]. Answers how many
-- it deleted, and whether there may be more.

local state, age, limit = input[2], input[3], input[4]
local key = finished_key(state)
local ids = call('ZRANGEBYSCORE', key, '-inf', before_moment(now - age), 'LIMIT', 0, limit)
local deleted = 0
fetch(ids)
for _, id in ipairs(ids) do
  local job = load(id)
  if job and job[STATE] == state then
    displace(id, job)
    forget(id, job)
    deleted = deleted + 1
  else
    remove(key, id)
  end
end
return done(record(deleted, #ids == limit))
