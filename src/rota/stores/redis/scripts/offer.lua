-- Offer to run the next job that comes in under one of these queues: [now, worker, queues]. It stands until a job was handed
-- over, the worker takes a turn, or a queue is paused, and for a few seconds at the most.

local worker, queues = input[2], input[3]
if call('HEXISTS', WORKERS, worker) == 1 then call('HSET', OFFERS, worker, pack(queues, now)) end
return pack(nil)
