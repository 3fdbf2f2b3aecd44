-- Older processes end.

-- A job that is not finished. It runs when it has a worker; its state then says where it was claimed from.
create table rota_jobs (
    id text primary key,
    task text not null,
    queue text not null,
    args text not null,
    priority integer not null,
    due integer not null,
    state text not null check (state in ('scheduled', 'queued', 'held')),
    max_attempts integer not null,
    key text,
    key_waiting integer not null default 0,
    created_at integer not null,
    claim integer not null default 0,
    excused integer not null default 0,
    looks integer not null default 0,
    worker text,
    claimed_at integer,
    cancelling integer not null default 0,
    reason text,
    progress text
);

create index rota_jobs_ready on rota_jobs (queue, priority desc, due, id) where state = 'queued' and worker is null;

create index rota_jobs_scheduled on rota_jobs (due) where state = 'scheduled';

create unique index rota_jobs_key on rota_jobs (key, task) where key is not null;

-- A finished job.
create table rota_history (
    id text primary key,
    task text not null,
    queue text not null,
    state text not null check (state in ('succeeded', 'failed', 'cancelled')),
    priority integer not null,
    due integer not null,
    created_at integer not null,
    claim integer not null,
    excused integer not null,
    max_attempts integer not null,
    args text not null,
    key text,
    key_waiting integer not null,
    worker text,
    claimed_at integer,
    finished_at integer not null,
    took integer,
    result text,
    reason text,
    progress text
);

-- On an expression, so that only pruning uses it: SQLite would take it for any search by state, and then sort all it found.
create index rota_history_finished on rota_history (state || '', finished_at);

create index rota_history_failed on rota_history (id) where state = 'failed';

create index rota_history_key on rota_history (key, id) where key is not null;

-- An attempt that did not succeed.
create table rota_attempts (
    job text not null,
    claim integer not null,
    attempt integer not null,
    worker text,
    ended_at integer not null,
    outcome text not null,
    took integer not null,
    error_type text,
    error_message text,
    error_trace text,
    primary key (job, claim)
);

create table rota_workers (
    id text primary key,
    name text not null,
    host text not null,
    pid integer not null,
    queues text,
    tasks text not null,
    concurrency integer not null,
    lease integer not null,
    version text not null,
    started_at integer not null,
    lease_until integer not null,
    asleep integer not null default 0
);

create table rota_tasks (
    name text primary key,
    queue text not null,
    priority integer not null,
    max_attempts integer not null
);
