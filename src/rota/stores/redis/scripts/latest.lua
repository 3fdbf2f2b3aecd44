-- Those jobs in a final state that ended last: [now, state, passed, look], without so many that ended after them. Looks at so
-- many. Answers how many it met, and the jobs. It only reads.

local state, passed, look = unpack(input, 2, 4)
local ids = call('ZREVRANGE', finished_key(state), passed, passed + look - 1)
local told = {}
fetch(ids)
for _, id in ipairs(ids) do
  local job, packed = load(id)
  if job then told[#told + 1] = tell(id, job, packed) end
end
return done(array(2) .. pack(#ids) .. list(told))
