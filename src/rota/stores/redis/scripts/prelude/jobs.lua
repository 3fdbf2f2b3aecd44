-- A job, from its coming in to its end.

-- A job by its id, and as it is packed; nil where there is none.
local function load(id)
  local packed = known[id]
  if packed == nil then packed = call('GET', job_key(id)) end
  if not packed then return nil end
  local job, claim, worker, claimed, finished, took, result, places = cmsgpack.unpack(packed)
  if claim then
    job[STATE], job[CLAIM], job[WORKER], job[CLAIMED], job.parts = 'running', claim, worker, claimed, 4
  end
  if finished then
    job[STATE], job[FINISHED], job[TOOK], job[RESULT], job.parts = 'succeeded', finished, took, result, 7
    job[REASON], job[LOOKS] = nil, nil
  end
  if places then job[PLACES], job.parts = places, 9 end
  return job, packed
end

-- Have a job written, and answer it packed. Fields on which something else depends are changed by the functions below.
local function save(id, job)
  local state = job[STATE]
  job[PLAIN] = (state == 'queued' or state == 'scheduled') and not (job[KEY] or job[ROOM] or job[PLACES])
    and job[ARGS] ~= true and job[CONTEXT] ~= true and job[REASON] ~= true and job[PROGRESS] ~= true
  job.parts = nil
  local last = FIELDS
  while job[last] == nil do last = last - 1 end
  local packed = array(last) .. pack(unpack(job, 1, last))
  known[id], unsaved[id] = packed, packed
  if state == 'running' then start(running_key(job[WORKER]), id, packed) end
  return packed
end

-- What begins a plain job, if it is one: its task and its queue, packed, and the number of its claims.
local function heading(packed)
  local from = packed:byte() < 0xa0 and 2 or 4
  local at = from
  for _ = 1, 2 do
    local kind, length = packed:byte(at, at + 1)
    if kind >= 0xa0 and kind <= 0xbf then
      at = at + 1 + kind - 0xa0
    elseif kind == 0xd9 then
      at = at + 2 + length
    else
      return nil
    end
  end
  local claim, excused, plain = packed:byte(at, at + 2)
  if claim < 0x7f and excused < 0x80 and plain == 0xc3 then return packed:sub(from, at - 1), claim end
end

-- Set one of a job's texts: ARGS, CONTEXT, RESULT, REASON or PROGRESS.
local function put(id, job, field, text)
  if text and #text > LONG then
    call('HSET', texts_key(id), field, text)
    text = true
  elseif job[field] == true then
    call('HDEL', texts_key(id), field)
  end
  job[field] = text
end

-- A job as an answer has it: its id, by their numbers the texts that are kept aside, and what it is.
local function tell(id, job, packed)
  local texts
  if job[ARGS] == true or job[CONTEXT] == true or job[RESULT] == true or job[REASON] == true or job[PROGRESS] == true then
    texts = call('HGETALL', texts_key(id))
  end
  return array(2 + (job.parts or 1)) .. pack(id, texts) .. packed
end

-- The name of the line in which a job stands that a room holds: so those of one queue, and of some tasks, are found in order.
local function held_line(job) return job[QUEUE] .. '\0' .. job[TASK] .. '\0' .. room_of(job[ROOM]) end

-- Take a job out of what finds it by its state; `place` puts it where it is to be found by another. Between them its state, its
-- due time, its priority, its queue, its worker and its room may change; then it is to be saved.
local function displace(id, job)
  if placed[id] then settle() end
  local state = job[STATE]
  count(job, -1)
  if state == 'queued' then
    leave_line('queued', job[QUEUE], job[PRIORITY], id)
    if job[ROOM] then look_at(room_of(job[ROOM])) end -- others may be held behind it
  elseif state == 'scheduled' then
    remove(SCHEDULED, id)
  elseif state == 'held' then
    leave_line('held', held_line(job), job[PRIORITY], id)
    count_held(room_of(job[ROOM]), job[QUEUE], job[TASK], -1)
  elseif state == 'running' then
    stop(running_key(job[WORKER]), id)
    if job[PLACES] then
      give_back(job[PLACES], 1)
      job[PLACES] = nil
    end
  elseif FINAL[state] then
    remove(finished_key(state), id)
  end
end

local function place(id, job)
  placed[id] = true
  local state = job[STATE]
  count(job, 1)
  if state == 'queued' then
    join_line('queued', job[QUEUE], job[PRIORITY], job[DUE], id)
    ring()
  elseif state == 'scheduled' then
    add(SCHEDULED, job[DUE], id)
    ring() -- it may be due sooner than what they wait for
    job[ROOM] = nil
  elseif state == 'held' then
    join_line('held', held_line(job), job[PRIORITY], job[DUE], id)
    count_held(room_of(job[ROOM]), job[QUEUE], job[TASK], 1)
  elseif state == 'running' then
    if job[PLACES] then take_places(job[PLACES], 1) end
  elseif FINAL[state] then
    add(finished_key(state), job[FINISHED], id)
  end
end

-- The unfinished job that has the key of this one, if there is one.
local function holder(job)
  return job[KEY] and call('HGET', KEYS_HELD, job[TASK] .. '\0' .. job[KEY])
end

-- Have a job hold its key from now on.
local function hold_key(id, job)
  if job[KEY] then call('HSET', KEYS_HELD, job[TASK] .. '\0' .. job[KEY], id) end
end

-- Let go of its key, which the job keeps for those who look for it.
local function free_key(job)
  if job[KEY] then call('HDEL', KEYS_HELD, job[TASK] .. '\0' .. job[KEY]) end
end

-- Take its key off a job for good.
local function drop_key(id, job)
  if job[KEY] then
    if not FINAL[job[STATE]] then free_key(job) end
    remove(KEYED, keyed(job[KEY], id))
    job[KEY] = nil
  end
end

-- Delete a job that was displaced, with all that is remembered of it.
local function forget(id, job)
  drop_key(id, job)
  remove(ALL, id)
  known[id], unsaved[id] = false, nil
  call('DEL', job_key(id), texts_key(id), attempts_key(id))
end

-- Remember how an attempt ended that did not succeed.
local function note(id, job, outcome, took, kind, message, trace)
  local attempt = job[CLAIM] - job[EXCUSED]
  call('RPUSH', attempts_key(id), record(job[CLAIM], attempt, job[WORKER], now, outcome, took, kind, message, trace))
end

-- Bring a job that is not finished into a final state, for a reason or nil, and save it.
local function conclude(id, job, state, reason, took)
  displace(id, job)
  free_key(job)
  put(id, job, REASON, reason)
  job[STATE], job[FINISHED], job[TOOK] = state, now, took
  job[CANCELLING], job[LOOKS], job[ROOM] = nil, nil, nil
  place(id, job)
  save(id, job)
end

-- Let a running job wait for another attempt: `wait` from now, or where it was in its queue without one. It is saved.
local function put_back(id, job, reason, wait)
  displace(id, job)
  put(id, job, REASON, reason)
  job[WORKER], job[CLAIMED] = nil, nil
  job[STATE] = wait and wait > 0 and 'scheduled' or 'queued'
  if wait then job[DUE] = now + wait end
  place(id, job)
  save(id, job)
end
