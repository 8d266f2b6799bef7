-- A shop and a second one that is to be merged into it, in the schema "source": the same tables, keys that clash.
CREATE EXTENSION snowflake_migrate CASCADE;
CREATE SCHEMA source;

CREATE TABLE orders (
	id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
	customer int NOT NULL,
	created_at timestamptz NOT NULL,
	status text NOT NULL,
	total numeric(10, 2) NOT NULL,
	note text NOT NULL);
CREATE TABLE items (
	id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
	order_id bigint NOT NULL REFERENCES orders,
	product int NOT NULL,
	quantity int NOT NULL,
	price numeric(10, 2) NOT NULL,
	created_at timestamptz NOT NULL);
CREATE TABLE source.orders (
	id serial PRIMARY KEY,
	customer int NOT NULL,
	created_at timestamptz NOT NULL,
	status text NOT NULL,
	total numeric(10, 2) NOT NULL,
	note text NOT NULL);
CREATE TABLE source.items (
	id serial PRIMARY KEY,
	order_id int NOT NULL REFERENCES source.orders,
	product int NOT NULL,
	quantity int NOT NULL,
	price numeric(10, 2) NOT NULL,
	created_at timestamptz NOT NULL);
