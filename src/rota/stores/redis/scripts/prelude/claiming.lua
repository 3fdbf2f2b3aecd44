-- A queued job that a worker begins to run.

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
