-- Every pause that was not ended by hand, and the moment: [now]. It only reads.

local told = {}
local pauses = call('HGETALL', PAUSES)
for at = 1, #pauses, 2 do
  told[#told + 1] = array(2) .. pack(pauses[at]) .. pauses[at + 1]
end
return done(array(2) .. pack(now) .. list(told))
