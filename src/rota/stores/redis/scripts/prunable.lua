-- How many jobs in final states ended longer ago than an age: [now, ages], an age being [state, age]. It only reads.

local counts = {}
for number, each in ipairs(input[2]) do
  counts[number] = call('ZCOUNT', finished_key(each[1]), '-inf', before_moment(now - each[2]))
end
return done(pack(counts))
