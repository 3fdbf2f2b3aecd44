-- Add one plain job: [now, id, task, queue, priority, run_at, delay]. ARGV[2] is its head, the packed fields before CREATED. One
-- whose id is known is left as it is. What `insert` does for many together costs a lone job more than all that it writes, so
-- this writes by itself. It takes memory.
--
-- Where nobody waits before it and a worker that sleeps has offered to run it, that worker has claimed it and is sent it.

local id, task, queue, priority, run_at, delay = unpack(input, 2, 7)
local due = run_at or now + delay
local state = due > now and 'scheduled' or 'queued'
local packed = PLAIN_HEAD .. ARGV[2] .. pack(now, state, due)
if call('SETNX', job_key(id), packed) == 0 then return pack(nil) end
call('ZADD', ALL, 0, id)

local function count_one() call('HINCRBY', COUNTS, queue .. '\0' .. task .. '\0' .. state, 1) end

-- An offer that is old may be of somebody who is frozen: who is well makes it anew. A moment that is given tells no age.
local FRESH = 10 * 1000000

local function stands(offer)
  local queues, since = cmsgpack.unpack(offer)
  if not input[1] and now - since > FRESH then return false end
  for _, each in ipairs(queues) do
    if each == queue then return true end
  end
end

-- Hand it to the first of a few whose ear is there; who is dead has none, or a lease that is over.
local function hand_over()
  local found = call('HRANDFIELD', OFFERS, 8, 'WITHVALUES')
  for at = 1, #found, 2 do
    local worker = found[at]
    if stands(found[at + 1]) and tonumber(call('ZSCORE', LEASES, worker) or 0) > now then
      call('HDEL', OFFERS, worker)
      if call('PUBLISH', RING .. ':' .. worker, '\147\217\32' .. id .. '\192' .. packed) > 0 then
        local whole = packed .. '\1' .. pack(worker, now)
        call('SET', job_key(id), whole)
        call('HSET', running_key(worker), id, whole)
        state = 'running'
        count_one()
        return true
      end
    end
  end
end

local asleep = call('EXISTS', SLEEPERS) == 1
if state == 'scheduled' then
  call('ZADD', SCHEDULED, due, id)
else
  local level = string.format('%d', priority)
  local key, priorities = base .. ':queued:' .. level .. ':' .. queue, base .. ':queued:priorities:' .. queue
  if asleep and call('EXISTS', priorities) == 0 and hand_over() then return pack(nil) end
  call('ZADD', key, due, id)
  if call('ZCARD', key) == 1 then -- a line that has others is known
    call('ZADD', priorities, priority, level)
    call('SADD', base .. ':queued', queue)
  end
end
count_one()
if asleep then call('PUBLISH', RING, '') end
return pack(nil)
