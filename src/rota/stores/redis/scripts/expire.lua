-- End the lease of a worker that is known: [now, worker].

call('ZADD', LEASES, 'XX', 'LT', now, input[2])
return done(pack(nil))
