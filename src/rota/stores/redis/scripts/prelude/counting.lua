-- How many jobs there are more of a kind, and whether somebody is to be woken.

local counted = {} -- by queue, by task, by state: how many more there are
local rung = false

local function count_many(queue, task, state, by)
  local states = members_of(members_of(counted, queue), task)
  states[state] = (states[state] or 0) + by
end

local function count(job, by) count_many(job[QUEUE], job[TASK], job[STATE], by) end

-- Wake those who sleep, once the script is done.
local function ring() rung = true end
