-- Makes the table that is loaded; no other default is volatile.  key, type: the primary key's default and type; indexes: 1 or 3.
DROP TABLE IF EXISTS loaded;
CREATE TABLE loaded (
	id :type PRIMARY KEY DEFAULT :key,
	customer int NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	item int NOT NULL
);
SELECT :indexes = 3 AS has_more \gset
\if :has_more
CREATE INDEX ON loaded (customer);
CREATE INDEX ON loaded (created_at);
\endif
CHECKPOINT;
