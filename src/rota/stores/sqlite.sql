-- The queries that SQLite runs in its own form.
--
-- A query may be several statements: they run one after the other with the same parameters, and the first that answers rows
-- gives the query's answer. A column called `packed` holds all rows in one JSON array: stepping through rows gives up and
-- takes back Python's lock for each, which costs milliseconds a row while another thread computes.

-- name: insert
-- Add jobs, save those whose id or key is taken, and answer how many were added.
insert into rota_jobs (id, task, queue, args, priority, due, state, max_attempts, key, key_waiting, created_at, context)
select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]'),
       json_extract(value, '$[4]'), coalesce(json_extract(value, '$[5]'), :now + json_extract(value, '$[6]')),
       case when coalesce(json_extract(value, '$[5]') - :now, json_extract(value, '$[6]')) > 0 then 'scheduled' else 'queued' end,
       json_extract(value, '$[7]'), json_extract(value, '$[8]'), json_extract(value, '$[9]'), :now, json_extract(value, '$[10]')
from json_each(:jobs)
where not exists (select 1 from rota_history where id = json_extract(value, '$[0]'))
on conflict do nothing;
select changes()

-- name: insert_one
-- Add a job, save where its id or key is taken.
insert into rota_jobs (id, task, queue, args, priority, due, state, max_attempts, key, key_waiting, created_at, context)
select :job_id, :task, :queue, :args, :priority, coalesce(:run_at, :now + :delay),
       case when coalesce(:run_at - :now, :delay) > 0 then 'scheduled' else 'queued' end, :max_attempts, :key, :key_waiting, :now,
       :context
where not exists (select 1 from rota_history where id = :job_id)
on conflict do nothing
returning 1

-- name: peek
-- Whether a claim on these queues would find anything.
select 1
from json_each(:queues) as q
where exists (select 1 from rota_jobs where queue = q.value and state = 'queued' and worker is null)
limit 1

-- name: claim
-- Take the first queued jobs of these queues for a known worker. Heavy arguments are left out, to be fetched by `heavy`.
select json_group_array(json_array(
           id, task, queue, case when length(args) < 65536 then args end, claim + 1, excused, max_attempts, priority, due,
           case when key_waiting then null else key end, looks, context
       )) as packed
from rota_jobs
where rowid in (
    select j.rowid
    from json_each(:queues) as q cross join rota_jobs as j
    where j.rowid in (
        select rowid from rota_jobs
        where queue = q.value and state = 'queued' and worker is null
        order by priority desc, due, id
        limit :limit
    )
    order by j.priority desc, j.due, j.id
    limit :limit
)
and exists (select 1 from rota_workers where id = :worker);
update rota_jobs
set worker = :worker, claim = claim + 1, claimed_at = :now, key = case when key_waiting then null else key end
where rowid in (
    select j.rowid
    from json_each(:queues) as q cross join rota_jobs as j
    where j.rowid in (
        select rowid from rota_jobs
        where queue = q.value and state = 'queued' and worker is null
        order by priority desc, due, id
        limit :limit
    )
    order by j.priority desc, j.due, j.id
    limit :limit
)
and exists (select 1 from rota_workers where id = :worker)

-- name: heavy
-- Arguments that are quicker to read as they are than packed into JSON.
select id, args from rota_jobs where id in :ids

-- name: succeed
-- Move jobs that succeeded to the history, where the attempt still counts: [claim, took, result] by id.
select json_group_array(json_array(j.id)) as packed
from json_each(:ends) as e cross join rota_jobs as j
where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]');
insert into rota_history (id, task, queue, state, priority, due, created_at, claim, excused, max_attempts, args, key,
                          key_waiting, worker, claimed_at, finished_at, took, result, reason, progress, context)
select j.id, j.task, j.queue, 'succeeded', j.priority, j.due, j.created_at, j.claim, j.excused,
       j.max_attempts, j.args, j.key, j.key_waiting, j.worker, j.claimed_at, :now, json_extract(e.value, '$[1]'),
       json_extract(e.value, '$[2]'), null, j.progress, j.context
