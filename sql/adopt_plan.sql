-- snowflake_migrate.adopt_plan(): existing integer keys go over to snowflake ids while their tables are in use.
-- Under a superuser's name that is the same wherever this runs.
SELECT current_user AS first_user \gset
CREATE ROLE plan_superuser SUPERUSER LOGIN;
\c - plan_superuser
SET client_min_messages = warning;
\set SHOW_CONTEXT never
CREATE SCHEMA plan;
SET search_path = plan, public;

-- what is in the catalogs of the tables, but the order of their columns
CREATE FUNCTION pg_temp.seen() RETURNS TABLE (what text)
LANGUAGE sql AS $$
	SELECT w.what FROM (
		SELECT format('%s.%I %s', a.attrelid::regclass, a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
			CASE WHEN a.attnotnull THEN 'NOT NULL' END, 'IDENTITY ' || nullif(a.attidentity::text, ''),
			'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), 'RIGHTS ' || a.attacl::text,
			'STATISTICS ' || nullif(a.attstattarget, -1), 'OPTIONS ' || (SELECT string_agg(o, ', ') FROM unnest(a.attoptions) o WHERE o ~ '^n_distinct'),
			'COMMENT ' || col_description(a.attrelid, a.attnum)))
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p')
			LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE c.relnamespace = 'plan'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
		UNION ALL
		SELECT concat_ws(' ', pg_get_indexdef(i.indexrelid), CASE WHEN i.indisclustered THEN 'CLUSTERED' END,
			CASE WHEN i.indisreplident THEN 'IDENTITY' END, CASE WHEN NOT i.indisvalid THEN 'INVALID' END,
			'COMMENT ' || obj_description(i.indexrelid, 'pg_class'))
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = 'plan'::regnamespace
		UNION ALL
		SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid), 'COMMENT ' || obj_description(oid, 'pg_constraint'))
		FROM pg_constraint WHERE connamespace = 'plan'::regnamespace AND contype <> 'n'
		UNION ALL
		SELECT concat_ws(' ', pg_get_triggerdef(oid), tgenabled, 'COMMENT ' || obj_description(oid, 'pg_trigger'))
		FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'plan'::regnamespace)
		UNION ALL
		SELECT concat_ws(' ', viewname, viewowner, definition, (SELECT relacl FROM pg_class WHERE oid = format('plan.%I', viewname)::regclass))
		FROM pg_views WHERE schemaname = 'plan'
		UNION ALL
		SELECT concat_ws(' ', 'POLICY', policyname, qual, with_check, roles) FROM pg_policies WHERE schemaname = 'plan'
		UNION ALL
		SELECT concat_ws(' ', 'PUBLICATION', pubname, tablename, attnames, rowfilter) FROM pg_publication_tables WHERE schemaname = 'plan'
		UNION ALL
		SELECT concat_ws(' ', pg_get_statisticsobjdef(oid), stxstattarget) FROM pg_statistic_ext WHERE stxnamespace = 'plan'::regnamespace
		UNION ALL
		SELECT 'SEQUENCE ' || oid::regclass FROM pg_class WHERE relkind = 'S' AND relnamespace = 'plan'::regnamespace
		UNION ALL
		SELECT 'FUNCTION ' || oid::regprocedure FROM pg_proc WHERE pronamespace = 'plan'::regnamespace
	) w (what) ORDER BY w.what COLLATE "C"
$$;

--
-- A shop with all that depends on keys and can be made again
--
CREATE ROLE plan_reader;
CREATE TABLE customers (id serial PRIMARY KEY, name text UNIQUE, inviter int REFERENCES customers DEFERRABLE INITIALLY DEFERRED);
COMMENT ON COLUMN customers.id IS 'whose';
COMMENT ON CONSTRAINT customers_pkey ON customers IS 'the key';
COMMENT ON INDEX customers_pkey IS 'its index';
CREATE TABLE "Or""der" ("Order Id" int GENERATED ALWAYS AS IDENTITY, customer int NOT NULL DEFAULT 1 REFERENCES customers ON UPDATE CASCADE ON DELETE CASCADE,
	no smallint CHECK (no > 0), CONSTRAINT "key of Order" PRIMARY KEY ("Order Id"), CONSTRAINT known CHECK (customer > 0), UNIQUE (customer, no) INCLUDE ("Order Id"));
