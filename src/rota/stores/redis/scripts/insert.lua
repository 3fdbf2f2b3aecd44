-- Add jobs: [now, jobs, alike]. One whose id is known is left as it is; one whose key is held is not added.
--
-- Each of `jobs` is as `NewJob` has its fields, with EXACT. In `alike` are plain jobs, put together where they have much in
-- common: [task, queue, priority, run_at, delay, ids, lengths], and no id is there twice. ARGV[2] has the head of each of these,
-- one behind the other: the packed fields before CREATED, of such a length. Answers the holders of keys, each after the number
-- of the job in `jobs`. It takes memory.

local jobs, alike = input[2], input[3]

local heads, head_at = ARGV[2], 1

local function add_plain(task, queue, priority, run_at, delay, ids, lengths)
  local due = run_at or now + delay
  local state = due > now and 'scheduled' or 'queued'
  local tail = pack(now, state, due)
  local key = state == 'queued' and line('queued', queue, priority) or SCHEDULED
  local added = 0
  fetch(ids)
  for number, id in ipairs(ids) do
    local head = heads:sub(head_at, head_at + lengths[number] - 1)
    head_at = head_at + lengths[number]
    if not known[id] then
      unsaved[id] = PLAIN_HEAD .. head .. tail
      add(key, due, id)
      add(ALL, 0, id)
      added = added + 1
    end
  end
  count_many(queue, task, state, added)
  if added > 0 then ring() end
end

local function add_one(new)
  local id, task, queue, args, priority, run_at, delay, most, key, fleeting, context, exact = unpack(new, 1, 12)
  if load(id) then return nil end
  local job = {}
  job[TASK], job[QUEUE], job[CLAIM], job[EXCUSED], job[PRIORITY], job[MOST] = task, queue, 0, 0, priority, most
  job[CREATED], job[DUE], job[EXACT], job[KEY], job[FLEETING] = now, run_at or now + delay, exact, key, fleeting or nil
  local taken = holder(job)
  if taken then return taken end
  put(id, job, ARGS, args)
  put(id, job, CONTEXT, context)
  job[STATE] = job[DUE] > now and 'scheduled' or 'queued'
  hold_key(id, job)
  if key then add(KEYED, 0, keyed(key, id)) end
  add(ALL, 0, id)
  place(id, job)
  save(id, job)
end

for _, each in ipairs(alike) do add_plain(unpack(each, 1, 7)) end
local holders = {}
for number, new in ipairs(jobs) do
  local taken = add_one(new)
  if taken then
    table.insert(holders, number - 1)
    table.insert(holders, taken)
  end
end
return done(pack(holders))
