-- How many jobs came in within the last `span`, by queue: [now, span, after, look], of those whose ids sort after `after`.
-- Where that is empty, of those whose ids were made up to five seconds before that, as clocks differ: an id begins with the
-- millisecond of its making. Looks at so many of them. Answers the id to go on behind, nil at the end, and the numbers.
-- It only reads.

local span, after, look = unpack(input, 2, 4)
if after == '' then
  local made = math.max(0, math.floor((now - span) / 1000) - 5000)
  after = string.format('%07x%05x', math.floor(made / 2 ^ 20), made % 2 ^ 20)
end
local ids = call('ZRANGEBYLEX', ALL, '(' .. after, '+', 'LIMIT', 0, look)
fetch(ids)
local queues, told = {}, {}
for _, id in ipairs(ids) do
  local job = load(id)
  if job and job[CREATED] > now - span then queues[job[QUEUE]] = (queues[job[QUEUE]] or 0) + 1 end
end
for queue, many in pairs(queues) do told[#told + 1] = record(queue, many) end
return done(array(2) .. pack(#ids == look and ids[#ids] or nil) .. list(told))
