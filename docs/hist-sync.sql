-- hist-sync.sql: histories on PostgreSQL 13 or later (hist-sync(1)).
--
-- `hist-sync init` runs this file, and `psql -f` may as well. It may run again, and several may run
-- at once: each step below is done once and raises chathist.version. A later version of the file
-- only adds steps.
--
-- Each row belongs to a role, `owner`, and row-level security shows it to that role alone. A role
-- that several people may take (SET ROLE) has histories that they share. Nobody can read, change or
-- guess a row of another:
--   * every unique key begins with the owner, so that no error reveals that another has such a row;
--   * every index begins with the owner, and no column has statistics, so that EXPLAIN shows
--     nothing of another's rows;
--   * numbers are counted for each owner, so that they do not show the others' activity;
--   * no foreign key exists, because its check is not subject to row-level security.
-- The catalogs of PostgreSQL show every role the size of the tables as a whole.
-- The role that ran this file and superusers administer the tables, and can change all of that.
--
-- The session is part of every key of the tables that grow with the messages, and they are
-- partitioned by its hash: engines that distribute tables can use it as the distribution key.

BEGIN;
SET LOCAL client_min_messages = warning;
-- Others wait here until this transaction ends. The number is arbitrary.
SELECT pg_catalog.pg_advisory_xact_lock(4845187361);

DO $check$
BEGIN
    IF current_setting('server_version_num')::integer < 130000 THEN
        RAISE EXCEPTION 'PostgreSQL 13 or later is needed, this is %', current_setting('server_version')
            USING ERRCODE = 'feature_not_supported';
    END IF;
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'the encoding of the database is %: UTF8 is needed', current_setting('server_encoding')
            USING ERRCODE = 'feature_not_supported';
    END IF;
    -- A schema of this name that something else made stays as it is.
    IF to_regclass('chathist.messages') IS NULL OR to_regclass('chathist.version') IS NULL THEN
        IF EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('chathist'))
           OR EXISTS (SELECT FROM pg_proc WHERE pronamespace = to_regnamespace('chathist')) THEN
            RAISE EXCEPTION 'the schema chathist of this database is not one of hist-sync'
                USING ERRCODE = 'feature_not_supported';
        END IF;
        CREATE SCHEMA IF NOT EXISTS chathist;
        CREATE TABLE chathist.version (version integer NOT NULL);
        INSERT INTO chathist.version VALUES (0);
    END IF;
END
$check$;

DO $step1$
DECLARE
    tab text;
    col text;
