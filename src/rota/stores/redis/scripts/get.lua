-- The jobs with these ids: [now, ids]. It only reads.

local told = {}
fetch(input[2])
for _, id in ipairs(input[2]) do
  local job, packed = load(id)
  if job then told[#told + 1] = tell(id, job, packed) end
end
return done(list(told))
