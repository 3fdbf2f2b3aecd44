-- Older processes go on: they do not heed pauses.

-- The queues that someone paused; without `paused_until` until someone resumes them. A pause whose time is over counts for nothing.
create table rota_queues (
    name text primary key,
    paused_at bigint not null,
    paused_until bigint,
    paused_by text not null
);
