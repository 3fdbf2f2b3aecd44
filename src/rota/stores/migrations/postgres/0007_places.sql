-- Older processes end: they count the places of limits otherwise.

-- The places that claims let jobs take in a room, together: `jobs` is the claim by the id of each, and `taken` how many there are.
-- One counts only while its job runs under that very claim.
create table rota_places (
    id bigint generated always as identity primary key,
    name text not null,
    key text not null,
    taken integer not null,
    jobs jsonb not null
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

create index rota_places_room on rota_places (name, key);

insert into rota_places (name, key, taken, jobs)
select name, key, count(*), jsonb_object_agg(job, claim)
from (select name, key, job, max(claim) as claim from rota_slots group by name, key, job) as places
group by name, key;

-- Older processes still find their places here, to record outcomes and to hand back jobs until they end; they take no new ones.
alter table rota_slots add constraint rota_slots_closed check (false) not valid;
