-- Look at jobs from the newest on, and tell those that a filter names: [now, filter, before, look, limit, bytes]. Looks at
-- `look` of them, or fewer once `limit` were told, or they have more bytes together; only at those whose ids sort before
-- `before`, if that is not nil. Where the filter has a key, only jobs that have it are looked at. Answers how many it looked
-- at, the id to go on before, or nil where there are no more, and the jobs. It only reads.

local filter, before, look, limit, most = unpack(input, 2, 6)
local key = filter[4]
local index, stem, newest, oldest = ALL, '', '+', '-'
if key then index, stem, newest, oldest = KEYED, keyed(key, ''), '(' .. key .. '\1', '[' .. keyed(key, '') end
local found = matching(filter)
local told, looked, weight = {}, 0, 0
local last
local ids = call('ZREVRANGEBYLEX', index, before and '(' .. stem .. before or newest, oldest, 'LIMIT', 0, look)
if key then
  for at, member in ipairs(ids) do ids[at] = member:sub(#stem + 1) end
end
fetch(ids)
for _, id in ipairs(ids) do
  local job, packed = found(id)
  if job then
    told[#told + 1] = tell(id, job, packed)
    weight = weight + #told[#told]
  end
  last, looked = id, looked + 1
  if #told == limit or weight > most then break end
end
if looked == #ids and #ids < look then last = nil end
return done(array(3) .. pack(looked, last) .. list(told))
