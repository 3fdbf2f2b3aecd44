-- Forget up to so many rooms of limits that nothing holds on to: [now, many]. Answers how many were met.

local LATER = 3600000000 -- one that something holds on to is looked at again after so long

local rooms = call('ZRANGEBYSCORE', REMEMBERED, '-inf', before_moment(now), 'LIMIT', 0, input[2])
for _, room in ipairs(rooms) do
  if call('HEXISTS', room_key(room), 'running') == 1 or call('HEXISTS', room_key(room), 'held') == 1 then
    call('ZADD', REMEMBERED, now + LATER, room)
  else
    forget_room(room)
  end
end
return done(pack(#rooms))
