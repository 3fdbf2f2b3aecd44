-- Lift a seal: [now, id]. Answers whether there was one with this id. It works beneath a seal.

local there = call('HGET', SEAL, 'id') == input[2]
if there then call('DEL', SEAL) end
return done(pack(there))
