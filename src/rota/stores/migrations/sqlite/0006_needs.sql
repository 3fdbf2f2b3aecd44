-- Older processes go on: but one that starts anew is refused, and none that runs heeds what later migrations say.

-- Which version of the tables a process must know to use the store as it is since this migration. Whoever knows limits could
-- use all that came before.
alter table rota_migrations add column needs integer not null default 2;
