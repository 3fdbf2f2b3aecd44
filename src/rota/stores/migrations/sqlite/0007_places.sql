-- Older processes end: they count the places of limits otherwise.

-- The places that claims let jobs take in a room, together: `jobs` is the claim by the id of each, and `taken` how many there are.
-- One counts only while its job runs under that very claim.
create table rota_places (
    id integer primary key,
    name text not null,
    key text not null,
    taken integer not null,
    jobs text not null
);

create index rota_places_room on rota_places (name, key);

insert into rota_places (name, key, taken, jobs)
select name, key, count(*), json_group_object(job, claim)
from (select name, key, job, max(claim) as claim from rota_slots group by name, key, job) as places
group by name, key;

-- Older processes still find their places here, to record outcomes and to hand back jobs until they end; they take no new ones.
create table rota_slots_closed (
    job text not null,
    claim integer not null,
    name text not null,
    key text not null,
    kept integer not null default 0 check (kept = 1)
);

insert into rota_slots_closed select job, claim, name, key, 1 from rota_slots;

drop table rota_slots;

alter table rota_slots_closed rename to rota_slots;

create index rota_slots_job on rota_slots (job);

create index rota_slots_room on rota_slots (name, key);
