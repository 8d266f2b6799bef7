-- bytes of WAL | of the primary key | of all indexes | rows
SELECT pg_current_wal_insert_lsn() - :'start', pg_relation_size('loaded_pkey'), pg_indexes_size('loaded'),
	(SELECT count(*) FROM loaded);
