-- What runs, of the first of these workers: [now, workers, many]. Once it has looked at so many jobs it looks at no other
-- worker. Answers of how many workers it told, and how many jobs of each queue and task they have: [worker, queue, task, jobs,
-- due], where the last is when the first of them was due. It only reads.

local workers, many = input[2], input[3]
local told, looked, asked = {}, 0, 0
for _, worker in ipairs(workers) do
  if looked > many then break end
  asked = asked + 1
  local groups = {}
  for _, packed in ipairs(call('HVALS', running_key(worker))) do
    looked = looked + 1
    local job = cmsgpack.unpack(packed)
    local name = job[QUEUE] .. '\0' .. job[TASK]
    local group = groups[name] or {job[QUEUE], job[TASK], 0, job[DUE]}
    group[3], group[4] = group[3] + 1, math.min(group[4], job[DUE])
    groups[name] = group
  end
  for _, group in pairs(groups) do told[#told + 1] = record(worker, unpack(group)) end
end
return done(array(2) .. pack(asked) .. list(told))