from json_each(:ends) as e cross join rota_jobs as j
where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]');
delete from rota_jobs
where rowid in (
    select j.rowid
    from json_each(:ends) as e cross join rota_jobs as j
    where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]')
)

-- name: drop
-- Delete finished jobs that nobody wants to keep, where the attempt still counts: [claim] by id.
select json_group_array(json_array(j.id)) as packed
from json_each(:ends) as e cross join rota_jobs as j
where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]');
delete from rota_attempts
where job in (
    select j.id
    from json_each(:ends) as e cross join rota_jobs as j
    where j.id = e.key and j.claim > 1 and j.worker = :worker and j.claim = json_extract(e.value, '$[0]')
);
delete from rota_jobs
where rowid in (
    select j.rowid
    from json_each(:ends) as e cross join rota_jobs as j
    where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]')
)

-- name: fail
-- Move jobs that failed or were cancelled to the history and remember the attempt, where it still counts:
-- [claim, took, state, reason, outcome, type, message, trace] by id.
select json_group_array(json_array(j.id)) as packed
from json_each(:ends) as e cross join rota_jobs as j
where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]');
insert into rota_attempts (job, claim, attempt, worker, ended_at, outcome, took, error_type, error_message, error_trace)
select j.id, j.claim, j.claim - j.excused, j.worker, :now, json_extract(e.value, '$[4]'), json_extract(e.value, '$[1]'),
       json_extract(e.value, '$[5]'), json_extract(e.value, '$[6]'), json_extract(e.value, '$[7]')
from json_each(:ends) as e cross join rota_jobs as j
where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]');
insert into rota_history (id, task, queue, state, priority, due, created_at, claim, excused, max_attempts, args, key,
                          key_waiting, worker, claimed_at, finished_at, took, result, reason, progress, context)
select j.id, j.task, j.queue, json_extract(e.value, '$[2]'), j.priority, j.due, j.created_at, j.claim, j.excused,
       j.max_attempts, j.args, j.key, j.key_waiting, j.worker, j.claimed_at, :now, json_extract(e.value, '$[1]'), null,
       json_extract(e.value, '$[3]'), j.progress, j.context
from json_each(:ends) as e cross join rota_jobs as j
where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]');
delete from rota_jobs
where rowid in (
    select j.rowid
    from json_each(:ends) as e cross join rota_jobs as j
    where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]')
)

-- name: put_back
-- Let jobs wait for another attempt and remember this one, where it still counts:
-- [claim, took, wait, reason, outcome, type, message, trace, excuse, looks] by id. A job that was asked to be cancelled is cancelled.
select json_group_array(json_array(j.id)) as packed
from json_each(:ends) as e cross join rota_jobs as j
where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]');
insert into rota_attempts (job, claim, attempt, worker, ended_at, outcome, took, error_type, error_message, error_trace)
select j.id, j.claim, j.claim - j.excused, j.worker, :now, json_extract(e.value, '$[4]'), json_extract(e.value, '$[1]'),
       json_extract(e.value, '$[5]'), json_extract(e.value, '$[6]'), json_extract(e.value, '$[7]')
from json_each(:ends) as e cross join rota_jobs as j
where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]');
insert into rota_history (id, task, queue, state, priority, due, created_at, claim, excused, max_attempts, args, key,
                          key_waiting, worker, claimed_at, finished_at, took, result, reason, progress, context)
select j.id, j.task, j.queue, 'cancelled', j.priority, j.due, j.created_at, j.claim, j.excused,
       j.max_attempts, j.args, j.key, j.key_waiting, j.worker, j.claimed_at, :now, json_extract(e.value, '$[1]'), null,
       'cancelled while running', j.progress, j.context
