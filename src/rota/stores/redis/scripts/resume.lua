-- End the pause of a queue: [now, queue]. Answers whether it was one still.

local queue = input[2]
local found = call('HGET', PAUSES, queue)
call('HDEL', PAUSES, queue)
ring()
local ending = found and cmsgpack.unpack(found)[2]
return done(pack(found ~= false and (not ending or ending > now)))
