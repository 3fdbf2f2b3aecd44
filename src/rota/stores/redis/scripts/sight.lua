-- Walk along sorted sets of jobs in which they stand by when they are due: [now, walks], a walk being [key, id, due, many],
-- where id and due are of the job to go on behind, or nil. Looks at so many jobs of each. Answers of each walk the id and the
-- due time of the last of them, nil at the end, and when the first of each queue and task that it met is due: [queue, task,
-- due]. It only reads.

local walks = input[2]

-- How many stand before the one to go on with. Where the last one is gone, those due as it was are looked at again.
local function passed(key, id, due)
  if not id then return 0 end
  local rank = call('ZRANK', key, id)
  return rank and rank + 1 or call('ZCOUNT', key, '-inf', before_moment(due))
end

local steps, ids = {}, {}
for number, walk in ipairs(walks) do
  local key = base .. ':' .. walk[1]
  local from = passed(key, walk[2], walk[3])
  steps[number] = call('ZRANGE', key, from, from + walk[4] - 1, 'WITHSCORES')
  for at = 1, #steps[number], 2 do ids[#ids + 1] = steps[number][at] end
end
fetch(ids)

local told = {}
for number, step in ipairs(steps) do
  local seen, firsts = {}, {}
  for at = 1, #step, 2 do
    local packed = known[step[at]]
    if packed then
      local task, queue = group_of(packed)
      local name = queue .. '\0' .. task
      if not seen[name] then
        seen[name] = true
        firsts[#firsts + 1] = record(queue, task, tonumber(step[at + 1]))
      end
    end
  end
  local ended = #step < 2 * walks[number][4]
  told[number] = array(3) .. pack(not ended and step[#step - 1] or nil, not ended and tonumber(step[#step]) or nil) .. list(firsts)
end
return done(list(told))
