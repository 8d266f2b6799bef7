SET synchronous_commit = off;
INSERT INTO :table (v) SELECT i FROM generate_series(1, 100) i;
