-- A queued job that a worker begins to run.

-- How a worker claims jobs that take these places of limits, or none.
local function manner(worker, places)
  if not places or #places == 0 then return {tail = pack(worker, now)} end
  local tail = pack(worker, now) .. '\192\192\192' .. pack(places) .. PLACED
  local length = #tail + 2
  return {tail = tail .. string.char(math.floor(length / 256), length % 256), places = places, many = 0}
end

local function among(places, room)
  for _, place in ipairs(places or {}) do
    if place[1] == room[1] and place[2] == room[2] then return true end
  end
end

-- Have a worker run a plain job that was queued and has left its line: so many were its claims. Answers it as a claim does, which
-- is as it was before.
local function begin_plain(running, id, packed, claims, how)
  local whole = packed .. string.char(claims + 1) .. how.tail
  known[id], unsaved[id] = whole, whole
  start(running, id, whole)
  return '\147\217\32' .. id .. '\192' .. packed
end

-- The same of any other job.
local function begin(worker, id, job, how)
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
