-- Jobs that wait in the order promised: larger priority, then earlier due, then id. Lines of one kind have names: queued jobs
-- stand in line under their queue. A line is a sorted set a priority; a set has the priorities in use of each name, another the
-- names.

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

-- The first so many jobs in the lines of these names, in the order promised, and how many of the first of each line they are,
-- by its key. They stay there.
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
