-- Forget a worker, and hand back what it holds: [now, worker].

local worker = input[2]
for _, id in ipairs(call('ZRANGE', running_key(worker), 0, -1)) do
  hand_back(worker, id, 'its worker left before it was done')
end
forget_worker(worker)
return done(pack(nil))