CREATE INDEX odd ON "Or""der" ((customer % 7), no) WITH (fillfactor = 80) WHERE customer % 2 = 1;
COMMENT ON INDEX odd IS 'of odd customers';
ALTER TABLE "Or""der" REPLICA IDENTITY USING INDEX "key of Order", CLUSTER ON "key of Order";
ALTER TABLE "Or""der" ALTER customer SET STATISTICS 200, ALTER customer SET (n_distinct = 50);
GRANT SELECT (customer), UPDATE (customer, no) ON "Or""der" TO plan_reader;
CREATE STATISTICS both_columns ON customer, no FROM "Or""der";
ALTER STATISTICS both_columns SET STATISTICS 300;
-- a key of two columns, one of which refers; and a reference by two columns
CREATE TABLE items ("order" int REFERENCES "Or""der" ON DELETE SET NULL ("order"), pos smallint NOT NULL, UNIQUE ("order", pos));
CREATE TABLE parts (item_order int, item_pos smallint, FOREIGN KEY (item_order, item_pos) REFERENCES items ("order", pos) MATCH FULL);
-- a reference that is only declared, of an array; one that is not valid; one that is bigint
CREATE TABLE carts (id bigint PRIMARY KEY, orders int[] DEFAULT '{}', owner bigint REFERENCES customers);
SELECT snowflake_migrate.declare_reference('carts', 'orders', '"Or""der"');
CREATE TABLE guests (customer smallint);
ALTER TABLE guests ADD FOREIGN KEY (customer) REFERENCES customers NOT VALID;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER of_customer BEFORE UPDATE OF customer ON "Or""der" FOR EACH ROW WHEN (NEW.customer <> OLD.customer) EXECUTE FUNCTION nothing();
COMMENT ON TRIGGER of_customer ON "Or""der" IS 'when it changes';
ALTER TABLE "Or""der" DISABLE TRIGGER of_customer;
ALTER TABLE customers ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON customers TO plan_reader USING (id > 0);
CREATE VIEW named AS SELECT o."Order Id" AS id, c.name FROM "Or""der" o JOIN customers c ON c.id = o.customer;
GRANT SELECT ON named TO plan_reader;
CREATE VIEW counted AS SELECT count(id) FROM named;
SET client_min_messages = error;	-- wal_level
CREATE PUBLICATION plan_all FOR TABLE customers (id, name) WHERE (id > 5);
SET client_min_messages = warning;
INSERT INTO customers (name, inviter) SELECT 'c' || g, 1 + g / 2 FROM generate_series(1, 50) g;
INSERT INTO "Or""der" (customer, no) SELECT 1 + g % 50, g FROM generate_series(1, 400) g;
INSERT INTO items SELECT "Order Id", 1 FROM "Or""der" WHERE customer <> 48;
INSERT INTO parts SELECT "order", 1 FROM items;
INSERT INTO carts SELECT g, ARRAY[g, g + 1], g FROM generate_series(1, 10) g;
INSERT INTO carts VALUES (11, NULL, NULL);
CREATE TABLE before AS SELECT * FROM pg_temp.seen();

SELECT step, regexp_replace(statement, '[0-9a-f]{32}', '...', 'g') AS statement, lock, why
FROM snowflake_migrate.adopt_plan('{customers,"\"Or\"\"der\""}') WHERE lock !~ 'parts|guests' \gx

-- each statement by itself: after each, the plan goes on with what is left, the writes with it
SELECT statement FROM snowflake_migrate.adopt_plan('{customers,"\"Or\"\"der\""}') WHERE step <= 6 \gexec
INSERT INTO customers (name) VALUES ('between');
INSERT INTO "Or""der" (customer, no) VALUES (2, 1000);
UPDATE "Or""der" SET customer = 3 WHERE no = 7;
SELECT count(*) FILTER (WHERE snowflake_new_customer = customer) AS filled, count(*) FROM "Or""der";
SELECT step, left(statement, 68) AS statement FROM snowflake_migrate.adopt_plan('{customers,"\"Or\"\"der\""}') LIMIT 3;

