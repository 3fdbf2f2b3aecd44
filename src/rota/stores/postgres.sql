-- The queries that Postgres runs in its own form. Each is one statement.
--
-- Rows are found by `id = any(array)`, which stays an index scan; joins against a batch flip to reading the whole table. What
-- belongs to a row of a batch is looked up in one jsonb parameter by the row's id. What runs often keeps its plan, along
-- indexes alone (see `Plans` in postgres_pool.py); searches, counts and pruning are planned at each run.

-- name: insert
-- Add jobs, save those whose id or key is taken, ring sleepers, and answer how many were added.
with added as (
    insert into rota_jobs (id, task, queue, args, priority, due, state, max_attempts, key, key_waiting, created_at, context)
    select (job ->> 0)::uuid, job ->> 1, job ->> 2, job ->> 3, (job ->> 4)::integer,
           coalesce((job ->> 5)::bigint, :now + (job ->> 6)::bigint),
           case when coalesce((job ->> 5)::bigint - :now, (job ->> 6)::bigint) > 0 then 'scheduled' else 'queued' end,
           (job ->> 7)::integer, job ->> 8, (job ->> 9)::boolean, :now, job ->> 10
    from jsonb_array_elements(:jobs) as job
    where (select true from rota_history where id = (job ->> 0)::uuid) is null
    on conflict do nothing
    returning 1
)
select (select count(*) from added),
       (select pg_notify(:channel, '') where exists (select 1 from rota_workers where asleep))

-- name: insert_one
-- Add a job, save where its id or key is taken, and ring sleepers. It costs half of what a batch of one does.
insert into rota_jobs (id, task, queue, args, priority, due, state, max_attempts, key, key_waiting, created_at, context)
select :job_id, :task, :queue, :args, :priority, coalesce(:run_at, :now + :delay),
       case when coalesce(:run_at - :now, :delay) > 0 then 'scheduled' else 'queued' end, :max_attempts, :key, :key_waiting, :now,
       :context
where not exists (select 1 from rota_history where id = :job_id)
on conflict do nothing
returning (select pg_notify(:channel, '') where exists (select 1 from rota_workers where asleep))

-- name: copy
-- Take in many jobs at once.
copy rota_jobs (id, task, queue, args, priority, due, state, max_attempts, key, key_waiting, created_at, context) from stdin

-- name: clock
-- The server's clock.
select :now

-- name: newest_finished
-- The finished job that was made last.
select id from rota_history order by id desc limit 1

-- name: finished
-- Those of these ids that are finished jobs.
select id from rota_history where id in :ids

-- name: hurry
-- Let this transaction's commit not wait for the disk.
select set_config('synchronous_commit', 'off', true)

-- name: bound
-- Have this transaction ended if its client falls silent: a process that is frozen within it holds locks for which others wait.
-- It is said in each transaction, since behind a pooler there is no session to say it to.
select set_config('idle_in_transaction_session_timeout', :silence, true)

-- name: hurry_bound
-- Both.
select set_config('synchronous_commit', 'off', true), set_config('idle_in_transaction_session_timeout', :silence, true)

-- name: ring
-- Wake sleepers, if there are any: a notification takes a lock that all commits of the server share.
select pg_notify(:channel, '') where exists (select 1 from rota_workers where asleep)

-- name: rest
-- Say whether a worker sleeps.
update rota_workers set asleep = :asleep where id = :worker and asleep <> :asleep

-- name: claim
-- Take the first queued jobs of these queues for a known worker, each queue read along its index. The worker's row is locked
-- first, so that whoever takes it for dead either waits or is waited for. The commit need not wait for the disk: a claim that a
-- crash undoes is made again.
with me as (select id from rota_workers where id = :worker for key share)
update rota_jobs
set worker = :worker, claim = claim + 1, claimed_at = :now, key = case when key_waiting then null else key end
where id = any(array(
    select first.id
    from me
    cross join unnest(:queues) as q (name)
    cross join lateral (
        select id, priority, due
        from rota_jobs
        where queue = q.name and state = 'queued' and worker is null
        order by priority desc, due, id
        limit :limit
        for update skip locked
    ) as first
    order by first.priority desc, first.due, first.id
    limit :limit
))
and (select case when :durable then '' else set_config('synchronous_commit', 'off', true) end) is not null
returning id, task, queue, args, claim, excused, max_attempts, priority, due, key, looks, context

