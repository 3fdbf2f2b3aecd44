-- A step along what finds jobs by their state, in no order: [now, filter, kind, keys, at, cursor, before, floor]. The kind is
-- "HSCAN" where these are hashes, else "ZSCAN"; `at` is the number of the key to go on with, at its `cursor`. Answers where to
-- go on: its number, or nil at the end, and its cursor; and the ids of those that the filter names, of which all sort after
-- `floor` and before `before`, where these are not nil. It only reads.

local filter, kind, keys, at, cursor, before, floor = unpack(input, 2, 8)
local looked, ids = 0, {}
repeat
  local scanned = call(kind, base .. ':' .. keys[at], cursor, 'COUNT', 500)
  local members = scanned[2]
  for number = 1, #members, 2 do
    local id = members[number]
    if (not before or id < before) and (not floor or id > floor) then ids[#ids + 1] = id end
  end
  looked, cursor = looked + #members / 2 + 1, scanned[1]
  if cursor == '0' then at = at + 1 end
until looked >= 500 or at > #keys

local found = ids
if filter[2] or filter[3] or filter[5] then
  local matches = matching(filter)
  found = {}
  fetch(ids)
  for _, id in ipairs(ids) do
    if matches(id) then found[#found + 1] = id end
  end
end
return done(record(at <= #keys and at or nil, cursor, found))