-- not ready
CALL snowflake_migrate.adopt_swap('{customers,"\"Or\"\"der\""}', '{id,Order Id}');

-- back, and forth again: what is undone has left nothing
SELECT statement, lock FROM snowflake_migrate.adopt_undo_plan('{customers,"\"Or\"\"der\""}') WHERE lock ~ 'Or' \gx
SELECT statement FROM snowflake_migrate.adopt_undo_plan('{customers,"\"Or\"\"der\""}') \gexec
TABLE before EXCEPT ALL SELECT * FROM pg_temp.seen();
SELECT count(*) FROM (SELECT * FROM pg_temp.seen() WHERE what !~ '^plan.before|^before' EXCEPT ALL TABLE before) AS s;
SELECT count(*) FROM snowflake_migrate.adopt_undo_plan('{customers,"\"Or\"\"der\""}');

CREATE TABLE all_statements AS SELECT * FROM snowflake_migrate.adopt_plan('{customers,"\"Or\"\"der\""}');
-- some twice: nothing changes by the second time
SELECT statement FROM all_statements WHERE statement !~ 'adopt_swap' ORDER BY step \gexec
\set ECHO none
SELECT statement FROM all_statements WHERE lock ~ 'Or' AND statement !~ 'adopt_swap' ORDER BY step \gexec
\set ECHO all
-- both foreign keys cascade, whichever is first
UPDATE customers SET id = 1001 WHERE id = 47;
DELETE FROM customers WHERE id = 48;
INSERT INTO "Or""der" ("Order Id", customer, no) OVERRIDING SYSTEM VALUE VALUES (5000, 1001, 2000);
INSERT INTO items VALUES (5000, 2);
DELETE FROM "Or""der" WHERE no = 2000;
SELECT customer, snowflake_new_customer, count(*) FROM "Or""der" WHERE customer IN (47, 48, 1001) GROUP BY 1, 2;
SELECT "order", snowflake_new_order FROM items WHERE pos = 2;
-- what does not fit is refused as before
INSERT INTO items VALUES (5000, 2);
INSERT INTO "Or""der" (customer, no) VALUES (1, -1);
-- the undo plan of what is complete
SELECT count(*) FROM snowflake_migrate.adopt_undo_plan('{customers,"\"Or\"\"der\""}');
SELECT statement FROM snowflake_migrate.adopt_plan('{customers,"\"Or\"\"der\""}');
SELECT statement FROM snowflake_migrate.adopt_plan('{customers,"\"Or\"\"der\""}') \gexec
SELECT count(*) FROM snowflake_migrate.adopt_plan('{customers,"\"Or\"\"der\""}');
SELECT * FROM snowflake_migrate.adopt_undo_plan('{customers,"\"Or\"\"der\""}');
-- what is another, and nothing else
SELECT 'before' AS "when", what FROM (TABLE before EXCEPT ALL SELECT * FROM pg_temp.seen()) b
UNION ALL
SELECT 'after', what FROM (SELECT * FROM pg_temp.seen() WHERE what !~ '^(before|all_statements)\.' EXCEPT ALL TABLE before) a
ORDER BY 1 DESC, 2;
-- again, they say that it is done, or fail without a change
\set ECHO none
SELECT statement FROM all_statements WHERE statement ~ 'adopt_step|adopt_swap' ORDER BY step \gexec
\set ECHO all
SELECT count(*), sum(customer), count(DISTINCT "Order Id") FROM "Or""der";
SELECT count(*) FROM items i JOIN "Or""der" o ON o."Order Id" = i."order";
SELECT orders FROM carts WHERE id IN (10, 11) ORDER BY id;
INSERT INTO customers (name) VALUES ('after');
INSERT INTO "Or""der" (customer) SELECT id FROM customers WHERE name = 'after';
SELECT count(*) FROM named WHERE name = 'after' AND snowflake_node(id) = 103;

