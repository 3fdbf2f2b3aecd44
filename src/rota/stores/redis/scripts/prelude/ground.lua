-- What scripts share, in the files of this folder; what one needs of it stands before it when it is loaded. Each stretch
-- between empty lines is needed by those who name what it makes, and names only what stands before it.
--
-- KEYS[1] is the base of every key, with the hash tag that keeps them together. ARGV[1] is an array in MessagePack: the moment
-- first (nil for the server's clock), then what the script says; ARGV[2] is what is packed already. A script ends with
-- `return done(…)`: only that writes what changed.

local base = KEYS[1]
local input = cmsgpack.unpack(ARGV[1])
local pack = cmsgpack.pack
local call = redis.call
local now = input[1]
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local SEAL = base .. ':seal'

-- Where the store is sealed nothing changes, save by scripts that say of themselves that they work beneath a seal.
local sealed = call('HGET', SEAL, 'words')
if sealed then return redis.error_reply('SEALED ' .. sealed) end

-- Where memory has run out the server lets nothing grow, save for a script that wrote something before: here nothing, first of
-- all. So workers keep their leases and end what they run, and jobs can be deleted, while those that say that they take memory
-- are refused.
local eased = call('DEL', base .. ':nothing')

-- A job: an array in MessagePack under its id, which ends with the last field that is set. A text that is `true` here is long
-- and kept aside, so that a job that moves need not carry it. PLAIN says of a waiting job that nothing else depends on it: no
-- key, no text aside, no limit. What most jobs go through is then written behind the array, and nothing of that is taken apart:
-- once it is claimed CLAIM, WORKER and CLAIMED; once it has succeeded FINISHED, TOOK and RESULT as well. Where it has places of
-- limits meanwhile, there stand in between three that are nil, PLACES, and, as PLACED says, the length of what was written from
-- WORKER on. `load` brings it together. EXACT has the digits of a DUE that no number of Lua's is exact for, a few centuries from now.
local TASK, QUEUE, CLAIM, EXCUSED, PLAIN, ARGS, PRIORITY, MOST, CREATED, STATE, DUE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
local WORKER, CLAIMED, FINISHED, TOOK, KEY, FLEETING, LOOKS, CONTEXT = 12, 13, 14, 15, 16, 17, 18, 19
local RESULT, REASON, PROGRESS, CANCELLING, ROOM, PLACES, EXACT = 20, 21, 22, 23, 24, 25, 26
local FIELDS = 26

local LONG = 1000

local PLAIN_HEAD = string.char(0x90 + DUE)

local PLACED = '\211\0\0\0\0\0\0' -- a whole number of 64 bits begins so, which is written with two more bytes

local FINAL = {succeeded = true, failed = true, cancelled = true}

-- -- packing ------------------------------------------------------------------------------------

-- The head of an array of so many packed values that follow.
local function array(many)
  if many < 16 then
    return string.char(0x90 + many)
  elseif many < 0x10000 then
    return string.char(0xdc, math.floor(many / 0x100), many % 0x100)
  end
  return string.char(0xdd, 0, math.floor(many / 0x10000) % 0x100, math.floor(many / 0x100) % 0x100, many % 0x100)
end

-- Values as an array, of which any may be nil.
local function record(...)
  return array(select('#', ...)) .. pack(...)
end

-- Packed values as an array.
local function list(packed)
  return array(#packed) .. table.concat(packed)
end

-- Call a command with many members, in pieces that Lua's stack has room for.
local function in_pieces(command, key, members)
  for at = 1, #members, 1000 do
    call(command, key, unpack(members, at, math.min(at + 999, #members)))
  end
end

-- -- keys ---------------------------------------------------------------------------------------

local function job_key(id) return base .. ':job:' .. id end

local function texts_key(id) return base .. ':texts:' .. id end

local function attempts_key(id) return base .. ':attempts:' .. id end

local function running_key(worker) return base .. ':running:' .. worker end

local function finished_key(state) return base .. ':finished:' .. state end

-- One sorted set has all jobs that have a key: each key with the ids of its jobs behind it, in the order of letters.
local KEYED = base .. ':keyed'

local function keyed(key, id) return key .. '\0' .. id end

local ALL, KEYS_HELD, COUNTS = base .. ':all', base .. ':keys', base .. ':counts'
local SCHEDULED, SLEEPERS, RING = base .. ':scheduled', base .. ':sleepers', base .. ':ring'

-- The strangers are workers that are not known, of whom jobs that run came in from another store.
local WORKERS, LEASES, STRANGERS = base .. ':workers', base .. ':leases', base .. ':strangers'

-- Workers that sleep and would run the next job that comes in, with the queues that they serve.
local OFFERS = base .. ':offers'

local VERSION, PAUSES, TASKS = base .. ':version', base .. ':pauses', base .. ':tasks'

local function room_key(room) return base .. ':room:' .. room end

local function looks_key(name) return base .. ':looks:' .. name end

local function opens_key(name) return base .. ':opens:' .. name end

local ROOMS, HOLDING, REMEMBERED, LIMITS = base .. ':rooms', base .. ':holding', base .. ':remembered', base .. ':limits'