-- name: claim_behind
-- The same, from where the last claim of each queue left off: [queue, priority, due, id]. While some transaction holds a snapshot,
-- jobs that are gone stay in the index, and a claim from its front walks over all of them. What is of greater priority comes
-- first here too; what came in since and is due before the last claimed is met by the next claim from the front.
with me as (select id from rota_workers where id = :worker for key share)
update rota_jobs
set worker = :worker, claim = claim + 1, claimed_at = :now, key = case when key_waiting then null else key end
where id = any(array(
    select first.id
    from me
    cross join lateral (
        select last ->> 0 as queue, (last ->> 1)::bigint as priority, (last ->> 2)::bigint as due, (last ->> 3)::uuid as id
        from jsonb_array_elements(:behind) as last
    ) as q
    cross join lateral (
        -- Three stretches of the index, in its order; a later one is not read when those before it gave enough.
        select * from (
            select id, priority, due
            from rota_jobs
            where queue = q.queue and state = 'queued' and worker is null and priority > q.priority
            order by priority desc, due, id
            limit :limit
            for update skip locked
        ) as greater
        union all
        select * from (
            select id, priority, due
            from rota_jobs
            where queue = q.queue and state = 'queued' and worker is null and priority = q.priority and (due, id) > (q.due, q.id)
            order by due, id
            limit :limit
            for update skip locked
        ) as equal
        union all
        select * from (
            select id, priority, due
            from rota_jobs
            where queue = q.queue and state = 'queued' and worker is null and priority < q.priority
            order by priority desc, due, id
            limit :limit
            for update skip locked
        ) as less
        limit :limit
    ) as first
    order by first.priority desc, first.due, first.id
    limit :limit
))
and (select case when :durable then '' else set_config('synchronous_commit', 'off', true) end) is not null
returning id, task, queue, args, claim, excused, max_attempts, priority, due, key, looks, context

-- name: claim_amply
-- Claim under limits that are far from full, whose rooms are locked. Rooms: [name, key, enough]; places: rooms [name, key] by task;
-- tally: [name, key, how many more], as in `tell_places`, to which the places are added that are taken now.
-- Nothing is claimed or told over a line that has no tally of some room: it never told all, another line has done so since, or the
-- worker was taken for dead. Nothing is claimed while a room is to be looked at. Of the first queued jobs those stay that need a room in which more places are
-- taken than enough, which holds jobs, is closed, or whose limit was set another size; and those that a limit had held: a claim
-- that counts looks at them.
with me as (
    select id
    from rota_workers
    where id = :worker
      and not exists (
          select 1
          from jsonb_array_elements(:rooms) as o (room)
          where (select true from rota_tallies where name = room ->> 0 and key = room ->> 1 and worker = :line) is null
      )
    for key share
),
scarce as materialized (
    select jsonb_build_array(room -> 0, room -> 1) as room
    from jsonb_array_elements(:rooms) as o (room)
    where (select coalesce(sum(taken), 0) from rota_places where name = room ->> 0 and key = room ->> 1)
        + (select coalesce(sum(taken), 0) from rota_tallies where name = room ->> 0 and key = room ->> 1)
        + (select coalesce(sum((own ->> 2)::bigint), 0)
           from jsonb_array_elements(:tally) as own
           where own ->> 0 = room ->> 0 and own ->> 1 = room ->> 1)
        > (room ->> 2)::bigint
       or (select true from rota_limits where name = room ->> 0)
       or (
           select look_at is not null or coalesce(closed_until > :now, false)
           from rota_rooms
           where name = room ->> 0 and key = room ->> 1
       )
),
kept_out as materialized (
    select coalesce(array_agg(task), '{}') as tasks
    from jsonb_each(:places) as known (task, rooms)
    where exists (select 1 from scarce where rooms @> jsonb_build_array(room))
),
taken as (
    update rota_jobs
    set worker = :worker, claim = claim + 1, claimed_at = :now, key = case when key_waiting then null else key end
    where id = any(array(
        select found.id
        from (
            select first.*
            from me
            cross join lateral (
                select last ->> 0 as queue, (last ->> 1)::bigint as priority, (last ->> 2)::bigint as due, (last ->> 3)::uuid as id
                from jsonb_array_elements(:behind) as last
            ) as q
            cross join lateral (
                select * from (
                    select id, task, priority, due, held_limit
                    from rota_jobs
                    where queue = q.queue and state = 'queued' and worker is null and priority > q.priority
                    order by priority desc, due, id
                    limit :limit
                    for update skip locked
                ) as greater
                union all
                select * from (
                    select id, task, priority, due, held_limit
                    from rota_jobs
                    where queue = q.queue and state = 'queued' and worker is null and priority = q.priority
                      and (due, id) > (q.due, q.id)
                    order by due, id
                    limit :limit
                    for update skip locked
                ) as equal
                union all
                select * from (
                    select id, task, priority, due, held_limit
                    from rota_jobs
                    where queue = q.queue and state = 'queued' and worker is null and priority < q.priority
                    order by priority desc, due, id
                    limit :limit
                    for update skip locked
                ) as less
                limit :limit
            ) as first
            order by first.priority desc, first.due, first.id
            limit case when exists (select 1 from rota_rooms where look_at <= :now and name in :names) then 0 else :limit end
        ) as found
        where held_limit is null and not (task = any((select tasks from kept_out)::text[]))
    ))
    returning id, task, queue, args, claim, excused, max_attempts, priority, due, key, looks, context
),
told as (
    insert into rota_tallies (name, key, worker, taken)
    select room ->> 0, room ->> 1, :line, sum(many)
    from (
        select own as room, (own ->> 2)::bigint as many from jsonb_array_elements(:tally) as own
        union all
        select place, many
        from (select task, count(*) as many from taken group by task) as each
        cross join lateral jsonb_array_elements(:places -> task) as place
    ) as summand
    where exists (select 1 from me)
    group by 1, 2
    on conflict (name, key, worker) do update set taken = greatest(0, rota_tallies.taken + excluded.taken) where excluded.taken <> 0
)
select * from taken