--
-- bigint keys: only the default changes
--
CREATE TABLE big (id bigserial PRIMARY KEY, n int);
CREATE TABLE big_identity (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, big bigint REFERENCES big);
INSERT INTO big (n) VALUES (1);
SELECT * FROM snowflake_migrate.adopt_plan('{big,big_identity}') \gx
SELECT statement FROM snowflake_migrate.adopt_plan('{big,big_identity}') \gexec
INSERT INTO big (n) VALUES (2);
SELECT id < 10 AS old, what FROM big, pg_temp.seen() WHERE what ~ '^big' ORDER BY 1, what COLLATE "C";
SELECT count(*) FROM snowflake_migrate.adopt_plan('{big,big_identity}');

-- ids that are greater than new ones: with or without a plan, or when they came after it
CREATE TABLE big_ahead (id bigint PRIMARY KEY);
CREATE TABLE plan_of_big AS SELECT statement FROM snowflake_migrate.adopt_plan('{big_ahead}');
INSERT INTO big_ahead VALUES (9223372036854775806);
SELECT * FROM snowflake_migrate.adopt_plan('{big_ahead}');
SELECT statement FROM plan_of_big \gexec
SELECT what FROM pg_temp.seen() WHERE what ~ '^big_ahead.id';
DELETE FROM big_ahead;
SELECT statement FROM plan_of_big \gexec
SELECT what FROM pg_temp.seen() WHERE what ~ '^big_ahead.id';
DROP TABLE plan_of_big;

--
-- A sequence that others use stays
--
CREATE TABLE shared (id serial PRIMARY KEY);
CREATE TABLE sharing (n int DEFAULT nextval('shared_id_seq'));
SELECT statement FROM snowflake_migrate.adopt_plan('{shared}') \gexec
SELECT what FROM pg_temp.seen() WHERE what ~ 'shar';
SELECT pg_get_serial_sequence('shared', 'id');

