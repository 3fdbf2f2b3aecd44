-- What scripts share; what one needs of it stands before it when it is loaded. Each stretch between empty lines is needed by
-- those who name what it makes.
--
-- KEYS[1] is the base of every key, with the hash tag that keeps them together. ARGV[1] is an array in MessagePack: the moment
-- first (nil for the server's clock), then what the script says; ARGV[2] is what is packed already. It ends with `return done(…)`: only that writes what changed.

local base = KEYS[1]
local input = cmsgpack.unpack(ARGV[1])
local pack = cmsgpack.pack
local call = redis.call
local now = input[1]
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local SEAL = base .. ':seal'

-- Where the store is sealed nothing changes, save by scripts that say of themselves that they work beneath a seal.
local sealed = call('HGET', SEAL, 'words')
if sealed then return redis.error_reply('SEALED ' .. sealed) end

-- Where memory has run out the server lets nothing grow, save for a script that wrote something before: here nothing, first of all.
-- So workers keep their leases and end what they run, and jobs can be deleted, while those that say that they take memory are refused.
local eased = call('DEL', base .. ':nothing')

-- A job: an array in MessagePack under its id, which ends with the last field that is set. A text that is `true` here is long
-- and kept aside, so that a job that moves need not carry it. PLAIN says of a waiting job that nothing else depends on it: no key,
-- no text aside, no limit. What most jobs go through is then written behind the array, and nothing of that is taken apart: once
-- it is claimed CLAIM, WORKER and CLAIMED; once it has succeeded FINISHED, TOOK and RESULT as well. Where it has places of limits
-- meanwhile, PLAIN is nil, and behind all that stand PLACES and the length of what was written from WORKER on. `load` brings it together.
local TASK, QUEUE, CLAIM, EXCUSED, PLAIN, ARGS, PRIORITY, MOST, CREATED, STATE, DUE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
local WORKER, CLAIMED, FINISHED, TOOK, KEY, FLEETING, LOOKS, CONTEXT = 12, 13, 14, 15, 16, 17, 18, 19
local RESULT, REASON, PROGRESS, CANCELLING, ROOM, PLACES = 20, 21, 22, 23, 24, 25
local FIELDS = 25

local LONG = 1000

local PLAIN_HEAD = string.char(0x90 + DUE)

local FINAL = {succeeded = true, failed = true, cancelled = true}

-- -- packing ------------------------------------------------------------------------------------

-- The head of an array of so many packed values that follow.
local function array(many)
  if many < 16 then
    return string.char(0x90 + many)
  elseif many < 0x10000 then
    return string.char(0xdc, math.floor(many / 0x100), many % 0x100)
  end
  return string.char(0xdd, 0, math.floor(many / 0x10000) % 0x100, math.floor(many / 0x100) % 0x100, many % 0x100)
end

-- Values as an array, of which any may be nil.
local function record(...)
  return array(select('#', ...)) .. pack(...)
end

-- Packed values as an array.
local function list(packed)
  return array(#packed) .. table.concat(packed)
end

-- Call a command with many members, in pieces that Lua's stack has room for.
local function in_pieces(command, key, members)
  for at = 1, #members, 1000 do
    call(command, key, unpack(members, at, math.min(at + 999, #members)))
  end
end

-- -- keys ---------------------------------------------------------------------------------------

local function job_key(id) return base .. ':job:' .. id end

local function texts_key(id) return base .. ':texts:' .. id end

local function attempts_key(id) return base .. ':attempts:' .. id end

local function running_key(worker) return base .. ':running:' .. worker end

local function finished_key(state) return base .. ':finished:' .. state end

local function keyed_key(key) return base .. ':keyed:' .. key end

local ALL, KEYS_HELD, COUNTS = base .. ':all', base .. ':keys', base .. ':counts'
local SCHEDULED, SLEEPERS, RING = base .. ':scheduled', base .. ':sleepers', base .. ':ring'

-- The strangers are workers that are not known, of whom jobs that run came in from another store.
local WORKERS, LEASES, STRANGERS = base .. ':workers', base .. ':leases', base .. ':strangers'

local VERSION, PAUSES, TASKS = base .. ':version', base .. ':pauses', base .. ':tasks'

local function room_key(room) return base .. ':room:' .. room end

local function looks_key(name) return base .. ':looks:' .. name end

local function opens_key(name) return base .. ':opens:' .. name end

local ROOMS, HOLDING, REMEMBERED, LIMITS = base .. ':rooms', base .. ':holding', base .. ':remembered', base .. ':limits'

-- -- what is written together -------------------------------------------------------------------
-- Commands cost more than what they do, so jobs and the sorted sets that find them are written when a script is done with them.
-- A number may be the score of a member, but not a member: Redis 7.2 writes 2000000000 as 2e+9.

local known, unsaved = {}, {} -- jobs as they are packed, by id: those that were read or written, and those still to be written
local adding, removing = {}, {} -- members of sorted sets by key, scores before them where they are added
local starting, stopping = {}, {} -- running jobs by key, packed behind their ids where they start
local placed = {} -- ids of jobs that were put where they are to be found
local lines = {} -- what `line` told of, by key; `left` where somebody may have left it

local function members_of(sets, key)
  local members = sets[key]
  if not members then
    members = {}
    sets[key] = members
  end
  return members
end

-- Put a job in a sorted set, or take it out. What is put in was taken out before, not after.
local function add(key, score, id)
  local members = members_of(adding, key)
  members[#members + 1] = score
  members[#members + 1] = id
end

local function remove(key, id)
  local members = members_of(removing, key)
  members[#members + 1] = id
end

-- The same of the jobs that a worker runs, which are kept whole there.
local function start(key, id, packed)
  local members = members_of(starting, key)
  members[#members + 1] = id
  members[#members + 1] = packed
end

local function stop(key, id)
  local members = members_of(stopping, key)
  members[#members + 1] = id
end

-- Read many jobs at once, for `load`.
local function fetch(ids)
  for first = 1, #ids, 1000 do
    local keys = {}
    for at = first, math.min(first + 999, #ids) do keys[#keys + 1] = job_key(ids[at]) end
    for at, packed in ipairs(call('MGET', unpack(keys))) do
      local id = ids[first + at - 1]
      if known[id] == nil then known[id] = packed end
    end
  end
end

-- Write what was changed so far, for what reads it from the store.
local function settle()
  for key, members in pairs(stopping) do in_pieces('HDEL', key, members) end
  for key, members in pairs(starting) do in_pieces('HSET', key, members) end
  for key, members in pairs(removing) do in_pieces('ZREM', key, members) end
  for key, members in pairs(adding) do
    in_pieces('ZADD', key, members)
    local entry = lines[key]
    if entry and not entry.known then
      entry.known = true
      call('ZADD', base .. ':' .. entry.kind .. ':priorities:' .. entry.name, entry.priority, entry.priority)
      call('SADD', base .. ':' .. entry.kind, entry.name)
    end
  end
  local jobs = {}
  for id, packed in pairs(unsaved) do
    jobs[#jobs + 1] = job_key(id)
    jobs[#jobs + 1] = packed
  end
  for at = 1, #jobs, 1000 do call('MSET', unpack(jobs, at, math.min(at + 999, #jobs))) end
  unsaved, adding, removing, starting, stopping, placed = {}, {}, {}, {}, {}, {}
end

-- -- lines --------------------------------------------------------------------------------------
-- Jobs that wait in the order promised: larger priority, then earlier due, then id. Lines of one kind have names: queued jobs
-- stand in line under their queue. A line is a sorted set a priority; a set has the priorities in use of each name, another the names.

-- The key of a line of one priority, which this script may change.
local function line(kind, name, priority)
  local key = base .. ':' .. kind .. ':' .. priority .. ':' .. name
  if not lines[key] then lines[key] = {kind = kind, name = name, priority = string.format('%d', priority)} end
  return key
end

local function join_line(kind, name, priority, due, id)
  add(line(kind, name, priority), due, id)
end

local function leave_line(kind, name, priority, id)
  local key = line(kind, name, priority)
  lines[key].left = true
  remove(key, id)
end

-- One line as it is walked along: `head` is its first id that was not passed, read a few at a time.
local function walker(key, step)
  local walk = {key = key, at = 0, ids = {}, read = 0}
  function walk.pass()
    walk.at = walk.at + 2
    if walk.at > #walk.ids then
      walk.ids = call('ZRANGE', key, walk.read, walk.read + step - 1, 'WITHSCORES')
      walk.read, walk.at = walk.read + step, 2
    end
    walk.head, walk.due = walk.ids[walk.at - 1], tonumber(walk.ids[walk.at])
  end
  walk.pass()
  return walk
end

local function before(one, other)
  return one.due < other.due or (one.due == other.due and one.head < other.head)
end

-- Append up to so many ids of these lines, which are of one priority, in order.
local function merge(ids, taken, line_keys, many)
  local walks = {}
  for _, key in ipairs(line_keys) do
    local walk = walker(key, math.min(1000, math.ceil(many / #line_keys) + 1))
    if walk.head then walks[#walks + 1] = walk end
  end
  while #walks > 0 and #ids < many do
    local first = 1
    for other = 2, #walks do
      if before(walks[other], walks[first]) then first = other end
    end
    local walk = walks[first]
    ids[#ids + 1] = walk.head
    taken[walk.key] = (taken[walk.key] or 0) + 1
    walk.pass()
    if not walk.head then table.remove(walks, first) end
  end
end

-- The first so many jobs in the lines of these names, in the order promised, and how many of the first of each line they are, by
-- its key. They stay there.
local function first_in_line(kind, names, many)
  settle()
  local levels, priorities = {}, {}
  for _, name in ipairs(names) do
    for _, priority in ipairs(call('ZRANGE', base .. ':' .. kind .. ':priorities:' .. name, 0, -1)) do
      if not levels[priority] then
        levels[priority] = {}
        priorities[#priorities + 1] = tonumber(priority)
      end
      table.insert(levels[priority], line(kind, name, priority))
    end
  end
  table.sort(priorities)
  local ids, taken = {}, {}
  for at = #priorities, 1, -1 do
    local line_keys = levels[string.format('%d', priorities[at])]
    if #line_keys > 1 then
      merge(ids, taken, line_keys, many)
    else
      local found = call('ZRANGE', line_keys[1], 0, many - #ids - 1)
      if #found > 0 then taken[line_keys[1]] = #found end
      if #ids == 0 then
        ids = found
      else
        for _, id in ipairs(found) do ids[#ids + 1] = id end
      end
    end
    if #ids >= many then break end
  end
  for key in pairs(taken) do lines[key].left = true end
  return ids, taken
end

-- -- counting and ringing -----------------------------------------------------------------------

local counted = {} -- by queue, by task, by state: how many more there are
local rung = false

local function count_many(queue, task, state, by)
  local states = members_of(members_of(counted, queue), task)
  states[state] = (states[state] or 0) + by
end

local function count(job, by) count_many(job[QUEUE], job[TASK], job[STATE], by) end

-- Wake those who sleep, once the script is done.
local function ring() rung = true end

-- -- rooms of limits ----------------------------------------------------------------------------
-- A room is told by the name of its limit, NUL and its key. Its hash says how many jobs run in it and how many it holds, and these
-- also by their queue and task; when the last one started and until when that counts; and until when it is closed. Of each limit
-- one sorted set has the keys of the rooms that hold jobs by when they are to be looked at, another those that time opens by when.

local crowds = {} -- by room, by field: how many more there are
local vacant = {} -- rooms that may have room

-- The room of a place, which is [name, key].
local function room_of(place) return place[1] .. '\0' .. place[2] end

-- The name of a room's limit, and the room's key.
local function named(room)
  local at = room:find('\0', 1, true)
  return room:sub(1, at - 1), room:sub(at + 1)
end

local function crowd(room, field, by)
  local fields = members_of(crowds, room)
  fields[field] = (fields[field] or 0) + by
end

-- Have a claim look at a room, if it holds jobs.
local function look_at(room) vacant[room] = true end

local function count_held(room, queue, task, by)
  crowd(room, 'held', by)
  crowd(room, queue .. '\0' .. task, by)
end

local function take_places(places, many)
  for _, place in ipairs(places) do crowd(room_of(place), 'running', many) end
end

local function give_back(places, many)
  for _, place in ipairs(places) do
    crowd(room_of(place), 'running', -many)
    look_at(room_of(place))
  end
end

-- Forget a room, or what there is of one.
local function forget_room(room)
  local name, key = named(room)
  call('DEL', room_key(room))
  call('ZREM', ROOMS, room)
  call('ZREM', REMEMBERED, room)
  call('ZREM', opens_key(name), key)
end

local function hold_on(room)
  local name, key = named(room)
  call('ZADD', looks_key(name), 'NX', now, key)
  call('SADD', HOLDING, name)
end

local function let_go(room)
  local name, key = named(room)
  call('ZREM', looks_key(name), key)
  if call('EXISTS', looks_key(name)) == 0 then call('SREM', HOLDING, name) end
end

-- Write what was counted so far. A room that holds jobs from now on is to be looked at.
local function settle_rooms()
  for room, fields in pairs(crowds) do
    local key, fewer = room_key(room), false
    for field, by in pairs(fields) do
      local many = by ~= 0 and call('HINCRBY', key, field, by)
      if many and many <= 0 then
        call('HDEL', key, field)
        if field == 'held' then let_go(room) end
        fewer = true
      elseif many == by then
        call('ZADD', ROOMS, 0, room)
        if field == 'held' then hold_on(room) end
      end
    end
    if fewer and call('EXISTS', key) == 0 then forget_room(room) end
  end
  for room in pairs(vacant) do
    local name, key = named(room)
    call('ZADD', looks_key(name), 'XX', 'LT', now, key)
  end
  crowds, vacant = {}, {}
end

-- Have claims look at all rooms of a limit that hold jobs.
local function look_at_limit(name)
  local key = looks_key(name)
  if call('EXISTS', key) == 1 then call('ZUNIONSTORE', key, 1, key, 'WEIGHTS', 0) end
end

-- The same of every limit: who comes or goes may be the only one to know another size.
local function look_at_all()
  for _, name in ipairs(call('SMEMBERS', HOLDING)) do look_at_limit(name) end
end

-- Have a room remember some of these, each a field and a moment, until another moment at least.
local function remember(room, keep, ...)
  call('HSET', room_key(room), ...)
  call('ZADD', ROOMS, 0, room)
  call('ZADD', REMEMBERED, 'GT', keep, room)
end

-- A room as it is.
local function look_into(room)
  local name, key = named(room)
  local found = call('HMGET', room_key(room), 'running', 'held', 'started', 'closed')
  local held = tonumber(found[2]) or 0
  return {
    name = name, key = key, running = tonumber(found[1]) or 0, held = held, started = tonumber(found[3]), closed = tonumber(found[4]),
    look = held > 0 and tonumber(call('ZSCORE', looks_key(name), key)) or nil,
  }
end

-- -- the end ------------------------------------------------------------------------------------

-- The end of a script: all that is still to be written, and names of lines that are empty by now are forgotten. Returns the
-- script's answer, which is packed.
local function done(packed)
  settle()
  settle_rooms()
  for queue, tasks in pairs(counted) do
    for task, states in pairs(tasks) do
      for state, by in pairs(states) do
        local name = queue .. '\0' .. task .. '\0' .. state
        if by ~= 0 and call('HINCRBY', COUNTS, name, by) <= 0 then call('HDEL', COUNTS, name) end
      end
    end
  end
  for key, each in pairs(lines) do
    if each.left and call('EXISTS', key) == 0 then
      local priorities = base .. ':' .. each.kind .. ':priorities:' .. each.name
      call('ZREM', priorities, each.priority)
      if call('EXISTS', priorities) == 0 then call('SREM', base .. ':' .. each.kind, each.name) end
    end
  end
  if rung and call('EXISTS', SLEEPERS) == 1 then call('PUBLISH', RING, '') end
  return packed
end

-- -- a job --------------------------------------------------------------------------------------

-- A job by its id, and as it is packed; nil where there is none.
local function load(id)
  local packed = known[id]
  if packed == nil then packed = call('GET', job_key(id)) end
  if not packed then return nil end
  local job, claim, worker, claimed, finished, took, result, places = cmsgpack.unpack(packed)
  if claim then
    job[STATE], job[CLAIM], job[WORKER], job[CLAIMED], job.parts = 'running', claim, worker, claimed, 4
  end
  if finished then
    job[STATE], job[FINISHED], job[TOOK], job[RESULT], job[REASON], job[LOOKS], job.parts = 'succeeded', finished, took, result, nil, nil, 7
  end
  if places then job[PLACES], job.parts = places, 9 end
  return job, packed
end

-- Have a job written, and answer it packed. Fields on which something else depends are changed by the functions below.
local function save(id, job)
  local state = job[STATE]
  job[PLAIN] = (state == 'queued' or state == 'scheduled') and not (job[KEY] or job[ROOM] or job[PLACES])
    and job[ARGS] ~= true and job[CONTEXT] ~= true and job[REASON] ~= true and job[PROGRESS] ~= true
  job.parts = nil
  local last = FIELDS
  while job[last] == nil do last = last - 1 end
  local packed = array(last) .. pack(unpack(job, 1, last))
  known[id], unsaved[id] = packed, packed
  if state == 'running' then start(running_key(job[WORKER]), id, packed) end
  return packed
end

-- What begins a plain job, if it is one: its task and its queue, packed; the number of its claims, and where that stands. Whether
-- it has places is answered as well, which no waiting job has.
local function heading(packed)
  local from = packed:byte() < 0xa0 and 2 or 4
  local at = from
  for _ = 1, 2 do
    local kind, length = packed:byte(at, at + 1)
    if kind >= 0xa0 and kind <= 0xbf then
      at = at + 1 + kind - 0xa0
    elseif kind == 0xd9 then
      at = at + 2 + length
    else
      return nil
    end
  end
  local claim, excused, plain = packed:byte(at, at + 2)
  if claim < 0x7f and excused < 0x80 and plain ~= 0xc2 then return packed:sub(from, at - 1), claim, at, plain == 0xc0 end
end

-- Set one of a job's texts: ARGS, CONTEXT, RESULT, REASON or PROGRESS.
local function put(id, job, field, text)
  if text and #text > LONG then
    call('HSET', texts_key(id), field, text)
    text = true
  elseif job[field] == true then
    call('HDEL', texts_key(id), field)
  end
  job[field] = text
end

-- A job as an answer has it: its id, by their numbers the texts that are kept aside, and what it is.
local function tell(id, job, packed)
  local texts
  if job[ARGS] == true or job[CONTEXT] == true or job[RESULT] == true or job[REASON] == true or job[PROGRESS] == true then
    texts = call('HGETALL', texts_key(id))
  end
  return array(2 + (job.parts or 1)) .. pack(id, texts) .. packed
end

-- The name of the line in which a job stands that a room holds: so those of one queue, and of some tasks, are found in order.
local function held_line(job) return job[QUEUE] .. '\0' .. job[TASK] .. '\0' .. room_of(job[ROOM]) end

-- Take a job out of what finds it by its state; `place` puts it where it is to be found by another. Between them its state, its
-- due time, its priority, its queue, its worker and its room may change; then it is to be saved.
local function displace(id, job)
  if placed[id] then settle() end
  local state = job[STATE]
  count(job, -1)
  if state == 'queued' then
    leave_line('queued', job[QUEUE], job[PRIORITY], id)
    if job[ROOM] then look_at(room_of(job[ROOM])) end -- others may be held behind it
  elseif state == 'scheduled' then
    remove(SCHEDULED, id)
  elseif state == 'held' then
    leave_line('held', held_line(job), job[PRIORITY], id)
    count_held(room_of(job[ROOM]), job[QUEUE], job[TASK], -1)
  elseif state == 'running' then
    stop(running_key(job[WORKER]), id)
    if job[PLACES] then
      give_back(job[PLACES], 1)
      job[PLACES] = nil
    end
  elseif FINAL[state] then
    remove(finished_key(state), id)
  end
end

local function place(id, job)
  placed[id] = true
  local state = job[STATE]
  count(job, 1)
  if state == 'queued' then
    join_line('queued', job[QUEUE], job[PRIORITY], job[DUE], id)
    ring()
  elseif state == 'scheduled' then
    add(SCHEDULED, job[DUE], id)
    ring() -- it may be due sooner than what they wait for
    job[ROOM] = nil
  elseif state == 'held' then
    join_line('held', held_line(job), job[PRIORITY], job[DUE], id)
    count_held(room_of(job[ROOM]), job[QUEUE], job[TASK], 1)
  elseif state == 'running' then
    if job[PLACES] then take_places(job[PLACES], 1) end
  elseif FINAL[state] then
    add(finished_key(state), job[FINISHED], id)
  end
end

-- The unfinished job that has the key of this one, if there is one.
local function holder(job)
  return job[KEY] and call('HGET', KEYS_HELD, job[TASK] .. '\0' .. job[KEY])
end

-- Have a job hold its key from now on.
local function hold_key(id, job)
  if job[KEY] then call('HSET', KEYS_HELD, job[TASK] .. '\0' .. job[KEY], id) end
end

-- Let go of its key, which the job keeps for those who look for it.
local function free_key(job)
  if job[KEY] then call('HDEL', KEYS_HELD, job[TASK] .. '\0' .. job[KEY]) end
end

-- Take its key off a job for good.
local function drop_key(id, job)
  if job[KEY] then
    if not FINAL[job[STATE]] then free_key(job) end
    call('ZREM', keyed_key(job[KEY]), id)
    job[KEY] = nil
  end
end

-- Delete a job that was displaced, with all that is remembered of it.
local function forget(id, job)
  drop_key(id, job)
  remove(ALL, id)
  known[id], unsaved[id] = false, nil
  call('DEL', job_key(id), texts_key(id), attempts_key(id))
end

-- Remember how an attempt ended that did not succeed.
local function note(id, job, outcome, took, kind, message, trace)
  local attempt = job[CLAIM] - job[EXCUSED]
  call('RPUSH', attempts_key(id), record(job[CLAIM], attempt, job[WORKER], now, outcome, took, kind, message, trace))
end

-- Bring a job that is not finished into a final state, for a reason or nil, and save it.
local function conclude(id, job, state, reason, took)
  displace(id, job)
  free_key(job)
  put(id, job, REASON, reason)
  job[STATE], job[FINISHED], job[TOOK] = state, now, took
  job[CANCELLING], job[LOOKS], job[ROOM] = nil, nil, nil
  place(id, job)
  save(id, job)
end

-- Let a running job wait for another attempt: `wait` from now, or where it was in its queue without one. It is saved.
local function put_back(id, job, reason, wait)
  displace(id, job)
  put(id, job, REASON, reason)
  job[WORKER], job[CLAIMED] = nil, nil
  job[STATE] = wait and wait > 0 and 'scheduled' or 'queued'
  if wait then job[DUE] = now + wait end
  place(id, job)
  save(id, job)
end

-- -- claiming -----------------------------------------------------------------------------------

-- How a worker claims jobs that take these places of limits, or none.
local function manner(worker, places)
  if not places or #places == 0 then return {tail = pack(worker, now)} end
  local tail = pack(worker, now) .. '\192\192\192' .. pack(places)
  local length = #tail + 3
  return {tail = tail .. '\205' .. string.char(math.floor(length / 256), length % 256), places = places, many = 0}
end

local function among(places, room)
  for _, place in ipairs(places or {}) do
    if place[1] == room[1] and place[2] == room[2] then return true end
  end
end

-- Have a worker run a queued job that has left its line. Answers it as a claim does: a plain one as it was before, of which
-- `moved` counts how many begin alike. `job` is what was loaded of it, if it was.
local function begin(worker, id, packed, how, moved, job)
  local head, claims_before, at = heading(packed)
  if head then
    moved[head] = (moved[head] or 0) + 1
    local whole
    if how.places then
      how.many = how.many + 1
      whole = packed:sub(1, at + 1) .. '\192' .. packed:sub(at + 3) .. string.char(claims_before + 1) .. how.tail
    else
      whole = packed .. string.char(claims_before + 1) .. how.tail
    end
    known[id], unsaved[id] = whole, whole
    start(running_key(worker), id, whole)
    return '\147\217\32' .. id .. '\192' .. packed
  end
  job = job or load(id)
  count(job, -1)
  if job[ROOM] and not among(how.places, job[ROOM]) then look_at(room_of(job[ROOM])) end -- others may be held behind it
  job[STATE], job[WORKER], job[CLAIMED], job[CLAIM], job[ROOM] = 'running', worker, now, job[CLAIM] + 1, nil
  job[PLACES] = how.places
  if job[FLEETING] then drop_key(id, job) end
  place(id, job)
  return tell(id, job, save(id, job))
end

-- Count plain jobs that went from one state to another.
local function count_plain(moved, from, to)
  for head, many in pairs(moved) do
    local task, queue = cmsgpack.unpack(head)
    count_many(queue, task, from, -many)
    count_many(queue, task, to, many)
  end
end

-- -- a worker -----------------------------------------------------------------------------------

-- The fields of its row that scripts know. What it holds is a set, its lease a score, and whether it sleeps another set.
local NAME, LEASE, STARTED, WORKER_FIELDS = 1, 7, 9, 10

-- A job that this worker runs; nil where the set of those is wrong, which is mended.
local function owned(worker, id)
  local job = load(id)
  if job and job[STATE] == 'running' and job[WORKER] == worker then return job end
  stop(running_key(worker), id)
end

-- Queue a job of a worker's again without using an attempt, save one that someone asked to cancel. Answers whether there was one.
local function hand_back(worker, id, reason)
  local job = owned(worker, id)
  if not job then return false end
  local took = now - job[CLAIMED]
  if job[CANCELLING] then
    note(id, job, 'cancelled', took, nil, 'cancelled while running', '')
    conclude(id, job, 'cancelled', 'cancelled while running')
  else
    note(id, job, 'released', took, nil, reason, '')
    job[EXCUSED] = job[EXCUSED] + 1
    put_back(id, job, reason)
  end
  return true
end

-- Forget a worker that holds no job any more.
local function forget_worker(worker)
  call('HDEL', WORKERS, worker)
  call('ZREM', LEASES, worker)
  call('SREM', SLEEPERS, worker)
  look_at_all()
end

-- -- claims under limits ------------------------------------------------------------------------

-- From when a room of a size has room, [most at once] or [nil, spacing of starts]: now where it has some; nil where a running job
-- must end first. Nobody waits for a clock that was set back.
local function opens_at(size, room, running, started)
  if not size then return now end
  local opening = math.max(now, room.closed or now)
  if size[1] then return running < size[1] and opening or nil end
  if not started or started - opening > math.max(size[2], 60000000) then return opening end
  return math.max(opening, started + size[2])
end

-- Note when a room is to be looked at, if it holds jobs, and from when it has room, if that is no matter of now.
local function note_room(room, look, opening)
  local name, key = named(room)
  if look then call('ZADD', looks_key(name), 'XX', look, key) end
  if opening and opening > now then
    call('ZADD', opens_key(name), opening, key)
  else
    call('ZREM', opens_key(name), key)
  end
end

-- The sizes that were set, name and text in turn, where they are others than these.
local function other_overrides(overrides)
  local present, many = call('HGETALL', LIMITS), 0
  for _ in pairs(overrides) do many = many + 1 end
  local same = #present == 2 * many
  for at = 1, #present, 2 do same = same and overrides[present[at]] == present[at + 1] end
  return not same and present or nil
end

local TASKS_KNOWN = 5

-- The tasks that a worker knows, as a set.
local function tasks_of(worker)
  local tasks = {}
  for _, task in ipairs(cmsgpack.unpack(call('HGET', WORKERS, worker))[TASKS_KNOWN]) do tasks[task] = true end
  return tasks
end

local function holds_some_of(room, tasks)
  for _, field in ipairs(call('HKEYS', room_key(room))) do
    local task = field:match('%z(.*)$')
    if task and tasks[task] then return true end
  end
end

-- The first so many rooms to look at whose limits, or whose held jobs' tasks, a worker knows.
local function due_rooms(names, worker, many)
  local found, known_names, tasks = {}, {}, nil
  local function gather(name, most, wanted)
    local due = call('ZRANGEBYSCORE', looks_key(name), '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
    for at = 1, #due, 2 do
      local room = name .. '\0' .. due[at]
      if not wanted or wanted(room) then found[#found + 1] = {tonumber(due[at + 1]), room} end
    end
  end
  for _, name in ipairs(names) do
    known_names[name] = true
    gather(name, many)
  end
  for _, name in ipairs(call('SMEMBERS', HOLDING)) do
    if not known_names[name] then
      tasks = tasks or tasks_of(worker)
      gather(name, 1000, function(room) return holds_some_of(room, tasks) end)
    end
  end
  table.sort(found, function(one, other) return one[1] < other[1] or (one[1] == other[1] and one[2] < other[2]) end)
  local rooms = {}
  for at = 1, math.min(many, #found) do rooms[at] = found[at][2] end
  return rooms
end

-- How long until time makes room in a room of these limits; nil where it does not.
local function until_opening(names)
  local first
  for _, name in ipairs(names) do
    local found = call('ZRANGEBYSCORE', opens_key(name), string.format('(%.0f', now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if found[2] then first = math.min(first or tonumber(found[2]), tonumber(found[2])) end
  end
  return first and first - now
end

-- -- looking ------------------------------------------------------------------------------------

-- A moment as the end of a range of scores that it is not part of.
local function before_moment(moment) return string.format('(%.0f', moment) end

-- What answers a job that was fetched, and as it is packed, if a filter names it: [states, queue, task, key, worker], of which any
-- may be nil. Most that it does not name are not taken apart.
local function matching(filter)
  local states, queue, task, key, worker = unpack(filter, 1, 5)
  local words = {} -- what is packed in each that matches
  for _, word in pairs({task = task, queue = queue, worker = worker}) do words[#words + 1] = pack(word) end
  local able = {}
  for _, state in ipairs(states or {}) do able[state] = true end
  return function(id)
    local packed = known[id]
    if not packed then return nil end
    for _, word in ipairs(words) do
      if not packed:find(word, 1, true) then return nil end
    end
    local job = load(id)
    if (not states or able[job[STATE]]) and (not task or job[TASK] == task) and (not queue or job[QUEUE] == queue)
      and (not key or job[KEY] == key) and (not worker or job[WORKER] == worker) then
      return job, packed
    end
  end
end

-- The task and the queue that a packed job begins with, by which jobs are counted.
local function group_of(packed)
  local _, task, queue = cmsgpack.unpack_limit(packed, 2, packed:byte() < 0xa0 and 1 or 3)
  return task, queue
end

-- Those who may have running jobs.
local function running_workers()
  local workers = call('HKEYS', WORKERS)
  for _, stranger in ipairs(call('SMEMBERS', STRANGERS)) do
    if call('HEXISTS', WORKERS, stranger) == 0 then workers[#workers + 1] = stranger end
  end
  return workers
end
