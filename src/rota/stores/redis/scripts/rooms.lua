-- Rooms of limits behind one of them in the order of names and keys: [now, after, many]. Answers each as
-- [room, running, held, started, keep, closed], a room being its name, NUL and its key. It only reads.

local after, many = input[2], input[3]
local told = {}
for _, room in ipairs(call('ZRANGEBYLEX', ROOMS, after and '(' .. after or '-', '+', 'LIMIT', 0, many)) do
  local fields = {room}
  for at, text in ipairs(call('HMGET', room_key(room), 'running', 'held', 'started', 'keep', 'closed')) do
    fields[at + 1] = tonumber(text)
  end
  told[#told + 1] = record(unpack(fields, 1, 6))
end
return done(list(told))
