CREATE EXTENSION snowflake;
CREATE TABLE orders (
	id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
	customer_id bigint NOT NULL,
	amount numeric NOT NULL
);
