-- Make a worker known: [now, worker, lease, row], a row being [name, host, pid, queues, tasks, concurrency, lease, version,
-- started, trouble]. Answers whether its id was new.

local worker, lease, row = input[2], input[3], input[4]
local new = call('HEXISTS', WORKERS, worker) == 0
if new then
  row[STARTED] = now
  call('HSET', WORKERS, worker, record(unpack(row, 1, WORKER_FIELDS)))
  call('ZADD', LEASES, now + lease, worker)
  call('SREM', STRANGERS, worker)
  look_at_all() -- it may know other sizes
end
return done(pack(new))
