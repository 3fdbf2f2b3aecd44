-- Older processes end: they do not count the places that workers count themselves.

-- How many places a worker has in a room by claims that were noted nowhere else. It tells so with what it ends and claims, and all
-- of it is forgotten with the worker. `worker` is its id and the line over which it told, with a slash between them.
create table rota_tallies (
    name text not null,
    key text not null,
    worker text not null,
    taken integer not null,
    primary key (name, key, worker)
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);
