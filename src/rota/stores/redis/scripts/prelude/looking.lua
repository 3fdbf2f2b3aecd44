-- Searching among jobs.

-- A moment as the end of a range of scores that it is not part of.
local function before_moment(moment) return string.format('(%.0f', moment) end

-- What answers a job that was fetched, and as it is packed, if a filter names it: [states, queue, task, key, worker], of which
-- any may be nil. Most that it does not name are not taken apart.
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
