-- The other server's tables, as foreign tables in a schema of this database.  The enum's type has to be here for that.
CREATE EXTENSION snowflake_migrate CASCADE;
CREATE EXTENSION postgres_fdw;
CREATE SERVER camelot FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'folder', port :'port', dbname 'postgres', fetch_size '10000');
CREATE USER MAPPING FOR CURRENT_USER SERVER camelot OPTIONS (user 'postgres');
CREATE SCHEMA camelot;
IMPORT FOREIGN SCHEMA public FROM SERVER camelot INTO camelot;
