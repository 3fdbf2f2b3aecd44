-- Say whether a worker sleeps: [now, worker, asleep]. One that is not known does not.

local worker, asleep = input[2], input[3]
if asleep and call('HEXISTS', WORKERS, worker) == 1 then
  call('SADD', SLEEPERS, worker)
else
  call('SREM', SLEEPERS, worker)
end
return done(pack(nil))
