-- Add jobs: [now, jobs], each as `NewJob` has its fields. One whose id is known is left as it is; one whose key is held is not
-- added. Answers the holders of such keys, each after the number of the job in the batch.

local jobs = input[2]
local ids, holders = {}, {}
for number, new in ipairs(jobs) do ids[number] = new[1] end
fetch(ids)

for number, new in ipairs(jobs) do
  local id, task, queue, args, priority, run_at, delay, most, key, fleeting, context = unpack(new, 1, 11)
  local job = {task, queue, nil, priority, most, now, nil, run_at or now + delay, 0, 0}
  if not load(id) then
    job[KEY] = key
    local taken = holder(job)
    if taken then
      table.insert(holders, number - 1)
      table.insert(holders, taken)
    else
      put(id, job, ARGS, args)
      put(id, job, CONTEXT, context)
      job[FLEETING] = fleeting or nil
      job[STATE] = job[DUE] > now and 'scheduled' or 'queued'
      hold_key(id, job)
      if key then call('ZADD', keyed_key(key), 0, id) end
      place(id, job)
      save(id, job)
      add(ALL, 0, id)
    end
  end
end

return done(pack(holders))
