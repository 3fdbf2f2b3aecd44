-- Queue again what may have room by now, and look at the first queued jobs:
-- [now, worker, queues, limit, names, sizes, overrides, openings, slots, wider].
--
-- `names` are those of the limits that the worker knows, `sizes` has the size of each by its name, most at once or else the
-- spacing of starts, as these are with the `overrides`, texts by name. At most so many openings are made, and the ring is for
-- others once more jobs are freed than there are slots. `wider` has [name, key, factor] of rooms that free more than they have
-- room for.
--
-- Answers nil where the worker is not known; the overrides in force where they are others, and nothing was done; else nil and
-- how many openings were made, whether jobs of other queues were freed, 0 where rooms are left that are to be looked at or else
-- how long until time makes room where no job is told, whether those rooms are to be opened before any job is told, and the
-- jobs: [id, task, args].

local worker, queues, limit, names, sizes, overrides, openings, slots, wider = unpack(input, 2, 10)

local AGAIN = 60000000 -- a room that holds jobs is looked at after so long, whatever else happens
local OPENED, FREED, TOGETHER = 100, 200, 1000 -- rooms in an opening, jobs of a room and a queue, jobs in this script

local factors, asked = {}, {}
for _, each in ipairs(wider) do factors[room_of(each)] = each[3] end
for _, queue in ipairs(queues) do asked[queue] = true end

local freed, elsewhere, opened, rooms = 0, false, 0, {}

-- The lines of a room by queue, of all tasks or of these.
local function lines_of(room, tasks)
  local by_queue = {}
  for _, field in ipairs(call('HKEYS', room_key(room))) do
    local queue, task = field:match('^([^%z]*)%z(.*)$')
    if queue and (not tasks or tasks[task]) then
      by_queue[queue] = by_queue[queue] or {}
      table.insert(by_queue[queue], field .. '\0' .. room)
    end
  end
  return by_queue
end

-- Queue again the first so many jobs in these lines, which are of one queue.
local function free(room, queue, line_names, many)
  local ids, taken = first_in_line('held', line_names, many)
  for key, of_it in pairs(taken) do
    call('ZREMRANGEBYRANK', key, 0, of_it - 1)
    count_held(room, queue, lines[key].name:sub(#queue + 2, -#room - 2), -of_it)
  end
  fetch(ids)
  for _, id in ipairs(ids) do
    local job = load(id)
    if job and job[STATE] == 'held' then -- somebody may delete keys by hand
      count(job, -1)
      job[STATE] = 'queued'
      place(id, job)
      save(id, job)
    end
  end
  freed = freed + #ids
  elsewhere = elsewhere or not asked[queue]
end

-- Free what a room may have room for, and answer when to look at it again, and when time opens it. One of a limit that this
-- worker does not know, although it knows the tasks, holds nobody any more.
local function open(room)
  local is, many, tasks = look_into(room)
  local size = sizes[is.name]
  local opening, look = opens_at(size, is, is.running, is.started), now + AGAIN
  if not size then
    many, tasks, look = FREED, tasks_of(worker), now
  elseif opening == now then
    local space = size[1] and size[1] - is.running or 1
    many = math.min(space * (factors[room] or 1), FREED)
    if many < space then look = now end
  elseif opening then
    look = math.min(look, opening)
  end
  if many then
    for queue, line_names in pairs(lines_of(room, tasks)) do free(room, queue, line_names, many) end
  end
  return look, opening
end

-- Answers whether there may be more to open.
local function open_rooms(rooms)
  local notes, more = {}, #rooms == OPENED
  for _, room in ipairs(rooms) do
    if freed >= TOGETHER then
      more = true
      break
    end
    local look, opening = open(room)
    notes[room] = {look, opening}
    more = more or look <= now
  end
  settle()
  settle_rooms()
  for room, note in pairs(notes) do note_room(room, note[1], note[2]) end
  opened = opened + 1
  return more
end

if call('HEXISTS', WORKERS, worker) == 0 then return done(pack(nil)) end
local present = other_overrides(overrides)
if present then return done(record(present, nil)) end

rooms = due_rooms(names, worker, OPENED)
local function told(due, jobs)
  local next_in = #jobs == 0 and until_opening(names) or nil
  return array(2) .. pack(nil) .. record(opened, elsewhere, #rooms > 0 and 0 or next_in, due, jobs)
end

while #rooms > 0 and opened < openings and freed < TOGETHER do
  rooms = open_rooms(rooms) and due_rooms(names, worker, OPENED) or {}
end
rung = elsewhere or freed > slots
if (#rooms > 0 and opened < openings) or limit == 0 then
  return done(told(#rooms > 0, {}))
end

local jobs = {}
local ids, taken = first_in_line('queued', queues, limit)
fetch(ids)
for _, id in ipairs(ids) do
  local job = load(id)
  if job then
    local args = job[ARGS]
    if args == true then args = call('HGET', texts_key(id), ARGS) end
    jobs[#jobs + 1] = {id, job[TASK], args}
  else -- somebody deleted keys by hand
    for key in pairs(taken) do call('ZREM', key, id) end
  end
end
return done(told(false, jobs))
