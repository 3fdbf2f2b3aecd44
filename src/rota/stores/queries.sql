-- The queries that every database runs as they stand.
--
-- `:name` is a parameter, `:now` the store's clock or the moment given in its place, and `in :names` tests against a list
-- that is one parameter. A job that is not finished is a row of rota_jobs, and runs when it has a worker; a finished job
-- is a row of rota_history.

-- name: version
-- The newest migration that ran.
select max(version) from rota_migrations

-- name: needs
-- Which version of the tables a process must know to use them.
select needs from rota_migrations order by version desc limit 1

-- name: record_needs
-- Note it with the newest migration.
update rota_migrations set needs = :needs where version = :number

-- name: record_migration
-- Note that a migration ran.
insert into rota_migrations (version, name, applied_at) values (:number, :name, :now)

-- name: declare
-- Remember a task's defaults; write nothing when they are as they were.
insert into rota_tasks (name, queue, priority, max_attempts) values (:name, :queue, :priority, :max_attempts)
on conflict (name) do update
set queue = excluded.queue, priority = excluded.priority, max_attempts = excluded.max_attempts
where rota_tasks.queue <> excluded.queue
   or rota_tasks.priority <> excluded.priority
   or rota_tasks.max_attempts <> excluded.max_attempts

-- name: declared
-- A task's defaults.
select name, queue, priority, max_attempts from rota_tasks where name = :name

-- name: join
-- Make a worker known; nothing is added when its id is not new.
insert into rota_workers (id, name, host, pid, queues, tasks, concurrency, lease, version, started_at, lease_until, trouble)
values (:id, :name, :host, :pid, :served, :tasks, :concurrency, :lease, :version, :now, :now + :lease, :trouble)
on conflict do nothing
returning id

-- name: workers
-- Every known worker, oldest first.
select id, name, host, pid, queues, tasks, concurrency, lease, version, started_at, lease_until, asleep, trouble
from rota_workers
order by started_at, id

-- name: beat
-- Renew a worker's lease, if it is still known.
update rota_workers set lease_until = :now + lease where id = :worker returning id

-- name: expire
-- End a worker's lease.
update rota_workers set lease_until = :now where id = :worker and lease_until > :now

-- name: reported
-- What became of the jobs that a worker reports as running.
select id, claim, cancelling from rota_jobs where id in :ids and worker = :worker

-- name: lock_worker
-- Keep a worker from claiming until the transaction ends.
select 1 from rota_workers where id = :worker

-- name: forget_all
-- Forget those of these workers that hold no job any more, and answer which.
delete from rota_workers
where id in :workers and id not in (select worker from rota_jobs where worker in :workers)
returning id

-- name: postpone
-- Look at these workers again in a while, as dead ones.
update rota_workers set lease_until = :now + :wait where id in :workers

-- name: next_lease
-- When the next lease runs out.
select min(lease_until), :now from rota_workers

-- name: dead
-- The workers whose lease ran out.
select id, name from rota_workers where lease_until <= :now order by id

-- name: claimed_by
-- Up to so many jobs that these workers hold. This reads every unfinished job: no index may know the worker, for a claim
-- would have to write it, and workers seldom die.
select id, task, queue, claim - excused, worker, max_attempts, cancelling
from rota_jobs
where worker in :workers
order by id
limit :limit

-- name: strays
-- The jobs that a worker holds besides these.
select id, task, queue, claim - excused, worker, max_attempts, cancelling
from rota_jobs
where worker = :worker and not (id in :ids)
order by id

-- name: mine
-- Those of these jobs that a worker holds, kept as they are until the transaction ends.
select id, claim from rota_jobs where id in :ids and worker = :worker

-- name: note
-- Remember how the attempts that these jobs are in ended.
insert into rota_attempts (job, claim, attempt, worker, ended_at, outcome, took, error_type, error_message, error_trace)
select id, claim, claim - excused, worker, :now, :outcome, :now - claimed_at, :type, :message, ''
from rota_jobs
where id in :ids

-- name: requeue
-- Queue these running jobs again; the attempt counts unless it is excused.
update rota_jobs
set state = 'queued', worker = null, claimed_at = null, excused = excused + :excuse, reason = :reason
where id in :ids

-- name: next_due
-- When the next scheduled job is due.
select min(due), :now from rota_jobs where state = 'scheduled'

-- name: queues
-- The queues that have queued jobs, found by hopping from name to name along the index.
with recursive hop (name) as (
    select (select min(queue) from rota_jobs where state = 'queued')
    union all
    select (select min(queue) from rota_jobs where state = 'queued' and queue > hop.name) from hop where hop.name is not null
)
select name from hop where name is not null

-- name: get
-- All that is known of these jobs.
select id, task, queue, case when worker is null then state else 'running' end, priority, due, created_at, claim, excused,
       max_attempts, args, key, worker, claimed_at, cast(null as bigint), cast(null as bigint), cast(null as text), reason,
       progress, cancelling, case when state = 'held' then held_limit end, case when state = 'held' then held_key end,
       key_waiting, context
