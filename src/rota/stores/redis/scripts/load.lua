-- Take in jobs of another store as they are, all or none: [now, seal, jobs], a job being [id, fields, attempts]. One whose id
-- is known stays as it is. Answers how many were new; or the id of the unfinished job that has the key of one; or nil where
-- there is no such seal. It works beneath a seal. It takes memory.

local seal, jobs = input[2], input[3]
if call('HGET', SEAL, 'id') ~= seal then return done(pack(nil)) end

local ids, fresh, keys = {}, {}, {}
for number, each in ipairs(jobs) do ids[number] = each[1] end
fetch(ids)
for _, each in ipairs(jobs) do
  local id, job = each[1], each[2]
  if not load(id) and not fresh[id] then
    fresh[id] = true
    if job[KEY] and not FINAL[job[STATE]] then
      local name = job[TASK] .. '\0' .. job[KEY]
      local taken = keys[name] or holder(job)
      if taken then return done(pack(taken)) end
      keys[name] = id
    end
  end
end

local added = 0
for _, each in ipairs(jobs) do
  local id, job, attempts = unpack(each)
  if fresh[id] then
    fresh[id] = nil
    for _, field in ipairs({ARGS, CONTEXT, RESULT, REASON, PROGRESS}) do put(id, job, field, job[field]) end
    if not FINAL[job[STATE]] then hold_key(id, job) end
    if job[KEY] then add(KEYED, 0, keyed(job[KEY], id)) end
    for _, attempt in ipairs(attempts) do call('RPUSH', attempts_key(id), record(unpack(attempt, 1, 9))) end
    add(ALL, 0, id)
    if job[STATE] == 'running' and call('HEXISTS', WORKERS, job[WORKER]) == 0 then call('SADD', STRANGERS, job[WORKER]) end
    place(id, job)
    save(id, job)
    added = added + 1
  end
end
rung = false -- nobody can claim yet
return done(pack(added))
