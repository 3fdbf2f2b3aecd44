-- The lines of these names: [now, kind, names]. Answers the priorities of each. It only reads.

local kind, names = input[2], input[3]
local priorities = {}
for number, name in ipairs(names) do
  priorities[number] = call('ZRANGE', base .. ':' .. kind .. ':priorities:' .. name, 0, -1)
end
return done(pack(priorities))