from rota_jobs
where id in :ids
union all
select id, task, queue, state, priority, due, created_at, claim, excused,
       max_attempts, args, key, worker, claimed_at, finished_at, took, result, reason,
       progress, false, null, null, key_waiting, context
from rota_history
where id in :ids

-- name: attempts
-- The attempts of a job that did not succeed, oldest first.
select claim, attempt, worker, ended_at, outcome, took, error_type, error_message, error_trace
from rota_attempts
where job in :ids
order by claim

-- name: find
-- The newest jobs of a kind. Each half reads its table backwards along the ids; a half that cannot match is not read.
select * from (
    select * from (
        select id, task, queue, case when worker is null then state else 'running' end as state, priority, due, created_at,
               claim, excused, max_attempts, args, key, worker, claimed_at, cast(null as bigint) as finished_at,
               cast(null as bigint) as took, cast(null as text) as result, reason, progress, cancelling,
               case when state = 'held' then held_limit end, case when state = 'held' then held_key end, key_waiting,
               context
        from rota_jobs
        where :among_live
          and case when worker is null then state else 'running' end in :states
          and (:before is null or id < :before)
          and (:queue is null or queue = :queue)
          and (:task is null or task = :task)
          and (:key is null or key = :key)
          and (:worker is null or worker = :worker)
        order by id desc
        limit :limit
    ) as live
    union all
    select * from (
        select id, task, queue, state, priority, due, created_at,
               claim, excused, max_attempts, args, key, worker, claimed_at, finished_at,
               took, result, reason, progress, false as cancelling, null, null, key_waiting, context
        from rota_history
        where :among_finished
          and state in :states
          and (:before is null or id < :before)
          and (:queue is null or queue = :queue)
          and (:task is null or task = :task)
          and (:key is null or key = :key)
          and (:worker is null or worker = :worker)
        order by id desc
        limit :limit
    ) as finished
) as either
order by id desc
limit :limit

-- name: find_failed
-- The newest failed jobs, along an index of their own.
select id, task, queue, state, priority, due, created_at,
       claim, excused, max_attempts, args, key, worker, claimed_at, finished_at,
       took, result, reason, progress, false, null, null, key_waiting, context
from rota_history
where state = 'failed'
  and (:before is null or id < :before)
  and (:queue is null or queue = :queue)
  and (:task is null or task = :task)
  and (:key is null or key = :key)
  and (:worker is null or worker = :worker)
order by id desc
limit :limit

-- name: find_key
-- The newest jobs with a key, along the indexes of the keys.
select * from (
    select id, task, queue, case when worker is null then state else 'running' end as state, priority, due, created_at,
           claim, excused, max_attempts, args, key, worker, claimed_at, cast(null as bigint) as finished_at,
           cast(null as bigint) as took, cast(null as text) as result, reason, progress, cancelling,
           case when state = 'held' then held_limit end, case when state = 'held' then held_key end, key_waiting,
           context
    from rota_jobs
    where key = :key
    union all
    select id, task, queue, state, priority, due, created_at,
           claim, excused, max_attempts, args, key, worker, claimed_at, finished_at,
           took, result, reason, progress, false, null, null, key_waiting, context
    from rota_history
    where key = :key
) as either
where state in :states
  and (:before is null or id < :before)
  and (:queue is null or queue = :queue)
  and (:task is null or task = :task)
  and (:worker is null or worker = :worker)
order by id desc
limit :limit

-- name: counts
-- How many jobs there are by queue, task and state, and since when the oldest of them is due.
select queue, task, case when worker is null then state else 'running' end, count(*), min(due)
from rota_jobs
group by 1, 2, 3
union all
select queue, task, state, count(*), min(due)
from rota_history
group by 1, 2, 3

-- name: unfinished
-- How many unfinished jobs there are by queue, state and worker, and since when the first of them is due.
select queue, case when worker is null then state else 'running' end, worker, count(*), min(due)
from rota_jobs
group by 1, 2, 3

-- name: latest
-- The jobs in a final state that ended last.
select id, task, queue, state, priority, due, created_at,
       claim, excused, max_attempts, args, key, worker, claimed_at, finished_at,
       took, result, reason, progress, false, null, null, key_waiting, context
from rota_history
where state = :state
order by finished_at desc
limit :limit

-- name: look_live
-- The states of those of these jobs that are not finished, kept as they are until the transaction ends.
select id, case when worker is null then state else 'running' end from rota_jobs where id in :ids order by id

-- name: look_finished
-- The states of those of these jobs that are finished.
select id, state from rota_history where id in :ids order by id

-- name: ask_cancel
-- Ask the workers of these running jobs to stop them.
update rota_jobs set cancelling = true where id in :ids

-- name: retry_waiting
-- Let these waiting jobs run now, with all their attempts before them. One that was due keeps its place.
update rota_jobs
set state = 'queued', excused = claim, looks = 0,
    due = case when state in ('queued', 'held') and due < :now then due else :now end
where id in :ids

-- name: delete_waiting
-- Delete these unfinished jobs.
delete from rota_jobs where id in :ids

