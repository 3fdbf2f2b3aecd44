-- Those who may have running jobs, by their ids: [now]. It only reads.

return done(pack(running_workers()))