BEGIN
    IF (SELECT version FROM chathist.version) >= 1 THEN
        RETURN;
    END IF;

    -- The last number that was given to a row of this owner. A transaction that adds rows first
    -- updates it, and so holds its lock until it ends: rows become visible in the order of their
    -- numbers, and a reader that remembers the last number it saw misses none.
    CREATE TABLE chathist.owners (
        owner name PRIMARY KEY DEFAULT current_user,
        last bigint NOT NULL DEFAULT 0
    );

    -- Lines of histories. Two different lines with the same session and id are both kept. `line` is
    -- the line, byte for byte; the other columns are derived from it.
    CREATE TABLE chathist.messages (
        owner name NOT NULL DEFAULT current_user,
        history text COLLATE "C" NOT NULL, -- the name that copies of a history share
        session text COLLATE "C" NOT NULL,
        id text COLLATE "C" NOT NULL,
        digest bytea NOT NULL,             -- SHA-256 of the line
        mark bigint NOT NULL,              -- a digest by which hist-sync compares histories
        number bigint NOT NULL,            -- the order
        role text NOT NULL,
        stamp timestamptz NOT NULL,
        line text NOT NULL,
        body jsonb,                        -- NULL if jsonb cannot hold it
        folded text COLLATE "C" NOT NULL,  -- content and tool calls, upper and lower case the same
        PRIMARY KEY (owner, history, session, id, digest)
    ) PARTITION BY HASH (session);
    CREATE INDEX messages_by_number ON chathist.messages (owner, number, history);
    FOR part IN 0 .. 7 LOOP
        EXECUTE format('CREATE TABLE chathist.messages_%s PARTITION OF chathist.messages '
                       'FOR VALUES WITH (MODULUS 8, REMAINDER %s)', part, part);
    END LOOP;

    -- Messages that were deleted, and must not come back.
    CREATE TABLE chathist.deleted (
        owner name NOT NULL DEFAULT current_user,
        history text COLLATE "C" NOT NULL,
        session text COLLATE "C" NOT NULL,
        id text COLLATE "C" NOT NULL,
        number bigint NOT NULL,
        PRIMARY KEY (owner, history, session, id)
    );
    CREATE INDEX deleted_by_number ON chathist.deleted (owner, number, history);

    -- What each copy of a history and these tables have from one another. Beside a number of lines
    -- is a checksum of these lines, by which a copy that was shortened or replaced is recognised.
    CREATE TABLE chathist.cursors (
        owner name NOT NULL DEFAULT current_user,
        history text COLLATE "C" NOT NULL,
        copy text COLLATE "C" NOT NULL,
        pushed bigint NOT NULL,         -- this many lines of the copy are here
        pushed_check bigint NOT NULL,
        deleted bigint NOT NULL,        -- and this many of its deletions
        deleted_check bigint NOT NULL,
        pulled bigint NOT NULL,         -- rows up to this number are in the copy
        seen bigint NOT NULL,           -- this many lines the copy had then
        seen_check bigint NOT NULL,
        PRIMARY KEY (owner, history, copy)
    );

    FOR tab IN SELECT relname FROM pg_class WHERE relnamespace = 'chathist'::regnamespace
               AND relkind IN ('r', 'p') AND relname <> 'version' LOOP
        EXECUTE format('ALTER TABLE chathist.%I ENABLE ROW LEVEL SECURITY', tab);
        EXECUTE format('ALTER TABLE chathist.%I FORCE ROW LEVEL SECURITY', tab);
        EXECUTE format('CREATE POLICY own ON chathist.%I USING (owner = current_user) '
                       'WITH CHECK (owner = current_user)', tab);
        FOR col IN SELECT attname FROM pg_attribute
                   WHERE attrelid = format('chathist.%I', tab)::regclass AND attnum > 0 LOOP
            EXECUTE format('ALTER TABLE chathist.%I ALTER COLUMN %I SET STATISTICS 0', tab, col);
        END LOOP;
    END LOOP;

    CREATE FUNCTION chathist.as_jsonb(line text) RETURNS jsonb
        LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp
        AS $body$
    BEGIN
        RETURN line::jsonb;
    EXCEPTION WHEN OTHERS THEN
        RETURN NULL;
    END
    $body$;

    -- The sessions. A query should select only the columns that it needs: `conversation` is read
    -- from all messages of a session.
    CREATE VIEW chathist.sessions WITH (security_barrier = true) AS
    SELECT s.history, s.session AS session_id,
           (SELECT min(m.stamp) FROM chathist.messages m
            WHERE m.owner = current_user AND m.history = s.history AND m.session = s.session
              AND m.number = s.first) AS created_at,
           (SELECT max(m.stamp) FROM chathist.messages m
            WHERE m.owner = current_user AND m.history = s.history AND m.session = s.session
              AND m.number = s.last) AS last_accessed,
           s.message_count,
           (SELECT m.body ->> 'content' FROM chathist.messages m
            WHERE m.owner = current_user AND m.history = s.history AND m.session = s.session
              AND m.role = 'title' ORDER BY m.stamp DESC, m.id DESC LIMIT 1) AS title,
           (SELECT jsonb_agg(coalesce(m.body, jsonb_build_object('id', m.id, 'role', m.role,
                                                                 'line', m.line)) ORDER BY m.number)
            FROM chathist.messages m
            WHERE m.owner = current_user AND m.history = s.history AND m.session = s.session
              AND m.role <> 'title') AS conversation,
           s.first, s.last
    FROM (SELECT m.history, m.session, min(m.number) AS first,
                 coalesce(max(m.number) FILTER (WHERE m.role <> 'title'), min(m.number)) AS last,
                 count(*) FILTER (WHERE m.role <> 'title') AS message_count
          FROM chathist.messages m WHERE m.owner = current_user GROUP BY m.history, m.session) s;

    -- The lines of a history of the caller, or of all (NULL), that have all of the texts, the newest
    -- first. The texts are folded like the column. The end of this file says as whom it runs.
    CREATE FUNCTION chathist.search(history text, texts text[], most bigint) RETURNS SETOF text
        LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
        AS $body$
    DECLARE
        me name := CASE current_setting('role') WHEN 'none' THEN session_user
                   ELSE current_setting('role') END;
        indexed boolean := to_regclass('chathist.messages_by_trigram') IS NOT NULL
            AND EXISTS (SELECT FROM unnest(texts) t WHERE t ~ '[[:alnum:]]{3}');
        wanted text := '';
        part text;
    BEGIN
        FOREACH part IN ARRAY texts LOOP
            wanted := wanted || format(' AND folded LIKE %L',
                                       '%' || regexp_replace(part, '([\\%_])', '\\\1', 'g') || '%');
        END LOOP;
        -- Without statistics PostgreSQL takes the primary key for the cheapest index, and reads all
        -- messages of the owner. It cannot use that key for these expressions.
        IF indexed THEN
            wanted := wanted || ' AND owner::text || '''' = $1::text'
                || ' AND ($2 IS NULL OR history || '''' = $2)';
        ELSE
            wanted := wanted || ' AND owner = $1 AND ($2 IS NULL OR history = $2)';
        END IF;
        RETURN QUERY EXECUTE 'SELECT line FROM chathist.messages WHERE role <> ''title'''
            || wanted || ' ORDER BY number DESC LIMIT $3' USING me, search.history, most;
    END
    $body$;

    GRANT USAGE ON SCHEMA chathist TO PUBLIC;
    GRANT SELECT ON chathist.version, chathist.sessions TO PUBLIC;
    GRANT SELECT, INSERT, UPDATE ON chathist.owners TO PUBLIC;
    GRANT SELECT, INSERT, DELETE ON chathist.messages TO PUBLIC;
    GRANT SELECT, INSERT ON chathist.deleted TO PUBLIC;
    GRANT SELECT, INSERT, UPDATE, DELETE ON chathist.cursors TO PUBLIC;
    UPDATE chathist.version SET version = 1;
