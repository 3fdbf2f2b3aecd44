-- Remember the declared defaults of tasks: [now, tasks], each being [name, queue, priority, max attempts].

for _, task in ipairs(input[2]) do call('HSET', TASKS, task[1], record(unpack(task, 2, 4))) end
return done(pack(nil))
