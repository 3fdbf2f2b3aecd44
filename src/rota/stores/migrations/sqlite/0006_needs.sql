-- Older processes go on: those that run do, while one of before this that starts anew is refused; replace, do not restart.

-- Which version of the tables a process must know to use the store as it is since this migration. Whoever knows limits could
-- use all that came before.
alter table rota_migrations add column needs integer not null default 2;
