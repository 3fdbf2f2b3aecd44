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
