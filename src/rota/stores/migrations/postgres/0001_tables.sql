-- Older processes end.

-- A job that is not finished. It runs when it has a worker; its state then says where it was claimed from, so that a claim
-- changes no indexed column and is written beside the row that it replaces (fillfactor). No index may know the worker.
-- Rows live for seconds, so vacuum comes by the count of dead rows, not by their share, and does not rest.
create table rota_jobs (
    id uuid primary key,
    task text not null,
    queue text not null,
    args text not null,
    priority integer not null,
    due bigint not null,
    state text not null check (state in ('scheduled', 'queued', 'held')),
    max_attempts integer not null,
    key text,
    key_waiting boolean not null default false,
    created_at bigint not null,
    claim integer not null default 0,
    excused integer not null default 0,
    looks integer not null default 0,
    worker text,
    claimed_at bigint,
    cancelling boolean not null default false,
    reason text,
    progress text
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0
);

create index rota_jobs_ready on rota_jobs (queue, priority desc, due, id) where state = 'queued';

create index rota_jobs_scheduled on rota_jobs (due) where state = 'scheduled';

create unique index rota_jobs_key on rota_jobs (key, task) where key is not null;

-- A finished job.
create table rota_history (
    id uuid primary key,
    task text not null,
    queue text not null,
    state text not null check (state in ('succeeded', 'failed', 'cancelled')),
    priority integer not null,
    due bigint not null,
    created_at bigint not null,
    claim integer not null,
    excused integer not null,
    max_attempts integer not null,
    args text not null,
    key text,
    key_waiting boolean not null,
    worker text,
    claimed_at bigint,
    finished_at bigint not null,
    took bigint,
    result text,
    reason text,
    progress text
);

-- A block-range index would be a little cheaper to write, but rows that fill the room of pruned ones widen its ranges until it
-- no longer tells old from new. The state comes first, so that states that are kept for ever are not waded through.
create index rota_history_finished on rota_history (state, finished_at);

create index rota_history_failed on rota_history (id) where state = 'failed';

create index rota_history_key on rota_history (key, id) where key is not null;

-- An attempt that did not succeed.
create table rota_attempts (
    job uuid not null,
    claim integer not null,
    attempt integer not null,
    worker text,
    ended_at bigint not null,
    outcome text not null,
    took bigint not null,
    error_type text,
    error_message text,
    error_trace text,
    primary key (job, claim)
);

-- A few rows that are written often.
create table rota_workers (
    id text primary key,
    name text not null,
    host text not null,
    pid bigint not null,
    queues text,
    tasks text not null,
    concurrency integer not null,
    lease bigint not null,
    version text not null,
    started_at bigint not null,
    lease_until bigint not null,
    asleep boolean not null default false
) with (
    fillfactor = 20,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0
);

-- Empty while all are awake, so that an insert sees at a glance that it need not ring.
create index rota_workers_asleep on rota_workers (id) where asleep;

create table rota_tasks (
    name text primary key,
    queue text not null,
    priority integer not null,
    max_attempts integer not null
);
