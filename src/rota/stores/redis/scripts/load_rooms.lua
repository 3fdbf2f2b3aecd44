-- Have rooms remember what they did in another store, of two moments the later: [now, seal, rooms], a room being [name, key,
-- started, keep, closed]. Answers how many did not yet, or nil where there is no such seal. It works beneath a seal.

local seal, rooms = input[2], input[3]
if call('HGET', SEAL, 'id') ~= seal then return done(pack(nil)) end

local changed = 0
for _, place in ipairs(rooms) do
  local room, news = room_of(place), {}
  local before = call('HMGET', room_key(room), 'started', 'keep', 'closed')
  for at, field in ipairs({'started', 'keep', 'closed'}) do
    local moment = place[at + 2]
    if moment and moment > (tonumber(before[at]) or -1) then
      news[#news + 1] = field
      news[#news + 1] = moment
    end
  end
  if #news > 0 then
    remember(room, math.max(place[4] or 0, place[5] or 0), unpack(news))
    changed = changed + 1
  end
end
return done(pack(changed))