from json_each(:ends) as e cross join rota_jobs as j
where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]') and j.cancelling;
delete from rota_jobs
where rowid in (
    select j.rowid
    from json_each(:ends) as e cross join rota_jobs as j
    where j.id = e.key and j.worker = :worker and j.claim = json_extract(e.value, '$[0]') and j.cancelling
);
update rota_jobs
set state = case when back.wait > 0 then 'scheduled' else 'queued' end, due = :now + back.wait, reason = back.reason,
    excused = excused + back.excuse, looks = back.looks, worker = null, claimed_at = null
from (
    select key as id, json_extract(value, '$[0]') as claim, json_extract(value, '$[2]') as wait,
           json_extract(value, '$[3]') as reason, json_extract(value, '$[8]') as excuse, json_extract(value, '$[9]') as looks
    from json_each(:ends)
) as back
where rota_jobs.id = back.id and worker = :worker and rota_jobs.claim = back.claim

-- name: progress
-- Store the progress of running jobs, where the attempt still counts: [claim, progress] by id.
update rota_jobs
set progress = said.progress
from (
    select key as id, json_extract(value, '$[0]') as claim, json_extract(value, '$[1]') as progress from json_each(:reports)
) as said
where rota_jobs.id = said.id and worker = :worker and rota_jobs.claim = said.claim

-- name: promote
-- Queue the scheduled jobs whose time has come, the earliest first, and answer how many.
update rota_jobs
set state = 'queued'
where rowid in (select rowid from rota_jobs where state = 'scheduled' and due <= :now order by due limit :limit);
select changes()

-- name: conclude
-- Move unfinished jobs to the history in a final state.
insert into rota_history (id, task, queue, state, priority, due, created_at, claim, excused, max_attempts, args, key,
                          key_waiting, worker, claimed_at, finished_at, took, result, reason, progress, context)
select id, task, queue, :state, priority, due, created_at, claim, excused, max_attempts, args, key, key_waiting,
       worker, claimed_at, :now, null, null, :reason, progress, context
from rota_jobs
where id in :ids;
delete from rota_jobs where id in :ids

-- name: retry_finished
-- Let finished jobs run again now, save those whose key is taken, and answer which.
insert into rota_jobs (id, task, queue, args, priority, due, state, max_attempts, key, key_waiting, created_at, claim,
                       excused, reason, context)
select id, task, queue, args, priority, :now, 'queued', max_attempts, key, key_waiting, created_at, claim, claim, reason, context
from rota_history
where id in :ids
on conflict do nothing;
select id from rota_jobs where id in :ids;
delete from rota_history where id in :ids and id in (select id from rota_jobs)

-- name: old
-- The first jobs in a final state that ended before a moment.
select id from rota_history where state || '' = :state and finished_at < :now - :age order by finished_at limit :limit

-- name: prunable
-- How many jobs in a final state ended before a moment.
select count(*) from rota_history where state || '' = :state and finished_at < :now - :age

-- name: latest
-- The jobs in a final state that ended last.
select id, task, queue, state, priority, due, created_at,
       claim, excused, max_attempts, args, key, worker, claimed_at, finished_at,
       took, result, reason, progress, false, null, null, key_waiting, context
from rota_history
where state || '' = :state
order by finished_at desc
limit :limit

-- name: flow
-- How many jobs ended and how many came in lately, by queue, worker and final state. Ids begin with the millisecond of their making.
select queue, worker, state, count(*)
from rota_history
where state || '' in ('succeeded', 'failed', 'cancelled') and finished_at > :now - :span
group by 1, 2, 3
union all
select queue, null, null, count(*)
from (
    select queue
    from rota_jobs
    where id > printf('%08x-%04x-7000-8000-000000000000', ((:now - :span) / 1000 - 5000) >> 16, ((:now - :span) / 1000 - 5000) & 65535)
      and created_at > :now - :span
    union all
    select queue
    from rota_history
    where id > printf('%08x-%04x-7000-8000-000000000000', ((:now - :span) / 1000 - 5000) >> 16, ((:now - :span) / 1000 - 5000) & 65535)
      and created_at > :now - :span
)
group by 1

