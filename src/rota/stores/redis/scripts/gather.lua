-- The newest jobs that a filter names, by what finds jobs by their states: [now, filter, before, limit, most, groups, bytes].
--
-- Only states are looked at in which there are such jobs at all, by the numbers kept of their queues and tasks, which are read
-- where they are no more than `groups`. All is read in one step, so that no job is missed for changing its state meanwhile.
-- Answers the jobs; whether there may be more, as these have more bytes together; how many jobs the filter may name, its key
-- and its worker left aside; and how many ids find them. The jobs are nil where these are more than `most`. It only reads.

local filter, before, limit, most, groups, heaviest = unpack(input, 2, 7)
local states, queue, task, _, worker = unpack(filter, 1, 5)
local there, size, asked = 0, 0, {}
for _, state in ipairs(states or {'scheduled', 'queued', 'held', 'running', 'succeeded', 'failed', 'cancelled'}) do asked[state] = {} end

-- What is in each state that is asked for: `there` in the groups that match, and `size` where these are among others.
local function look_up()
  local numbers = call('HGETALL', COUNTS)
  for at = 1, #numbers, 2 do
    local each_queue, each_task, state = numbers[at]:match('^(%Z*)%z(%Z*)%z(%Z*)$')
    local number, entry = tonumber(numbers[at + 1]), asked[state]
    if entry then
      if state ~= 'queued' or not queue or each_queue == queue then entry.size = (entry.size or 0) + number end
      if (not queue or each_queue == queue) and (not task or each_task == task) then entry.there = (entry.there or 0) + number end
    end
  end
  for _, entry in pairs(asked) do
    if entry.there then there, size = there + entry.there, size + entry.size end
  end
end

local ids = {}

local function take(found)
  for _, id in ipairs(found) do ids[#ids + 1] = id end
end

local function take_lines(kind, names)
  for _, name in ipairs(names) do
    for _, priority in ipairs(call('ZRANGE', base .. ':' .. kind .. ':priorities:' .. name, 0, -1)) do
      take(call('ZRANGE', base .. ':' .. kind .. ':' .. priority .. ':' .. name, 0, -1))
    end
  end
end

local function take_all()
  for state, entry in pairs(asked) do
    if not entry.there then -- there is nothing to be found
    elseif state == 'queued' then
      take_lines(state, queue and {queue} or call('SMEMBERS', base .. ':queued'))
    elseif state == 'held' then
      take_lines(state, call('SMEMBERS', base .. ':held'))
    elseif state == 'running' then
      for _, each in ipairs(running_workers()) do take(call('HKEYS', running_key(each))) end
    else
      take(call('ZRANGE', state == 'scheduled' and SCHEDULED or finished_key(state), 0, -1))
    end
  end
end

if worker and states and #states == 1 and states[1] == 'running' then
  take(call('HKEYS', running_key(worker)))
elseif call('HLEN', COUNTS) > groups then
  return done(record(nil, false, nil, nil))
else
  look_up()
  if size > most then return done(record(nil, false, there, size)) end
  take_all()
end

table.sort(ids, function(one, other) return one > other end)
local found, told, weight = matching(filter), {}, 0
for first = 1, #ids, 100 do
  local some = {unpack(ids, first, math.min(first + 99, #ids))}
  fetch(some)
  for _, id in ipairs(some) do
    if #told == limit or weight > heaviest then break end
    if not before or id < before then
      local job, packed = found(id)
      if job then
        told[#told + 1] = tell(id, job, packed)
        weight = weight + #told[#told]
      end
    end
  end
end
return done(array(4) .. list(told) .. pack(weight > heaviest, there, size))
