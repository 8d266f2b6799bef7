/*
 * Names of tables and columns as words of English, for guesses at what refers to what.
 */

/* A name in small letters, with an underscore between its words. */
CREATE FUNCTION snowflake_migrate_internal.word(name text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT lower(regexp_replace(regexp_replace(name, '([a-z0-9])([A-Z])', E'\\1_\\2', 'g'), E'\\W+', '_', 'g'))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.word(text)
	IS 'for snowflake_migrate.merge()''s own use: a name as it is compared with others';

/* Whether a word is one for whatever there is: beside such an id, another column may say of which table it is. */
CREATE FUNCTION snowflake_migrate_internal.may_be_any(word text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT word IN ('asset', 'content', 'element', 'entity', 'item', 'object', 'prize', 'record', 'resource', 'reward',
					'source', 'subject', 'target', 'thing')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.may_be_any(text)
	IS 'for snowflake_migrate.merge()''s own use: whether a word is one for whatever there is';

/* Whether a word is one for another row of the same table. */
CREATE FUNCTION snowflake_migrate_internal.is_another(word text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT word ~ ('(^|_)(ancestor|blocked_by|clone|clone_of|copied_from|copy|copy_of|duplicate|duplicate_of'
		'|merged_into|next|obsolete_by|obsoleted_by|original|parent|predecessor|previous|replaced_by|replaces|reply'
		'|reply_to|root|source|successor|superseded_by|template)(_[a-z]+)?$')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_another(text)
	IS 'for snowflake_migrate.merge()''s own use: whether a word is one for another row of the same table';

/* A name's word as it is, and in the singular. */
CREATE FUNCTION snowflake_migrate_internal.singulars(word text) RETURNS SETOF text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT word
	UNION
	SELECT regexp_replace(word, p.ending || '$', p.singular)
	FROM (VALUES ('s', ''), ('es', ''), ('ies', 'y'), ('people', 'person'), ('children', 'child'))
		AS p (ending, singular)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.singulars(text)
	IS 'for snowflake_migrate.merge()''s own use: a word as it is, and in the singular';

/* A name whose words have no numbers at their ends: lease_types for lease6_types. */
CREATE FUNCTION snowflake_migrate_internal.without_numbers(word text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT regexp_replace(word, '([a-z])[0-9]+(_|$)', E'\\1\\2', 'g')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.without_numbers(text)
	IS 'for snowflake_migrate.merge()''s own use: a name without the numbers at the ends of its words';

/*
 * What a column is about whose name has id at its end, at its beginning or before a last word, or fk or ref, or parent
 * at its beginning: icon for icon_id, iconid_off, fk_icon; feed for parent_feed.
 */
CREATE FUNCTION snowflake_migrate_internal.stem(word text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE
		WHEN word ~ '._ids?$' THEN regexp_replace(word, '_ids?$', '')
		WHEN word ~ '^ids?_.' THEN regexp_replace(word, '^ids?_', '')
		WHEN word ~ '^(fk|ref)_.' THEN regexp_replace(word, '^(fk|ref)_', '')
		WHEN word ~ '._(fk|ref)$' THEN regexp_replace(word, '_(fk|ref)$', '')
		/* Words that end so. */
		WHEN word ~ ('(^|_)(acid|android|bid|covid|fluid|grid|hybrid|(pre|un)?paid|raid|rapid|solid|(in)?valid|void)s?'
			'(_[a-z]+|[0-9]*)$') THEN NULL
		WHEN word ~ '(^|_)uid$' THEN regexp_replace(word, 'uid$', 'user')
		WHEN word ~ '.ids?$' THEN regexp_replace(word, 'ids?$', '')
		WHEN word ~ '.id(_?[0-9]+|_[a-z]+)$' THEN regexp_replace(word, '_?id(_?[0-9]+|_[a-z]+)$', '')
		WHEN word = 'parent' THEN word
		WHEN word ~ '^parent_.' THEN regexp_replace(word, '^parent_', '')
		WHEN word ~ '._parent$' THEN word END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.stem(text)
	IS 'for snowflake_migrate.merge()''s own use: what a column of ids is about';

/*
 * Whether a word is one for who did something, or had it done: author, sent_by; not is_author.  In the plural, as most
 * numbers of them are called, too, only where it may be one for several.
 */
CREATE FUNCTION snowflake_migrate_internal.is_somebody(word text, also_several boolean) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT word !~ '^(can|has|is)_' AND word ~ ('(^host|(^|_)(by|actor|admin|agent|approver|assignee|attacker|author'
		'|buyer|client|contact|creator|defender|editor'
		'|employee|follower|founder|friend|from_user|inviter|invitee|killer|leader|loser|manager|member|mentor'
		'|moderator|opponent|originator|owner|participant|player|receiver|recipient|referrer|reporter|requester'
		'|reviewer|seller|sender|spouse|submitter|subscriber|supervisor|to_user|updater|uploader|user|victim|visitor'
		'|voter|winner|writer))' || CASE WHEN also_several THEN 's?$' ELSE '$' END)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_somebody(text, boolean)
	IS 'for snowflake_migrate.merge()''s own use: whether a word is one for who did something';