-- name: queues
-- The queues that have queued jobs, found by hopping from name to name along the index.
with recursive hop (name) as (
    select (select min(queue) from rota_jobs where state = 'queued' and worker is null)
    union all
    select (select min(queue) from rota_jobs where state = 'queued' and worker is null and queue > hop.name)
    from hop
    where hop.name is not null
)
select name from hop where name is not null

-- name: ring
-- Nothing: workers that sleep see every commit.
select 1

-- name: me
-- Whether a worker is known.
select 1 from rota_workers where id = :worker

-- name: rooms_due
-- Whether there are rooms to look at whose limits, or whose held jobs' tasks, this worker knows.
select 1
from rota_rooms as r
where look_at <= :now
  and (
      name in :names
      or exists (
          select 1
          from rota_jobs
          where state = 'held' and held_limit = r.name and held_key = r.key
            and task in (select value from json_each((select tasks from rota_workers where id = :worker)))
      )
  )
limit 1

-- name: due_rooms
-- The rooms to look at whose limits, or whose held jobs' tasks, this worker knows.
select name, key
from rota_rooms as r
where look_at <= :now
  and (
      name in :names
      or exists (
          select 1
          from rota_jobs
          where state = 'held' and held_limit = r.name and held_key = r.key
            and task in (select value from json_each((select tasks from rota_workers where id = :worker)))
      )
  )
order by look_at
limit :limit

-- name: candidates
-- The first queued jobs of these queues, and which limit held each last.
select json_group_array(json_array(
           id, task, queue, case when length(args) < 65536 then args end, claim + 1, excused, max_attempts, priority, due,
           case when key_waiting then null else key end, looks, context, held_limit, held_key
       )) as packed
from rota_jobs
where rowid in (
    select j.rowid
    from json_each(:queues) as q cross join rota_jobs as j
    where j.rowid in (
        select rowid from rota_jobs
        where queue = q.value and state = 'queued' and worker is null
        order by priority desc, due, id
        limit :limit
    )
    order by j.priority desc, j.due, j.id
    limit :limit
)

-- name: lock_rooms
-- Make sure of these rooms: [name, key, …]. Nobody else writes meanwhile.
insert into rota_rooms (name, key)
select json_extract(value, '$[0]'), json_extract(value, '$[1]')
from json_each(:rooms)
where true
on conflict do nothing

-- name: measure
-- What is known of these rooms: [name, key, enough]. Where more places than enough are noted, those that count are counted, and
-- notes are named of which none does.
select name, key, started_at, closed_until, opens_at, look_at, taken,
       case when taken > enough then (
           select count((select 1 from rota_jobs where id = place.key and claim = place.value and worker is not null))
           from rota_places as p cross join json_each(p.jobs) as place
           where p.name = room.name and p.key = room.key
       ) end,
       case when taken > enough then (
           select json_group_array(p.id)
           from rota_places as p
           where p.name = room.name and p.key = room.key
             and not exists (
                 select 1
                 from json_each(p.jobs) as place
                 where exists (select 1 from rota_jobs where id = place.key and claim = place.value and worker is not null)
             )
       ) end,
       :now
from (
    select r.name, r.key, r.started_at, r.closed_until, r.opens_at, r.look_at, json_extract(o.value, '$[2]') as enough,
           (select coalesce(sum(taken), 0) from rota_places where name = r.name and key = r.key) as taken
    from json_each(:rooms) as o
    cross join rota_rooms as r on r.name = json_extract(o.value, '$[0]') and r.key = json_extract(o.value, '$[1]')
) as room

-- name: drop_places
-- Delete notes of places of which none counts.
delete from rota_places where id in (select value from json_each(:over))

-- name: rooms_taken
-- The rooms in which these jobs may have places. This reads all notes of places, of which there are few, and few need it.
select distinct name, key
from rota_places
where exists (select 1 from json_each(jobs) as place where place.key in :ids)

-- name: occupy
-- Note the places that jobs take: [name, key, how many, claim by id].
insert into rota_places (name, key, taken, jobs)
select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]')
from json_each(:places)