END
$step1$;

-- What depends on the server and on the rights of the role that runs this file. Each part is done
-- when it can be done for the first time.

DO $rights$
BEGIN
    IF NOT pg_has_role((SELECT nspowner FROM pg_namespace WHERE nspname = 'chathist'), 'USAGE') THEN
        RETURN;
    END IF;
    -- With this option the view checks the rights of the role that reads it.
    IF current_setting('server_version_num')::integer >= 150000 THEN
        ALTER VIEW chathist.sessions SET (security_invoker = true);
    END IF;
END
$rights$;

-- The trigram index. Row-level security forbids that a condition such as LIKE is checked before the
-- owner, even by an index. So chathist.search runs as a role that nobody can be, which reads all
-- rows; the function itself selects those of its caller. Roles belong to all databases of a server,
-- and since PostgreSQL 16 only the role that made another one may use it: so each database has its own.
-- The owner is in the index as a concatenation, which is not leakproof: so other queries cannot use
-- the index to count what another has.
DO $trigrams$
DECLARE
    place name;
    index regclass;
    reader text := 'chathist_search_' || (SELECT oid FROM pg_database WHERE datname = current_database());
BEGIN
    IF NOT pg_has_role((SELECT nspowner FROM pg_namespace WHERE nspname = 'chathist'), 'USAGE')
       OR (SELECT prosecdef FROM pg_proc WHERE oid = 'chathist.search'::regproc) THEN
        RETURN;
    END IF;
    BEGIN
        CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA chathist;
        CREATE EXTENSION IF NOT EXISTS btree_gin WITH SCHEMA chathist;
        SELECT nspname INTO place FROM pg_extension e JOIN pg_namespace n ON n.oid = extnamespace
        WHERE extname = 'pg_trgm';
        EXECUTE format(
            'CREATE ROLE %1$I NOLOGIN;'
            'GRANT %1$I TO CURRENT_USER;'
            'GRANT USAGE, CREATE ON SCHEMA chathist TO %1$I;'
            'GRANT SELECT ON chathist.messages TO %1$I;'
            'CREATE POLICY search ON chathist.messages FOR SELECT TO %1$I USING (true);'
            'ALTER FUNCTION chathist.search SECURITY DEFINER;'
            'ALTER FUNCTION chathist.search OWNER TO %1$I;'
            'REVOKE CREATE ON SCHEMA chathist FROM %1$I;'
            'REVOKE %1$I FROM CURRENT_USER', reader);
        EXECUTE format('CREATE INDEX messages_by_trigram ON chathist.messages '
                       'USING gin ((owner::text || ''''), folded %I.gin_trgm_ops)', place);
        FOR index IN SELECT relid FROM pg_partition_tree('chathist.messages_by_trigram') LOOP
            EXECUTE format('ALTER INDEX %s ALTER COLUMN 1 SET STATISTICS 0', index);
        END LOOP;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'searches read all messages of a person, without an index: %', SQLERRM;
    END;
END
$trigrams$;

COMMIT;