-- name: tell_places
-- Keep how many places a known worker, whose row is locked, has in rooms besides those that are noted: [name, key, how many more]
-- than it told last over this line, or all that it has. The rooms are locked, at least one. All takes the place of what was told
-- over other lines, save that a line does not count any more once a later one was used: the server may come to what went over it
-- long after the worker gave it up.
with told as (
    select own ->> 0 as name, own ->> 1 as key, (own ->> 2)::integer as many
    from jsonb_array_elements(:tally) as own
    where exists (select 1 from rota_workers where id = :worker)
      and case
              when :whole then (
                  select true
                  from rota_tallies
                  where name = own ->> 0 and key = own ->> 1 and starts_with(worker, :worker || '/') and worker collate "C" > :line
                  limit 1
              ) is null
              else (select true from rota_tallies where name = own ->> 0 and key = own ->> 1 and worker = :line)
          end
), others as (
    delete from rota_tallies
    where ctid = any(array(
        select other.row
        from told
        cross join lateral (
            select ctid as row
            from rota_tallies as t
            where t.name = told.name and t.key = told.key and starts_with(t.worker, :worker || '/') and t.worker <> :line
            offset 0
        ) as other
        where :whole
    ))
)
insert into rota_tallies (name, key, worker, taken)
select name, key, :line, many from told
on conflict (name, key, worker) do update
set taken = greatest(0, case when :whole then excluded.taken else rota_tallies.taken + excluded.taken end)

-- name: succeed
-- Move jobs that succeeded to the history, where the attempt still counts: [claim, took, result] by id.
with done as (
    delete from rota_jobs
    where id in :ids and worker = :worker and claim = ((:ends -> (id::text)) ->> 0)::integer
    returning *, :ends -> (id::text) as said
)
insert into rota_history (id, task, queue, state, priority, due, created_at, claim, excused, max_attempts, args, key,
                          key_waiting, worker, claimed_at, finished_at, took, result, progress, context)
select id, task, queue, 'succeeded', priority, due, created_at, claim, excused, max_attempts, args, key,
       key_waiting, worker, claimed_at, :now, (said ->> 1)::bigint, said ->> 2, progress, context
from done
returning id

-- name: drop
-- Delete finished jobs that nobody wants to keep, where the attempt still counts: [claim] by id.
with done as (
    delete from rota_jobs
    where id in :ids and worker = :worker and claim = ((:ends -> (id::text)) ->> 0)::integer
    returning id, claim
), forgotten as (
    delete from rota_attempts where job = any(array(select id from done where claim > 1))
)
select id from done

-- name: fail
-- Move jobs that failed or were cancelled to the history and remember the attempt, where it still counts:
-- [claim, took, state, reason, outcome, type, message, trace] by id.
with done as (
    delete from rota_jobs
    where id in :ids and worker = :worker and claim = ((:ends -> (id::text)) ->> 0)::integer
    returning *, :ends -> (id::text) as said
), noted as (
    insert into rota_attempts (job, claim, attempt, worker, ended_at, outcome, took, error_type, error_message, error_trace)
    select id, claim, claim - excused, worker, :now, said ->> 4, (said ->> 1)::bigint, said ->> 5, said ->> 6, said ->> 7
    from done
)
insert into rota_history (id, task, queue, state, priority, due, created_at, claim, excused, max_attempts, args, key,
                          key_waiting, worker, claimed_at, finished_at, took, reason, progress, context)
select id, task, queue, said ->> 2, priority, due, created_at, claim, excused, max_attempts, args, key,
       key_waiting, worker, claimed_at, :now, (said ->> 1)::bigint, said ->> 3, progress, context
from done
returning id

-- name: put_back
-- Let jobs wait for another attempt and remember this one, where it still counts:
-- [claim, took, wait, reason, outcome, type, message, trace, excuse, looks] by id. A job that was asked to be cancelled is cancelled.
-- The rows are locked first, since someone may ask for the cancel right now, and what is so is then decided once.
with mine as materialized (
    select id, claim, excused, cancelling, :ends -> (id::text) as said
    from rota_jobs
    where id in :ids and worker = :worker and claim = ((:ends -> (id::text)) ->> 0)::integer
    for update
), back as (
    update rota_jobs
    set state = case when ((:ends -> (id::text)) ->> 2)::bigint > 0 then 'scheduled' else 'queued' end,
        due = :now + ((:ends -> (id::text)) ->> 2)::bigint,
        reason = (:ends -> (id::text)) ->> 3,
        excused = excused + ((:ends -> (id::text)) ->> 8)::integer,
        looks = ((:ends -> (id::text)) ->> 9)::integer,
        worker = null,
        claimed_at = null
    where id = any(array(select id from mine where not cancelling))
), cancelled as (
    delete from rota_jobs where id = any(array(select id from mine where cancelling)) returning *
), kept as (
    insert into rota_history (id, task, queue, state, priority, due, created_at, claim, excused, max_attempts, args, key,
                              key_waiting, worker, claimed_at, finished_at, took, reason, progress, context)
    select id, task, queue, 'cancelled', priority, due, created_at, claim, excused, max_attempts, args, key,
           key_waiting, worker, claimed_at, :now, ((:ends -> (id::text)) ->> 1)::bigint, 'cancelled while running', progress, context
    from cancelled
), noted as (
    insert into rota_attempts (job, claim, attempt, worker, ended_at, outcome, took, error_type, error_message, error_trace)
    select id, claim, claim - excused, :worker, :now, said ->> 4, (said ->> 1)::bigint, said ->> 5, said ->> 6, said ->> 7
    from mine
)
select id from mine