-- name: hold
-- Have limits hold these queued jobs: [name, key] by id.
update rota_jobs
set state = 'held', held_limit = by.name, held_key = by.key
from (
    select key as id, json_extract(value, '$[0]') as name, json_extract(value, '$[1]') as key from json_each(:held)
) as by
where rota_jobs.id = by.id

-- name: note_rooms
-- Note what became of rooms: [name, key, started_at, keep_until, opens_at, look_at]. One that holds nobody is not looked at.
insert into rota_rooms (name, key, started_at, keep_until, opens_at, look_at)
select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]'),
       json_extract(value, '$[4]'),
       case when exists (
           select 1
           from rota_jobs
           where state = 'held' and held_limit = json_extract(value, '$[0]') and held_key = json_extract(value, '$[1]')
       ) then json_extract(value, '$[5]') end
from json_each(:rooms)
where true
on conflict (name, key) do update
set started_at = coalesce(excluded.started_at, started_at), keep_until = coalesce(excluded.keep_until, keep_until),
    opens_at = excluded.opens_at, look_at = excluded.look_at

-- name: free
-- Queue the first so many jobs of each queue that these rooms hold: [name, key]. Answers the queue of each.
with recursive hop (name, key, queue) as (
    select json_extract(o.value, '$[0]'), json_extract(o.value, '$[1]'),
           (select min(queue)
            from rota_jobs
            where state = 'held' and held_limit = json_extract(o.value, '$[0]') and held_key = json_extract(o.value, '$[1]'))
    from json_each(:rooms) as o
    union all
    select name, key,
           (select min(queue)
            from rota_jobs
            where state = 'held' and held_limit = hop.name and held_key = hop.key and queue > hop.queue)
    from hop
    where queue is not null
)
update rota_jobs
set state = 'queued'
where rowid in (
    select j.rowid
    from hop cross join rota_jobs as j
    where hop.queue is not null
      and j.rowid in (
          select rowid
          from rota_jobs
          where state = 'held' and held_limit = hop.name and held_key = hop.key and queue = hop.queue
          order by priority desc, due, id
          limit :many
      )
)
returning queue

-- name: free_ours
-- The same, of the tasks alone that this worker knows.
with recursive hop (name, key, queue) as (
    select json_extract(o.value, '$[0]'), json_extract(o.value, '$[1]'),
           (select min(queue)
            from rota_jobs
            where state = 'held' and held_limit = json_extract(o.value, '$[0]') and held_key = json_extract(o.value, '$[1]'))
    from json_each(:rooms) as o
    union all
    select name, key,
           (select min(queue)
            from rota_jobs
            where state = 'held' and held_limit = hop.name and held_key = hop.key and queue > hop.queue)
    from hop
    where queue is not null
)
update rota_jobs
set state = 'queued'
where rowid in (
    select j.rowid
    from hop cross join rota_jobs as j
    where hop.queue is not null
      and j.rowid in (
          select rowid
          from rota_jobs
          where state = 'held' and held_limit = hop.name and held_key = hop.key and queue = hop.queue
            and task in (select value from json_each((select tasks from rota_workers where id = :worker)))
          order by priority desc, due, id
          limit :many
      )
)
returning queue

-- name: close_rooms
-- Let none into these rooms for so long: [name, key, span].
update rota_rooms
set closed_until = max(coalesce(rota_rooms.closed_until, 0), :now + closing.span)
from (
    select json_extract(value, '$[0]') as name, json_extract(value, '$[1]') as key, max(json_extract(value, '$[2]')) as span
    from json_each(:closes)
    group by 1, 2
) as closing
where rota_rooms.name = closing.name and rota_rooms.key = closing.key

-- name: look_again
-- Have a claim look at all rooms that hold jobs.
update rota_rooms set look_at = :now where look_at > :now

