-- A worker, and what it holds.

-- The fields of its row that scripts know. What it holds is a set, its lease a score, and whether it sleeps another set.
local NAME, LEASE, STARTED, WORKER_FIELDS = 1, 7, 9, 10

-- A job that this worker runs; nil where the set of those is wrong, which is mended.
local function owned(worker, id)
  local job = load(id)
  if job and job[STATE] == 'running' and job[WORKER] == worker then return job end
  stop(running_key(worker), id)
end

-- Queue a job of a worker's again without using an attempt, save one that someone asked to cancel. Answers whether there was
-- one.
local function hand_back(worker, id, reason)
  local job = owned(worker, id)
  if not job then return false end
  local took = now - (job[CLAIMED] or now)
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
  call('HDEL', OFFERS, worker)
  look_at_all()
end
