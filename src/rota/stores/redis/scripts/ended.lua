-- How many jobs ended lately in a final state, by queue and worker: [now, state, span, from, passed, look], of those that ended
-- at `from` or later, where that is not nil, and of those without the first `passed`. Looks at so many of them. Answers when
-- the last of them ended, and how many of those that ended then were looked at, nil at the end; and the numbers, [queue,
-- worker, jobs]. It only reads.

local state, span, from, passed, look = unpack(input, 2, 6)
local key = finished_key(state)
local start = from and string.format('%.0f', from) or before_moment(now - span)
local ended = call('ZRANGEBYSCORE', key, start, '+inf', 'WITHSCORES', 'LIMIT', passed, look)
local ids, last, alike = {}, from, passed
for at = 1, #ended, 2 do
  ids[#ids + 1] = ended[at]
  local moment = tonumber(ended[at + 1])
  alike = moment == last and alike + 1 or 1
  last = moment
end
fetch(ids)
local groups, told = {}, {}
for _, id in ipairs(ids) do
  local job = load(id)
  if job then
    local name = job[QUEUE] .. '\0' .. (job[WORKER] or '')
    local group = groups[name] or {job[QUEUE], job[WORKER], 0}
    group[3] = group[3] + 1
    groups[name] = group
  end
end
for _, group in pairs(groups) do told[#told + 1] = record(unpack(group, 1, 3)) end
local more = #ids == look
return done(array(3) .. pack(more and last or nil, more and alike or nil) .. list(told))