-- name: look_at_rooms
-- Have a claim look at these rooms, where they hold jobs: [name, key].
update rota_rooms
set look_at = :now
where rowid in (
    select r.rowid
    from json_each(:rooms) as o
    cross join rota_rooms as r on r.name = json_extract(o.value, '$[0]') and r.key = json_extract(o.value, '$[1]')
    where r.look_at > :now
)

-- name: rooms
-- Each room under which a job runs, is held, or started.
select * from (
    select name, key,
           (select count((select 1 from rota_jobs where id = place.key and claim = place.value and worker is not null))
            from rota_places as p
            cross join json_each(p.jobs) as place
            where p.name = r.name and p.key = r.key) as running,
           (select count(*) from rota_jobs where state = 'held' and held_limit = r.name and held_key = r.key) as held,
           started_at, closed_until
    from rota_rooms as r
) as known
where running > 0 or held > 0 or started_at is not null or closed_until is not null
order by name, key

-- name: idle_rooms
-- Rooms that nothing holds on to.
select rowid
from rota_rooms
where look_at is null
  and coalesce(keep_until, 0) < :now
  and coalesce(closed_until, 0) < :now
  and not exists (
          select 1
          from rota_places as p cross join json_each(p.jobs) as place
          where p.name = rota_rooms.name and p.key = rota_rooms.key
            and exists (select 1 from rota_jobs where id = place.key and claim = place.value and worker is not null)
      )
limit :limit

-- name: prune_rooms
-- Delete up to so many rooms that nothing holds on to, and their notes of places.
delete from rota_rooms
where rowid in (
    select rowid
    from rota_rooms
    where look_at is null
      and coalesce(keep_until, 0) < :now
      and coalesce(closed_until, 0) < :now
      and not exists (
          select 1
          from rota_places as p cross join json_each(p.jobs) as place
          where p.name = rota_rooms.name and p.key = rota_rooms.key
            and exists (select 1 from rota_jobs where id = place.key and claim = place.value and worker is not null)
      )
    limit :limit
);
delete from rota_places
where not exists (select 1 from rota_rooms where rota_rooms.name = rota_places.name and rota_rooms.key = rota_places.key)

-- name: known
-- Those of these ids that the store knows: as expressions, which no converter of a caller's own connection takes for its column.
select id || '' from rota_jobs where id in :ids
union all
select id || '' from rota_history where id in :ids

-- name: holder
-- The unfinished job of a task that has this key, as an expression too.
select id || '' from rota_jobs where key = :key and task = :task

-- name: files
-- The files of a connection's databases.
pragma database_list

-- name: dump_ids
-- The next jobs by their ids, and about how many characters each is.
select id, weight from (
    select * from (
        select id, 500 + length(args) + coalesce(length(progress), 0) + coalesce(length(context), 0) + coalesce((
                   select sum(200 + coalesce(length(error_message), 0) + coalesce(length(error_trace), 0))
                   from rota_attempts
                   where job = id
               ), 0) as weight
        from rota_jobs
        where id > :after
        order by id
        limit :limit
    )
    union all
    select * from (
        select id, 500 + length(args) + coalesce(length(result), 0) + coalesce(length(progress), 0)
               + coalesce(length(context), 0) + coalesce((
                   select sum(200 + coalesce(length(error_message), 0) + coalesce(length(error_trace), 0))
                   from rota_attempts
                   where job = id
               ), 0) as weight
        from rota_history
        where id > :after
        order by id
        limit :limit
    )
)
order by id
limit :limit

-- name: dump_places
-- The places that these running jobs have. This reads all notes of places, as `rooms_taken` does.
select place.key, name, rota_places.key
from rota_places cross join json_each(jobs) as place
where place.key in :ids
  and exists (select 1 from rota_jobs where id = place.key and claim = place.value and worker is not null)

-- name: load_live
-- Take in unfinished jobs: the fields of `JobRow` in their order, and how often they were handed back for want of their tasks.
insert into rota_jobs (id, task, queue, state, priority, due, created_at, claim, excused, max_attempts, args, key, worker,
                       claimed_at, reason, progress, cancelling, held_limit, held_key, key_waiting, context, looks)
