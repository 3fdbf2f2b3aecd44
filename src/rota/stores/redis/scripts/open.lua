-- Note which version of the layout the store has, where nothing is noted yet: [now, version, needs, make].
-- Answers the version that was found (nil: none), and which one a process must know. It works beneath a seal. It takes memory.

local version, needs, make = input[2], input[3], input[4]

-- A command that scripts ask for came with Redis 6.2, and with nothing older.
local answered = redis.pcall('HRANDFIELD', base .. ':nothing')
if answered and string.find(answered.err or '', 'nknown') then return redis.error_reply('OLD it knows no HRANDFIELD') end

local found = call('HMGET', VERSION, 'version', 'needs')
if make and not found[1] then call('HSET', VERSION, 'version', version, 'needs', needs) end
return done(record(tonumber(found[1]) or nil, tonumber(found[2]) or nil))
