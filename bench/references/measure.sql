-- How the check's report names what were foreign keys: see run.
CREATE TABLE report AS
SELECT * FROM snowflake_migrate.check('{source}', 'target') WHERE object IS NOT NULL;

CREATE VIEW finding AS
SELECT split_part(relation, '.', 2) AS relation, object AS name, problem,
	problem LIKE 'looks like a reference to %' AND problem LIKE '%no foreign key' AS is_sure,
	split_part(substring(advice FROM E'declare_reference\\(''[^'']*'', ''[^'']*'', ''([^'']*)'''), '.', 2) AS referenced
FROM report
WHERE advice LIKE '%declare_reference(%' OR problem LIKE 'key is not given%';

-- What a column that is a key of its own refers to is asked with an error, and not counted here.
CREATE VIEW outcome AS
SELECT t.relation, t.name, t.referenced, f.problem,
	CASE WHEN f.problem IS NULL OR f.problem = 'may hold ids' THEN 'not named'
		WHEN f.is_sure AND f.referenced = ANY (t.referenced) THEN 'sure, right'
		WHEN f.is_sure THEN 'sure, wrong'
		WHEN f.referenced = ANY (t.referenced) THEN 'asked, right'
		WHEN EXISTS (SELECT FROM unnest(t.referenced) AS r (name) WHERE f.problem ~ ('target\.' || r.name || '\M'))
			THEN 'asked, listed'
		ELSE 'asked, wrong' END AS verdict
FROM truth AS t LEFT JOIN finding AS f USING (relation, name)
WHERE t.is_key IS NOT TRUE AND t.referenced IS NOT NULL;

-- Columns that are asked about and refer to nothing.
CREATE VIEW needless AS
SELECT f.relation, f.name, f.problem
FROM finding AS f
WHERE f.problem !~ '^(may hold ids|key is not given)' AND NOT EXISTS (SELECT FROM truth AS t WHERE (t.relation, t.name) = (f.relation, f.name));