-- name: progress
-- Store the progress of running jobs, where the attempt still counts: [claim, progress] by id. A beat waits for no transaction
-- that is about to finish a job.
update rota_jobs
set progress = (:reports -> (id::text)) ->> 1
where id = any(array(
    select id
    from rota_jobs
    where id in :ids and worker = :worker and claim = ((:reports -> (id::text)) ->> 0)::integer
    for update skip locked
))

-- name: promote
-- Queue the scheduled jobs whose time has come, the earliest first, ring sleepers, and answer how many.
with promoted as (
    update rota_jobs
    set state = 'queued'
    where id = any(array(
        select id
        from rota_jobs
        where state = 'scheduled' and due <= :now
        order by due
        limit :limit
        for update skip locked
    ))
    returning 1
)
select (select count(*) from promoted),
       (select pg_notify(:channel, '') where exists (select 1 from promoted) and exists (select 1 from rota_workers where asleep))

-- name: dead
-- The workers whose lease ran out, their rows locked so that they can neither claim nor beat until they are dealt with.
select id, name from rota_workers where lease_until <= :now order by id for update skip locked

-- name: forget_all
-- Forget those of these workers that hold no job any more, and answer which. What any of them counted is forgotten: the few jobs
-- that one still holds, which some transaction is about to finish, are noted in all rooms in which they may have places.
with gone as (
    delete from rota_workers
    where id in :workers and id not in (select worker from rota_jobs where worker in :workers)
    returning id
), uncounted as (
    delete from rota_tallies
    using unnest(:workers) as w (id)
    where starts_with(worker, w.id || '/')
    returning name, key, w.id as worker, taken
), noted as (
    insert into rota_places (name, key, taken, jobs)
    select u.name, u.key, count(*), jsonb_object_agg(j.id, j.claim)
    from uncounted as u
    join rota_jobs as j on j.worker = u.worker
    where u.taken > 0
      and not exists (select 1 from rota_places as p where p.name = u.name and p.key = u.key and p.jobs ? j.id::text)
    group by u.name, u.key
)
select id from gone

-- name: lock_worker
-- Keep a worker from claiming until the transaction ends.
select 1 from rota_workers where id = :worker for update

-- name: claimed_by
-- Up to so many jobs that these workers hold. This reads every unfinished job: no index may know the worker, for a claim
-- would have to write it, and workers seldom die. Those that a transaction of a body's is about to finish are left out.
select id, task, queue, claim - excused, worker, max_attempts, cancelling
from rota_jobs
where worker in :workers
order by id
limit :limit
for update skip locked

-- name: strays
-- The jobs that a worker holds besides these. No body has them in hand, so nobody keeps them locked for long.
select id, task, queue, claim - excused, worker, max_attempts, cancelling
from rota_jobs
where worker = :worker and not (id in :ids)
order by id
for update

-- name: mine
-- Those of these jobs that a worker holds and that no transaction is about to finish, kept as they are until this one ends.
select id, claim from rota_jobs where id in :ids and worker = :worker for update skip locked

-- name: conclude
-- Move unfinished jobs to the history in a final state.
with done as (delete from rota_jobs where id in :ids returning *)
insert into rota_history (id, task, queue, state, priority, due, created_at, claim, excused, max_attempts, args, key,
                          key_waiting, worker, claimed_at, finished_at, reason, progress, context)
select id, task, queue, :state, priority, due, created_at, claim, excused, max_attempts, args, key,
       key_waiting, worker, claimed_at, :now, :reason, progress, context
from done

-- name: look_live
-- The states of those of these jobs that are not finished, kept as they are until the transaction ends.
select id, case when worker is null then state else 'running' end from rota_jobs where id in :ids order by id for update

-- name: look_finished
-- The states of those of these jobs that are finished, kept as they are until the transaction ends.
select id, state from rota_history where id in :ids order by id for update

-- name: retry_finished
-- Let finished jobs run again now, save those whose key is taken, and answer which.
with back as (
    insert into rota_jobs (id, task, queue, args, priority, due, state, max_attempts, key, key_waiting, created_at, claim,
                           excused, reason, context)
    select id, task, queue, args, priority, :now, 'queued', max_attempts, key, key_waiting, created_at, claim, claim, reason, context
    from rota_history
    where id in :ids
    on conflict do nothing
    returning id
)
delete from rota_history where id = any(array(select id from back)) returning id

-- name: old
-- The first jobs in a final state that ended before a moment.
select id
from rota_history
where state = :state and finished_at < :now - :age
order by finished_at
limit :limit
for update skip locked

