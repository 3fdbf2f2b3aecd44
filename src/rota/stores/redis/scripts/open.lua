-- Note which version of the layout the store has, where nothing is noted yet: [now, version, needs, make].
-- Answers the version that was found (nil: none), and which one a process must know. It works beneath a seal. It takes memory.

local version, needs, make = input[2], input[3], input[4]
local found = call('HMGET', VERSION, 'version', 'needs')
if make and not found[1] then call('HSET', VERSION, 'version', version, 'needs', needs) end
return done(record(tonumber(found[1]) or nil, tonumber(found[2]) or nil))
