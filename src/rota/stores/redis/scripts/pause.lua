-- Pause a queue: [now, queue, until, span, by]. One that is paused goes on to be, from when it was.

local queue, ending, span, by = input[2], input[3], input[4], input[5]
local at = now
local found = call('HGET', PAUSES, queue)
if found then
  local pause = cmsgpack.unpack(found)
  if not pause[2] or pause[2] > now then at = pause[1] end
end
call('HSET', PAUSES, queue, record(at, ending or span and now + span or nil, by))
call('DEL', OFFERS) -- they were made before; who is rung offers anew
ring()
return done(pack(nil))