-- name: flow
-- How many jobs ended and how many came in lately, by queue, worker and final state. Ids begin with the millisecond of their making.
select queue, worker, state, count(*)
from rota_history
where state = any(array['succeeded', 'failed', 'cancelled']) and finished_at > :now - :span
group by 1, 2, 3
union all
select queue, null, null, count(*)
from (
    select queue
    from rota_jobs
    where id > (lpad(to_hex((:now - :span) / 1000 - 5000), 12, '0') || '-7000-8000-000000000000')::uuid and created_at > :now - :span
    union all
    select queue
    from rota_history
    where id > (lpad(to_hex((:now - :span) / 1000 - 5000), 12, '0') || '-7000-8000-000000000000')::uuid and created_at > :now - :span
) as new
group by 1

-- name: tables
-- Whether there are tables, and whether there is a schema for them.
select to_regclass(:migrations) is not null, exists (select 1 from pg_namespace where nspname = :schema)

-- name: lock_migrations
-- One migration at a time for each schema; the lock goes with the transaction.
select pg_advisory_xact_lock(hashtext('rota'), hashtext(:schema))

-- name: migrating
-- Who holds this lock.
select a.pid, a.usename, a.application_name, host(a.client_addr), a.state,
       to_char(a.xact_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'), l.pid is null
from pg_locks as l
left join pg_stat_activity as a on a.pid = l.pid
where l.locktype = 'advisory' and l.granted and l.objsubid = 2
  and l.database = (select oid from pg_database where datname = current_database())
  and l.classid = (hashtext('rota')::bigint & 4294967295)::oid and l.objid = (hashtext(:schema)::bigint & 4294967295)::oid

-- name: users_of
-- Who else uses a table, those first who have used it for longest.
select a.pid, a.usename, coalesce(nullif(a.application_name, ''), a.backend_type), host(a.client_addr), a.state,
       to_char(a.xact_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'), l.pid is null
from (select distinct pid from pg_locks where relation = to_regclass(:table) and granted) as l
left join pg_stat_activity as a on a.pid = l.pid
where l.pid is distinct from pg_backend_pid()
order by a.xact_start
limit 3

-- name: lock_briefly
-- Have this transaction give up where it waits longer for a lock: for a table's, because all who come after it would wait too.
select set_config('lock_timeout', :patience, true)

-- name: sizes
-- About how many rows each table has.
select relname, greatest(reltuples, 0)::bigint
from pg_class
join pg_namespace as n on n.oid = relnamespace
where nspname = :schema and relkind = 'r' and relname like 'rota\_%'

-- name: vitals
-- The server's clock, version, sizes, and settings that matter.
select :now, current_setting('server_version'), current_database(), pg_total_relation_size(:jobs_table::regclass),
       pg_total_relation_size(:history_table::regclass), current_setting('synchronous_commit'), current_setting('fsync'),
       current_setting('autovacuum'), pg_is_in_recovery(),
       -- For all, or in this database; a user who may only read looks after others.
       (select setting = 'on' and source in ('configuration file', 'database', 'command line')
        from pg_settings where name = 'default_transaction_read_only'),
       (select sum(numbackends)::bigint from pg_stat_database),
       current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
       (select max(version) from rota_migrations), current_setting('transaction_isolation')

-- name: oldest_transaction
-- The transaction that has kept vacuum from its work for longest.
select pid, coalesce(usename, ''), coalesce(application_name, ''), extract(epoch from now() - xact_start)::bigint
from pg_stat_activity
where backend_xmin is not null and xact_start < now() - :patience::interval and backend_type = 'client backend'
order by xact_start
limit 1

-- name: begin
-- Begin a transaction that goes on over several round trips. It says how it is isolated, for behind a pooler a session's own
-- setting cannot be chosen.
begin isolation level read committed

-- name: commit
-- End it.
commit

-- name: me
-- Whether a worker is known. Its row is locked, so that whoever takes it for dead either waits or is waited for.
select 1 from rota_workers where id = :worker for key share

-- name: rooms_due
-- Whether there are rooms to look at whose limits, or whose held jobs' tasks, this worker knows.
select 1
from rota_rooms as r
where look_at <= :now
  and (
      name in :names
      or (
          select true
          from rota_jobs
          where state = 'held' and held_limit = r.name and held_key = r.key
            and task = any(array(
                select jsonb_array_elements_text(tasks::jsonb) from rota_workers where id = :worker
            ))
          limit 1
      )
  )
limit 1

-- name: due_rooms
-- The rooms to look at whose limits, or whose held jobs' tasks, this worker knows; those that somebody has locked are left out.
select name, key
from rota_rooms as r
where look_at <= :now
  and (
      name in :names
      or (
          select true
          from rota_jobs
          where state = 'held' and held_limit = r.name and held_key = r.key
            and task = any(array(
                select jsonb_array_elements_text(tasks::jsonb) from rota_workers where id = :worker
            ))
          limit 1
      )
  )
order by look_at
limit :limit
for update skip locked

-- name: candidates
-- The first queued jobs of these queues, as they are once they are claimed, and which limit held each last. They are locked, and
-- read as they were found then: a second look would find what they were when the query began.
select first.*
from unnest(:queues) as q (name)
cross join lateral (
    select id, task, queue, args, claim + 1, excused, max_attempts, priority, due, case when key_waiting then null else key end, looks,
           context, held_limit, held_key
    from rota_jobs
    where queue = q.name and state = 'queued' and worker is null
    order by priority desc, due, id
    limit :limit
    for update skip locked
) as first
order by first.priority desc, first.due, first.id
limit :limit

-- name: lock_rooms
-- Lock these rooms, in one order for all; missing ones are made: [name, key, …].
-- A row that conflicts is locked although it is not updated.
insert into rota_rooms (name, key)
select room ->> 0, room ->> 1
from jsonb_array_elements(:rooms) as room
order by 1, 2
on conflict (name, key) do update set name = excluded.name where false

-- name: measure
-- What is known of these rooms: [name, key, enough]. Where more places than enough are noted, those that count are counted, and
-- notes are named of which none does.
select o.room ->> 0, o.room ->> 1, r.started_at, r.closed_until, r.opens_at, r.look_at, p.taken + t.taken, c.running + t.taken,
       c.over, :now
from jsonb_array_elements(:rooms) as o (room)
cross join lateral (
    select started_at, closed_until, opens_at, look_at from rota_rooms where name = o.room ->> 0 and key = o.room ->> 1 offset 0
) as r
cross join lateral (
    select coalesce(sum(taken), 0) as taken from rota_places where name = o.room ->> 0 and key = o.room ->> 1
) as p
cross join lateral (
    select coalesce(sum(taken), 0) as taken from rota_tallies where name = o.room ->> 0 and key = o.room ->> 1
) as t
cross join lateral (
    select sum(noted.running)::bigint as running, json_agg(noted.id) filter (where noted.running = 0)::text as over
    from (
        select id,
               (select count((select 1 from rota_jobs where id = place.job::uuid and claim = place.claim::integer and worker is not null))
                from jsonb_each_text(jobs) as place (job, claim)) as running
        from rota_places
        where name = o.room ->> 0 and key = o.room ->> 1 and p.taken + t.taken > (o.room ->> 2)::bigint
        offset 0
    ) as noted
) as c

-- name: drop_places
-- Delete notes of places of which none counts.
delete from rota_places where id = any(array(select value::bigint from jsonb_array_elements_text(:over)))

-- name: rooms_taken
-- The rooms in which these jobs may have places: as noted, or as some worker counts. This reads all notes of places, of which
-- there are few, and few need it.
select name, key
from rota_places
where jobs ?| :ids::text[]
union
select name, key
from rota_tallies
where taken > 0

-- name: occupy
-- Note the places that jobs take: [name, key, how many, claim by id].
insert into rota_places (name, key, taken, jobs)
select place ->> 0, place ->> 1, (place ->> 2)::integer, place -> 3
from jsonb_array_elements(:places) as place

-- name: hold
-- Have limits hold these queued jobs: [name, key] by id.
update rota_jobs
set state = 'held', held_limit = (:held -> (id::text)) ->> 0, held_key = (:held -> (id::text)) ->> 1
where id in :ids

-- name: note_rooms
-- Note what became of rooms: [name, key, started_at, keep_until, opens_at, look_at]. One that holds nobody is not looked at.
insert into rota_rooms (name, key, started_at, keep_until, opens_at, look_at)
select room ->> 0, room ->> 1, (room ->> 2)::bigint, (room ->> 3)::bigint, (room ->> 4)::bigint,
       case when (
           select true from rota_jobs where state = 'held' and held_limit = room ->> 0 and held_key = room ->> 1 limit 1
       ) then (room ->> 5)::bigint end
from jsonb_array_elements(:rooms) as room
on conflict (name, key) do update
set started_at = coalesce(excluded.started_at, rota_rooms.started_at),
    keep_until = coalesce(excluded.keep_until, rota_rooms.keep_until),
    opens_at = excluded.opens_at,
    look_at = excluded.look_at

-- name: free
-- Queue the first so many jobs of each queue that these rooms hold: [name, key]. Answers the queue of each.
with recursive hop (name, key, queue) as (
    select room ->> 0, room ->> 1,
           (select queue
            from rota_jobs
            where state = 'held' and held_limit = room ->> 0 and held_key = room ->> 1
            order by queue
            limit 1)
    from jsonb_array_elements(:rooms) as room
    union all
    select name, key,
           (select queue
            from rota_jobs
            where state = 'held' and held_limit = hop.name and held_key = hop.key and queue > hop.queue
            order by queue
            limit 1)
    from hop
    where queue is not null
)
update rota_jobs
set state = 'queued'
where id = any(array(
    select first.id
    from hop
    cross join lateral (
        select id
        from rota_jobs
        where state = 'held' and held_limit = hop.name and held_key = hop.key and queue = hop.queue
        order by priority desc, due, id
        limit :many
        for update skip locked
    ) as first
))
returning queue

-- name: free_ours
-- The same, of the tasks alone that this worker knows.
with recursive hop (name, key, queue) as (
    select room ->> 0, room ->> 1,
           (select queue
            from rota_jobs
            where state = 'held' and held_limit = room ->> 0 and held_key = room ->> 1
            order by queue
            limit 1)
    from jsonb_array_elements(:rooms) as room
    union all
    select name, key,
           (select queue
            from rota_jobs
            where state = 'held' and held_limit = hop.name and held_key = hop.key and queue > hop.queue
            order by queue
            limit 1)
    from hop
    where queue is not null
)
update rota_jobs
set state = 'queued'
where id = any(array(
    select first.id
    from hop
    cross join lateral (
        select id
        from rota_jobs
        where state = 'held' and held_limit = hop.name and held_key = hop.key and queue = hop.queue
          and task = any(array(select jsonb_array_elements_text(tasks::jsonb) from rota_workers where id = :worker))
        order by priority desc, due, id
        limit :many
        for update skip locked
    ) as first
))
returning queue

-- name: look_at_rooms
-- Have a claim look at these rooms, where they hold jobs, and ring sleepers: [name, key].
-- A room that conflicts is locked, in one order for all, and then judged as the last claim left it, whatever this query sees.
with opened as (
    insert into rota_rooms (name, key)
    select room ->> 0, room ->> 1 from jsonb_array_elements(:rooms) as room order by 1, 2
    on conflict (name, key) do update set look_at = :now where rota_rooms.look_at > :now
    returning look_at
)
select pg_notify(:channel, '')
where exists (select 1 from opened where look_at is not null) and exists (select 1 from rota_workers where asleep)

-- name: close_rooms
-- Let none into these rooms for so long: [name, key, span].
insert into rota_rooms (name, key, closed_until)
select closing ->> 0, closing ->> 1, :now + max((closing ->> 2)::bigint)
from jsonb_array_elements(:closes) as closing
group by 1, 2
order by 1, 2
on conflict (name, key) do update set closed_until = greatest(rota_rooms.closed_until, excluded.closed_until)

-- name: look_again
-- Have a claim look at all rooms that hold jobs.
with holding as materialized (
    select name, key from rota_rooms where look_at > :now order by name, key for update
)
update rota_rooms as r set look_at = :now from holding where r.name = holding.name and r.key = holding.key

-- name: rooms
-- Each room under which a job runs, is held, or started.
select * from (
    select name, key,
           (select count((select 1 from rota_jobs where id = place.job::uuid and claim = place.claim::integer and worker is not null))
            from rota_places as p
            cross join lateral jsonb_each_text(p.jobs) as place (job, claim)
            where p.name = r.name and p.key = r.key)
         + (select coalesce(sum(taken), 0) from rota_tallies as t where t.name = r.name and t.key = r.key) as running,
           (select count(*) from rota_jobs where state = 'held' and held_limit = r.name and held_key = r.key) as held,
           started_at, closed_until
    from rota_rooms as r
) as known
where running > 0 or held > 0 or started_at is not null or closed_until is not null
order by name, key

-- name: idle_rooms
-- Rooms that nothing holds on to.
select 1
from rota_rooms as r
where look_at is null
  and coalesce(keep_until, 0) < :now
  and coalesce(closed_until, 0) < :now
  and (select true
       from rota_places as p
       cross join lateral jsonb_each_text(p.jobs) as place (job, claim)
       where p.name = r.name and p.key = r.key
         and (select true from rota_jobs
              where id = place.job::uuid and claim = place.claim::integer and worker is not null)
       limit 1) is null
  and not exists (select 1 from rota_tallies as t where t.name = r.name and t.key = r.key)
limit :limit

-- name: prune_rooms
-- Delete up to so many rooms that nothing holds on to, and their notes of places.
with gone as (
    delete from rota_rooms
    where ctid = any(array(
        select ctid
        from rota_rooms as r
        where look_at is null
          and coalesce(keep_until, 0) < :now
          and coalesce(closed_until, 0) < :now
          and (select true
               from rota_places as p
               cross join lateral jsonb_each_text(p.jobs) as place (job, claim)
               where p.name = r.name and p.key = r.key
                 and (select true from rota_jobs
                      where id = place.job::uuid and claim = place.claim::integer and worker is not null)
               limit 1) is null
          and not exists (select 1 from rota_tallies as t where t.name = r.name and t.key = r.key)
        limit :limit
        for update skip locked
    ))
    returning name, key
)
delete from rota_places
where id = any(array(select p.id from gone cross join lateral (
    select id from rota_places where name = gone.name and key = gone.key offset 0
) as p))

-- name: whereabouts
-- What tells this start of the server, this database and this table of jobs from all others; and words for people.
select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint,
       (select oid::bigint from pg_database where datname = current_database()),
       (select c.oid::bigint
        from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        where n.nspname = :schema and c.relname = :jobs_table),
       current_database(),
       case when inet_server_addr() is null then 'a socket of port ' || current_setting('port')
            else host(inet_server_addr()) || ':' || inet_server_port() end,
       to_char(pg_postmaster_start_time() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS UTC')

-- name: dump_ids
-- The next jobs by their ids, and about how many bytes each is.
select id, weight from (
    select * from (
        select id, 500 + octet_length(args) + coalesce(octet_length(progress), 0) + coalesce(octet_length(context), 0) + coalesce((
                   select sum(200 + coalesce(octet_length(error_message), 0) + coalesce(octet_length(error_trace), 0))
                   from rota_attempts
                   where job = id
               ), 0)::bigint as weight
        from rota_jobs
        where id > :after::uuid
        order by id
        limit :limit
    ) as live
    union all
    select * from (
        select id, 500 + octet_length(args) + coalesce(octet_length(result), 0) + coalesce(octet_length(progress), 0)
               + coalesce(octet_length(context), 0) + coalesce((
                   select sum(200 + coalesce(octet_length(error_message), 0) + coalesce(octet_length(error_trace), 0))
                   from rota_attempts
                   where job = id
               ), 0)::bigint as weight
        from rota_history
        where id > :after::uuid
        order by id
        limit :limit
    ) as finished
) as either
order by id
limit :limit

-- name: dump_places
-- The places that these running jobs have. This reads all notes of places, as `rooms_taken` does. What a worker counted itself is
-- left behind: whoever is moved is lost, and with it go the places that it counted.
select place.job, name, key
from rota_places
cross join lateral jsonb_each_text(jobs) as place (job, claim)
where jobs ?| :ids::text[] and place.job::uuid in :ids
  and exists (select 1 from rota_jobs where id = place.job::uuid and claim = place.claim::integer and worker is not null)

-- name: load_live
-- Take in unfinished jobs: the fields of `JobRow` in their order, and how often they were handed back for want of their tasks.
insert into rota_jobs (id, task, queue, state, priority, due, created_at, claim, excused, max_attempts, args, key, worker,
                       claimed_at, reason, progress, cancelling, held_limit, held_key, key_waiting, context, looks)
select (job ->> 0)::uuid, job ->> 1, job ->> 2, case job ->> 3 when 'running' then 'queued' else job ->> 3 end,
       (job ->> 4)::integer, (job ->> 5)::bigint, (job ->> 6)::bigint, (job ->> 7)::integer, (job ->> 8)::integer,
       (job ->> 9)::integer, job ->> 10, job ->> 11, job ->> 12, (job ->> 13)::bigint, job ->> 17, job ->> 18,
       (job ->> 19)::boolean, job -> 20 ->> 0, job -> 20 ->> 1, (job ->> 21)::boolean, job ->> 22, (job ->> 23)::integer
from jsonb_array_elements(:jobs) as job

-- name: load_finished
-- Take in finished jobs: the fields of `JobRow` in their order.
insert into rota_history (id, task, queue, state, priority, due, created_at, claim, excused, max_attempts, args, key, worker,
                          claimed_at, finished_at, took, result, reason, progress, key_waiting, context)
select (job ->> 0)::uuid, job ->> 1, job ->> 2, job ->> 3, (job ->> 4)::integer, (job ->> 5)::bigint, (job ->> 6)::bigint,
       (job ->> 7)::integer, (job ->> 8)::integer, (job ->> 9)::integer, job ->> 10, job ->> 11, job ->> 12,
       (job ->> 13)::bigint, (job ->> 14)::bigint, (job ->> 15)::bigint, job ->> 16, job ->> 17, job ->> 18,
       (job ->> 21)::boolean, job ->> 22
from jsonb_array_elements(:jobs) as job

-- name: load_attempts
-- Take in attempts: [job, claim, attempt, worker, ended_at, outcome, took, type, message, trace].
insert into rota_attempts (job, claim, attempt, worker, ended_at, outcome, took, error_type, error_message, error_trace)
select (said ->> 0)::uuid, (said ->> 1)::integer, (said ->> 2)::integer, said ->> 3, (said ->> 4)::bigint, said ->> 5,
       (said ->> 6)::bigint, said ->> 7, said ->> 8, said ->> 9
from jsonb_array_elements(:jobs) as said

-- name: load_rooms
-- Have rooms remember what they remembered elsewhere, and answer how many did not: [name, key, started_at, keep_until, closed_until].
with loaded as (
    insert into rota_rooms (name, key, started_at, keep_until, closed_until)
    select room ->> 0, room ->> 1, (room ->> 2)::bigint, (room ->> 3)::bigint, (room ->> 4)::bigint
    from jsonb_array_elements(:rooms) as room
    order by 1, 2
    on conflict (name, key) do update
    set started_at = greatest(rota_rooms.started_at, excluded.started_at),
        keep_until = greatest(rota_rooms.keep_until, excluded.keep_until),
        closed_until = greatest(rota_rooms.closed_until, excluded.closed_until)
    where excluded.started_at > coalesce(rota_rooms.started_at, -1)
       or excluded.keep_until > coalesce(rota_rooms.keep_until, -1)
       or excluded.closed_until > coalesce(rota_rooms.closed_until, -1)
    returning 1
)
select count(*) from loaded

-- name: look_soon
-- Have a claim look at these rooms, which hold jobs that were taken in: [name, key].
insert into rota_rooms (name, key, look_at)
select room ->> 0, room ->> 1, :now from jsonb_array_elements(:rooms) as room order by 1, 2
on conflict (name, key) do update set look_at = excluded.look_at

-- name: sealed
-- The seal: a comment on the function that refuses changes.
select obj_description(p.oid, 'pg_proc')
from pg_proc as p
join pg_namespace as n on n.oid = p.pronamespace
where n.nspname = :schema and p.proname = 'rota_sealed'

-- name: lift
-- Let this transaction write beneath the seal.
select set_config('rota.lifted', 'on', true)

-- name: lock_jobs
-- Keep the seal from being lifted or changed until the transaction ends.
lock table rota_jobs in row exclusive mode
