-- Have a size count for a limit, or nil for the one that code declares: [now, name, size]. Jobs that it holds are looked at
-- again.

local name, size = input[2], input[3]
if size then
  call('HSET', LIMITS, name, size)
else
  call('HDEL', LIMITS, name)
end
look_at_limit(name)
return done(pack(nil))
