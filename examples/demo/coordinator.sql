CREATE EXTENSION snowflake;
CREATE EXTENSION postgres_fdw;

-- Rows that come through the coordinator get their id there, from this default.
CREATE TABLE orders (
	id bigint NOT NULL DEFAULT snowflake_nextval(),
	customer_id bigint NOT NULL,
	amount numeric NOT NULL
) PARTITION BY RANGE (customer_id);

CREATE SERVER shard1 FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'folder', port :'port1', dbname 'postgres');
CREATE SERVER shard2 FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'folder', port :'port2', dbname 'postgres');
-- Without a user libpq takes the operating system's.
CREATE USER MAPPING FOR CURRENT_USER SERVER shard1 OPTIONS (user 'postgres');
CREATE USER MAPPING FOR CURRENT_USER SERVER shard2 OPTIONS (user 'postgres');
CREATE FOREIGN TABLE orders_shard1 PARTITION OF orders FOR VALUES FROM (1) TO (1001)
	SERVER shard1 OPTIONS (table_name 'orders');
CREATE FOREIGN TABLE orders_shard2 PARTITION OF orders FOR VALUES FROM (1001) TO (2001)
	SERVER shard2 OPTIONS (table_name 'orders');
