-- Jobs with all that belongs to each, in the order of their ids: [now, after, limit, bytes]. Fewer where they have more bytes
-- than that together, but one at least. Answers each with its attempts. It only reads.

local after, limit, most = input[2], input[3], input[4]
local told, weight = {}, 0
local ids = call('ZRANGEBYLEX', ALL, after and '(' .. after or '-', '+', 'LIMIT', 0, limit)
fetch(ids)
for _, id in ipairs(ids) do
  local job, packed = load(id)
  if job then
    local whole = array(2) .. tell(id, job, packed) .. list(call('LRANGE', attempts_key(id), 0, -1))
    weight = weight + #whole
    if weight > most and #told > 0 then break end
    told[#told + 1] = whole
  end
end
return done(list(told))
