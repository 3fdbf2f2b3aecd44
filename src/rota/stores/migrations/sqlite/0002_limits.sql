-- Older processes end: they know no limits.

-- The limit that holds a job; of a queued one, the limit that held it last.
alter table rota_jobs add column held_limit text;

alter table rota_jobs add column held_key text;

-- A room is opened for each queue, so that what waits for a worker of one queue keeps nobody else waiting.
create index rota_jobs_held on rota_jobs (held_limit, held_key, queue, priority desc, due, id) where state = 'held';

-- What a limit, or one key of it, has let through. `keep_until` is until when a start counts, `opens_at` when time alone makes
-- room, and `look_at` when a claim is to look at the jobs that the room holds: null where it holds none.
create table rota_rooms (
    name text not null,
    key text not null,
    started_at integer,
    keep_until integer,
    closed_until integer,
    opens_at integer,
    look_at integer,
    primary key (name, key)
);

create index rota_rooms_look on rota_rooms (look_at) where look_at is not null;

create index rota_rooms_opens on rota_rooms (opens_at) where opens_at is not null;

-- The places that running jobs take. One counts only while its job runs under that very claim.
create table rota_slots (
    job text not null,
    claim integer not null,
    name text not null,
    key text not null
);

create index rota_slots_job on rota_slots (job);

create index rota_slots_room on rota_slots (name, key);

-- The sizes that were set at run time.
create table rota_limits (
    name text primary key,
    size text not null
);
