-- Forget a worker, and hand back what it holds: [now, worker].

local worker = input[2]
for _, id in ipairs(call('HKEYS', running_key(worker))) do
  hand_back(worker, id, 'its worker left before it was done')
end
forget_worker(worker)
return done(pack(nil))
