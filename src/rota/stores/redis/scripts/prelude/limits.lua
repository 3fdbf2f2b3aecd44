-- What a claim under limits asks of rooms.

-- From when a room of a size has room, [most at once] or [nil, spacing of starts]: now where it has some; nil where a running
-- job must end first. Nobody waits for a clock that was set back.
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
