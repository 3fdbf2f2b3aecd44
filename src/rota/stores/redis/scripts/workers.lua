-- Every known worker: its id, its row as it joined, until when its lease is, and whether it sleeps. It only reads.

local told = {}
local rows = call('HGETALL', WORKERS)
for at = 1, #rows, 2 do
  local worker = rows[at]
  local lease_until = tonumber(call('ZSCORE', LEASES, worker))
  told[#told + 1] = array(4) .. pack(worker) .. rows[at + 1] .. pack(lease_until, call('SISMEMBER', SLEEPERS, worker) == 1)
end
return done(list(told))
