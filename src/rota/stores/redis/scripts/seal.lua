-- Let nothing be changed from now on: [now, id, words, text]. Answers the text of another seal, which stays.
-- It works beneath a seal.

local id, words, text = input[2], input[3], input[4]
local present = call('HMGET', SEAL, 'id', 'text')
if present[1] and present[1] ~= id then return done(pack(present[2])) end
call('HSET', SEAL, 'id', id, 'words', words, 'text', text)
return done(pack(nil))
