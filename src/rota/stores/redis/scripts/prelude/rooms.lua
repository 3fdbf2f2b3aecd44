-- A room is told by the name of its limit, NUL and its key. Its hash says how many jobs run in it and how many it holds, and
-- these also by their queue and task; when the last one started and until when that counts; and until when it is closed. Of
-- each limit one sorted set has the keys of the rooms that hold jobs by when they are to be looked at, another those that time
-- opens by when.

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
    if call('ZADD', looks_key(name), 'XX', 'LT', 'CH', now, key) == 1 then ring() end
  end
  crowds, vacant = {}, {}
end

-- Have claims look at all rooms of a limit that hold jobs.
local function look_at_limit(name)
  local key = looks_key(name)
  if call('EXISTS', key) == 1 then
    call('ZUNIONSTORE', key, 1, key, 'WEIGHTS', 0)
    ring()
  end
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
