-- How many jobs there are by queue, task and state: [now, cursor, most]. All at once where there are no more than `most`
-- numbers, else a part of them. Answers the cursor to go on with, "0" at the end; the numbers, each behind its name; and the
-- moment. It only reads.

local cursor, most = input[2], input[3]
local numbers
if cursor == '0' and call('HLEN', COUNTS) <= most then
  numbers = call('HGETALL', COUNTS)
else
  cursor, numbers = unpack(call('HSCAN', COUNTS, cursor, 'COUNT', most))
end
return done(record(cursor, numbers, now))