select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       case json_extract(value, '$[3]') when 'running' then 'queued' else json_extract(value, '$[3]') end,
       json_extract(value, '$[4]'), json_extract(value, '$[5]'), json_extract(value, '$[6]'), json_extract(value, '$[7]'),
       json_extract(value, '$[8]'), json_extract(value, '$[9]'), json_extract(value, '$[10]'), json_extract(value, '$[11]'),
       json_extract(value, '$[12]'), json_extract(value, '$[13]'), json_extract(value, '$[17]'), json_extract(value, '$[18]'),
       json_extract(value, '$[19]'), json_extract(value, '$[20][0]'), json_extract(value, '$[20][1]'),
       json_extract(value, '$[21]'), json_extract(value, '$[22]'), json_extract(value, '$[23]')
from json_each(:jobs)

-- name: load_finished
-- Take in finished jobs: the fields of `JobRow` in their order.
insert into rota_history (id, task, queue, state, priority, due, created_at, claim, excused, max_attempts, args, key, worker,
                          claimed_at, finished_at, took, result, reason, progress, key_waiting, context)
select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]'),
       json_extract(value, '$[4]'), json_extract(value, '$[5]'), json_extract(value, '$[6]'), json_extract(value, '$[7]'),
       json_extract(value, '$[8]'), json_extract(value, '$[9]'), json_extract(value, '$[10]'), json_extract(value, '$[11]'),
       json_extract(value, '$[12]'), json_extract(value, '$[13]'), json_extract(value, '$[14]'), json_extract(value, '$[15]'),
       json_extract(value, '$[16]'), json_extract(value, '$[17]'), json_extract(value, '$[18]'), json_extract(value, '$[21]'),
       json_extract(value, '$[22]')
from json_each(:jobs)

-- name: load_attempts
-- Take in attempts: [job, claim, attempt, worker, ended_at, outcome, took, type, message, trace].
insert into rota_attempts (job, claim, attempt, worker, ended_at, outcome, took, error_type, error_message, error_trace)
select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]'),
       json_extract(value, '$[4]'), json_extract(value, '$[5]'), json_extract(value, '$[6]'), json_extract(value, '$[7]'),
       json_extract(value, '$[8]'), json_extract(value, '$[9]')
from json_each(:jobs)

-- name: load_rooms
-- Have rooms remember what they remembered elsewhere, and answer how many did not: [name, key, started_at, keep_until, closed_until].
insert into rota_rooms (name, key, started_at, keep_until, closed_until)
select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]'),
       json_extract(value, '$[4]')
from json_each(:rooms)
where true
on conflict (name, key) do update
set started_at = max(coalesce(started_at, excluded.started_at), coalesce(excluded.started_at, started_at)),
    keep_until = max(coalesce(keep_until, excluded.keep_until), coalesce(excluded.keep_until, keep_until)),
    closed_until = max(coalesce(closed_until, excluded.closed_until), coalesce(excluded.closed_until, closed_until))
where excluded.started_at > coalesce(started_at, -1)
   or excluded.keep_until > coalesce(keep_until, -1)
   or excluded.closed_until > coalesce(closed_until, -1);
select changes()

-- name: look_soon
-- Have a claim look at these rooms, which hold jobs that were taken in: [name, key].
insert into rota_rooms (name, key, look_at)
select json_extract(value, '$[0]'), json_extract(value, '$[1]'), :now
from json_each(:rooms)
where true
on conflict (name, key) do update set look_at = excluded.look_at

-- name: sealing
-- Whether there is a seal.
select 1 from sqlite_master where type = 'table' and name = 'rota_seal'

-- name: sealed
-- The seal.
select seal from rota_seal

-- name: note_seal
-- Keep the seal's own words.
insert into rota_seal (seal, lifted) values (:seal, false)

-- name: lift
-- Let this transaction write, which nobody else sees, or keep it from that again.
update rota_seal set lifted = :lifted