-- name: delete_finished
-- Delete these finished jobs.
delete from rota_history where id in :ids

-- name: delete_attempts
-- Delete what is remembered of these jobs' attempts.
delete from rota_attempts where job in :ids

-- name: old
-- The first jobs in a final state that ended before a moment.
select id from rota_history where state = :state and finished_at < :now - :age order by finished_at limit :limit

-- name: prunable
-- How many jobs in a final state ended before a moment.
select count(*) from rota_history where state = :state and finished_at < :now - :age

-- name: known
-- Those of these ids that the store knows.
select id from rota_jobs where id in :ids
union all
select id from rota_history where id in :ids

-- name: holder
-- The unfinished job of a task that has this key.
select id from rota_jobs where key = :key and task = :task

-- name: mark
-- Note how far a transaction is.
savepoint rota_mark

-- name: unmark
-- Forget that.
release savepoint rota_mark

-- name: back_to_mark
-- Undo what the transaction did since.
rollback to savepoint rota_mark

-- name: overrides
-- The sizes that were set at run time.
select name, size from rota_limits

-- name: override
-- Set a limit's size.
insert into rota_limits (name, size) values (:name, :size) on conflict (name) do update set size = excluded.size

-- name: end_override
-- Let what code declares count again.
delete from rota_limits where name = :name

-- name: rooms_named
-- The rooms of a limit.
select name, key from rota_rooms where name = :name

-- name: holding_rooms
-- The rooms that hold jobs and are not to be looked at yet.
select name, key from rota_rooms where look_at > :now

-- name: marks
-- The limits that last held those of these jobs that are queued.
select distinct held_limit, held_key from rota_jobs where id in :ids and state = 'queued' and held_limit is not null

-- name: next_opening
-- When time next makes room in a room of these limits.
select min(opens_at), :now from rota_rooms where opens_at > :now and name in :names

-- name: take
-- Have a worker run these jobs.
update rota_jobs
set worker = :worker, claim = claim + 1, claimed_at = :now, key = case when key_waiting then null else key end,
    held_limit = null, held_key = null
where id in :ids

-- name: pause
-- Pause a queue until a moment, for a span, or until it is resumed; one that is paused goes on to be, from when it was.
insert into rota_queues (name, paused_at, paused_until, paused_by)
values (:queue, :now, coalesce(:until, :now + :span), :by)
on conflict (name) do update
set paused_until = excluded.paused_until, paused_by = excluded.paused_by,
    paused_at = case
        when rota_queues.paused_until is null or rota_queues.paused_until > :now then rota_queues.paused_at
        else excluded.paused_at
    end

-- name: resume
-- End the pause of a queue, and answer whether it was one still.
delete from rota_queues where name = :queue returning paused_until is null or paused_until > :now

-- name: pauses
-- Every pause that was not ended by hand.
select name, paused_at, paused_until, paused_by from rota_queues order by name

-- name: paused
-- The queues that are paused now, and until when.
select name, paused_until, :now from rota_queues where paused_until is null or paused_until > :now

-- name: edit
-- Change these waiting jobs. What a limit held is queued, for it to be looked at by what it is now. A job that goes back to
-- the scheduled ones counts on no limit any more.
update rota_jobs
set priority = coalesce(:priority, priority),
    queue = coalesce(:queue, queue),
    due = coalesce(:run_at, :now + :delay, due),
    state = case
        when coalesce(:run_at - :now, :delay, case when state = 'scheduled' then 1 else 0 end) > 0 then 'scheduled'
        else 'queued'
    end,
    held_limit = case when coalesce(:run_at - :now, :delay, 0) > 0 then null else held_limit end,
    held_key = case when coalesce(:run_at - :now, :delay, 0) > 0 then null else held_key end
where id in :ids

-- name: dump
-- All that is known of these jobs, and how many times in a row they were handed back for want of their tasks.
select id, task, queue, case when worker is null then state else 'running' end, priority, due, created_at, claim, excused,
       max_attempts, args, key, worker, claimed_at, cast(null as bigint), cast(null as bigint), cast(null as text), reason,
       progress, cancelling, case when state = 'held' then held_limit end, case when state = 'held' then held_key end,
       key_waiting, context, looks
from rota_jobs
where id in :ids
union all
select id, task, queue, state, priority, due, created_at, claim, excused,
       max_attempts, args, key, worker, claimed_at, finished_at, took, result, reason,
       progress, false, null, null, key_waiting, context, 0
from rota_history
where id in :ids

-- name: dump_attempts
-- The attempts of these jobs that did not succeed, oldest first.
select job, claim, attempt, worker, ended_at, outcome, took, error_type, error_message, error_trace
from rota_attempts
where job in :ids
order by job, claim

-- name: dump_rooms
-- The next rooms that remember a start or are closed.
select name, key, started_at, keep_until, closed_until
from rota_rooms
where (name, key) > (:name, :key) and (started_at is not null or closed_until is not null)
order by name, key
limit :limit

-- name: declarations
-- The defaults of every task.
select name, queue, priority, max_attempts from rota_tasks order by name
