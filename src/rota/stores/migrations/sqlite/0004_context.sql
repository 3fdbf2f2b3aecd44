-- Older processes go on: they carry no context variables.

-- The values of context variables that a job was enqueued with.
alter table rota_jobs add column context text;

alter table rota_history add column context text;
