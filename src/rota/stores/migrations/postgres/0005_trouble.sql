-- Older processes go on.

-- Why the worker before this one ended, where it was no stop: a worker beside a program is started again when it falls.
alter table rota_workers add column trouble text;
