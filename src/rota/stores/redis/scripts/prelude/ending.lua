-- The end of a script: all that is still to be written, and names of lines that are empty by now are forgotten. Returns the
-- script's answer, which is packed.
local function done(packed)
  settle()
  settle_rooms()
  for queue, tasks in pairs(counted) do
    for task, states in pairs(tasks) do
      for state, by in pairs(states) do
        local name = queue .. '\0' .. task .. '\0' .. state
        if by ~= 0 and call('HINCRBY', COUNTS, name, by) <= 0 then call('HDEL', COUNTS, name) end
      end
    end
  end
  for key, each in pairs(lines) do
    if each.left and call('EXISTS', key) == 0 then
      local priorities = base .. ':' .. each.kind .. ':priorities:' .. each.name
      call('ZREM', priorities, each.priority)
      if call('EXISTS', priorities) == 0 then call('SREM', base .. ':' .. each.kind, each.name) end
    end
  end
  if rung and call('EXISTS', SLEEPERS) == 1 then call('PUBLISH', RING, '') end
  return packed
end
