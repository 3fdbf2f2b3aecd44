-- Hand back what a worker holds besides the jobs in its hand: [now, worker, in hand]. Answers how many.

local worker, in_hand = input[2], {}
for _, id in ipairs(input[3]) do in_hand[id] = true end
local strays = 0
for _, id in ipairs(call('HKEYS', running_key(worker))) do
  if not in_hand[id] and hand_back(worker, id, 'its worker never heard that it had claimed it') then strays = strays + 1 end
end
return done(pack(strays))