-- partitioned, with keys that are bigint already
CREATE TABLE big_parted (id bigint GENERATED ALWAYS AS IDENTITY, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE big_part PARTITION OF big_parted FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
SELECT statement FROM snowflake_migrate.adopt_plan('{big_parted}', '{id}') \gexec
INSERT INTO big_parted (day) VALUES ('2026-01-01');
SELECT what FROM pg_temp.seen() WHERE what ~ '^big_part.*id bigint';

-- rows that come by replication, when no other trigger fires
CREATE TABLE replicated (id int PRIMARY KEY, n int);
SELECT statement FROM snowflake_migrate.adopt_plan('{replicated}') WHERE step = 1 \gexec
SET session_replication_role = replica;
INSERT INTO replicated VALUES (1, 1);
UPDATE replicated SET id = 2;
RESET session_replication_role;
TABLE replicated;
-- a column that adopt() has widened meanwhile: what the plan has left can be taken away
SELECT count(*) FROM snowflake_migrate.adopt('{replicated}');
SELECT count(*) FROM snowflake_migrate.adopt_plan('{replicated}');
SELECT statement FROM snowflake_migrate.adopt_undo_plan('{replicated}') \gexec
SELECT what FROM pg_temp.seen() WHERE what ~ 'replicated';

-- batches stay short where the blocks before had nothing to be filled
CREATE TABLE half (id int PRIMARY KEY, filler text DEFAULT repeat('x', 400));
INSERT INTO half SELECT generate_series(1, 20000);
SELECT statement FROM snowflake_migrate.adopt_plan('{half}') WHERE step = 1 \gexec
UPDATE half SET filler = filler WHERE id <= 10000;
CALL snowflake_migrate.adopt_fill('half', '{id}', batch_time => '1 ms');
SELECT max(count) < 4000 AS short, sum(count) FROM (SELECT count(*) FROM half WHERE snowflake_new_id > 10000 GROUP BY xmin) AS batch;
DROP TABLE half;

--
-- What is refused, all at once
--
CREATE TABLE odd_ones (id serial PRIMARY KEY, snowflake_new_id text, a int, twice int GENERATED ALWAYS AS (id * 2) STORED,
	UNIQUE (id, a) DEFERRABLE, CHECK (a > 0) NOT VALID);
CREATE TABLE odd_child (odd int DEFAULT 1 REFERENCES odd_ones ON DELETE SET DEFAULT, during int4range, EXCLUDE USING gist (int4range(odd, odd + 1) WITH &&));
CREATE TRIGGER "~snowflake_z" BEFORE INSERT ON odd_ones FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER always AFTER UPDATE ON odd_ones FOR EACH ROW EXECUTE FUNCTION nothing();
ALTER TABLE odd_ones ENABLE ALWAYS TRIGGER always;
CREATE RULE nobody AS ON DELETE TO odd_ones DO INSTEAD NOTHING;
SET client_min_messages = error;	-- wal_level
CREATE PUBLICATION plan_odd FOR TABLE odd_ones;
SET client_min_messages = warning;
CREATE FUNCTION first_odd() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT min(id) FROM odd_ones; END;
SELECT * FROM snowflake_migrate.adopt_plan('{odd_ones}');
SELECT count(*) FROM pg_temp.seen() WHERE what ~ '~snowflake_new';
CREATE TABLE parted (id serial, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE parent (id serial PRIMARY KEY);
CREATE TABLE child () INHERITS (parent);
SELECT * FROM snowflake_migrate.adopt_plan('{parted,parent}', '{id,id}');
SELECT * FROM snowflake_migrate.adopt_plan(NULL);
SELECT * FROM snowflake_migrate.adopt_plan('{named}');
SELECT * FROM snowflake_migrate.adopt_plan('{parts}');
SELECT * FROM snowflake_migrate.adopt_undo_plan(NULL);
CALL snowflake_migrate.adopt_fill('big', '{id}');
CALL snowflake_migrate.adopt_fill(NULL, '{id}');
CALL snowflake_migrate.adopt_fill('big', '{id}', batch_time => '0');
CALL snowflake_migrate.adopt_fill('named', '{id}');
CALL snowflake_migrate.adopt_step(NULL);
CALL snowflake_migrate.adopt_step('SELECT 1', 'big', 'nowhere');
CALL snowflake_migrate.adopt_step('SELECT 1', attempts => 0);
CALL snowflake_migrate.adopt_step('SELECT 1', lock_timeout => NULL);
BEGIN;
CALL snowflake_migrate.adopt_step('SELECT 1');
ROLLBACK;

-- two plans over one table: the second waits for the first
CREATE TABLE one (id serial PRIMARY KEY);
CREATE TABLE two (id serial PRIMARY KEY, one int REFERENCES one);
SELECT statement FROM snowflake_migrate.adopt_plan('{one}') WHERE statement ~ 'ADD COLUMN' \gexec
SELECT count(*) FROM snowflake_migrate.adopt_plan('{two}');
-- unless it takes it over
SELECT statement FROM snowflake_migrate.adopt_plan('{one,two}') \gexec
SELECT what FROM pg_temp.seen() WHERE what ~ '^(one|two)\.';

-- what was made for what is dropped, or has another name, goes before the swap
CREATE TABLE three (id serial PRIMARY KEY);
CREATE TABLE four (id serial PRIMARY KEY, three int REFERENCES three CONSTRAINT twice REFERENCES three CHECK (three > 0));
CREATE UNIQUE INDEX three_index ON four (three);
CREATE INDEX four_index ON four (three, id);
SELECT statement FROM snowflake_migrate.adopt_plan('{three,four}') WHERE statement !~ 'adopt_swap' \gexec
ALTER TABLE four DROP CONSTRAINT twice, DROP CONSTRAINT four_three_check;
DROP INDEX three_index;
ALTER INDEX four_index RENAME TO renamed;
SELECT statement, lock FROM snowflake_migrate.adopt_plan('{three,four}');
SELECT statement FROM snowflake_migrate.adopt_plan('{three,four}') \gexec
SELECT what FROM pg_temp.seen() WHERE what ~ '(three|four)' AND what !~ 'SEQUENCE';

-- a column is NOT NULL, or is not any more, only after its CHECK was made: it is made again, and proves what it is to prove
CREATE TABLE five (id serial PRIMARY KEY);
CREATE TABLE six (five int REFERENCES five, other int NOT NULL REFERENCES five, many int[]);
SELECT snowflake_migrate.declare_reference('six', 'many', 'five');
INSERT INTO five DEFAULT VALUES;
INSERT INTO six VALUES (1, 1, '{1}');
SELECT statement FROM snowflake_migrate.adopt_plan('{five}') WHERE statement !~ 'adopt_swap' \gexec
SELECT left(statement, 50) FROM snowflake_migrate.adopt_plan('{five}');
ALTER TABLE six ALTER five SET NOT NULL, ALTER many SET NOT NULL, ALTER other DROP NOT NULL;
SELECT left(statement, 60) AS statement FROM snowflake_migrate.adopt_plan('{five}') WHERE lock ~ 'six';
SELECT statement FROM snowflake_migrate.adopt_plan('{five}') WHERE statement !~ 'SET NOT NULL|adopt_swap' \gexec
BEGIN;
SELECT seq_scan AS scans FROM pg_stat_xact_user_tables WHERE relid = 'six'::regclass \gset
ALTER TABLE six ALTER snowflake_new_five SET NOT NULL, ALTER snowflake_new_many SET NOT NULL;
SELECT seq_scan - :scans AS scans FROM pg_stat_xact_user_tables WHERE relid = 'six'::regclass;
ROLLBACK;
INSERT INTO six VALUES (1, NULL, '{}');
SELECT statement FROM snowflake_migrate.adopt_plan('{five}') \gexec
SELECT what FROM pg_temp.seen() WHERE what ~ '^six';
TABLE six;

-- the trigger of a column of that name calls a function that is not the plan's: it stays
CREATE TABLE odd_one (id serial PRIMARY KEY, snowflake_new_id bigint);
CREATE TRIGGER "~snowflake_new_id" BEFORE INSERT ON odd_one FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT statement FROM snowflake_migrate.adopt_undo_plan('{odd_one}') \gexec
SELECT 'nothing()'::regprocedure;
SELECT tgname FROM pg_trigger WHERE tgrelid = 'odd_one'::regclass;

-- a superuser's plan of another role's table
CREATE ROLE plan_owner LOGIN;
GRANT CREATE, USAGE ON SCHEMA plan TO plan_owner;
CREATE TABLE theirs (id serial PRIMARY KEY);
ALTER TABLE theirs OWNER TO plan_owner;
SELECT * FROM snowflake_migrate.adopt_plan('{theirs}');
-- and as its owner
SELECT snowflake_migrate.grant_to('plan_owner');
SET ROLE plan_owner;
SELECT * FROM snowflake_migrate.adopt_plan('{customers}');
RESET ROLE;
-- without the right to keep other triggers from firing
REVOKE SET ON PARAMETER session_replication_role FROM plan_owner;
CREATE TRIGGER changed BEFORE UPDATE ON theirs FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER changed_note BEFORE UPDATE OF id ON theirs FOR EACH ROW EXECUTE FUNCTION nothing();
\set superuser :USER
\c - plan_owner
SELECT * FROM snowflake_migrate.adopt_plan('{plan.theirs}');
DROP TRIGGER changed ON plan.theirs;
ALTER TABLE plan.theirs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT * FROM snowflake_migrate.adopt_plan('{plan.theirs}');
ALTER TABLE plan.theirs NO FORCE ROW LEVEL SECURITY;
\c - :superuser
REVOKE CREATE ON SCHEMA plan FROM plan_owner;
\c - plan_owner
SELECT * FROM snowflake_migrate.adopt_plan('{plan.theirs}');
\c - :superuser
GRANT CREATE ON SCHEMA plan TO plan_owner;
\c - plan_owner
SELECT left(statement, 40) AS statement FROM snowflake_migrate.adopt_plan('{plan.theirs}');
\c - :superuser
SET client_min_messages = warning;
SET search_path = plan, public;
-- another role's function in a superuser's table
CREATE FUNCTION their_check(int) RETURNS boolean LANGUAGE sql RETURN true;
ALTER FUNCTION their_check(int) OWNER TO plan_owner;
CREATE TABLE ours (id serial PRIMARY KEY CHECK (their_check(id)));
SELECT * FROM snowflake_migrate.adopt_plan('{ours}');

DELETE FROM snowflake_migrate.declared_references;
DROP PUBLICATION plan_all, plan_odd;
SET client_min_messages = error;
DROP SCHEMA plan CASCADE;
DROP OWNED BY plan_owner, plan_reader;
DROP ROLE plan_owner, plan_reader;
\c - :first_user
DROP ROLE plan_superuser;
