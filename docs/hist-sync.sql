-- hist-sync.sql: histories on PostgreSQL 13 or later (hist-sync(1)).
--
-- `hist-sync init` runs this file, and `psql -f` may as well. It may run again, and several may run
-- at once: each step below is done once and raises chathist.version. A later version of the file
-- only adds steps.
--
-- Each row belongs to a role, `owner`, and row-level security shows it to that role alone. A role
-- that several people may take (SET ROLE) has histories that they share. Other roles cannot read,
-- change or guess a row:
--   * every unique key begins with the owner, so that no error reveals that another has such a row;
--   * every index begins with the owner, and no column has statistics, so that EXPLAIN shows
--     nothing of another's rows;
--   * numbers are counted for each owner, so that they do not show the others' activity;
--   * no foreign key exists, because its check is not subject to row-level security;
--   * everything decides by current_user, the role whose code runs, and no function runs with the
--     rights of its owner;
--   * no role has a right that would let it lock a table for the others. LOCK TABLE asks for UPDATE,
--     DELETE or TRUNCATE on the table, so UPDATE is granted on columns, and the others are not.
-- The catalogs of PostgreSQL show every role the size of the tables as a whole.
-- The role that ran this file, the owner of the database and superusers administer the tables, and
-- can change all of that. Everything in the schema must belong to them (see $trust$).
--
-- The session is part of every key of the tables that grow with the messages, and they are
-- partitioned by its hash: engines that distribute tables can use it as the distribution key.

BEGIN ISOLATION LEVEL READ COMMITTED;
-- Names mean the system's own objects, never those that another role made in `public`, for example.
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;

DO $create$
BEGIN
    IF current_setting('server_version_num')::integer < 130000 THEN
        RAISE EXCEPTION 'PostgreSQL 13 or later is needed, this is %', current_setting('server_version')
            USING ERRCODE = 'feature_not_supported';
    END IF;
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'the encoding of the database is %: UTF8 is needed', current_setting('server_encoding')
            USING ERRCODE = 'feature_not_supported';
    END IF;
    IF to_regnamespace('chathist') IS NULL THEN
        CREATE SCHEMA chathist;
    END IF;
EXCEPTION WHEN duplicate_schema OR unique_violation THEN
    NULL; -- Another transaction made it at the same time, and has ended.
END
$create$;

-- Fails unless all that the tables consist of belongs to the owner of the database, to superusers or
-- to the role that runs this. Another role's code in a view, a trigger, an index or a type would run
-- with the rights of everyone who uses the tables. hist-sync takes this statement from the file and
-- runs it in each of its transactions before it uses the tables. It reads only pg_catalog.
DO $trust$
DECLARE
    place constant oid := to_regnamespace('chathist');
    base record;
    wrong record;
BEGIN
    SELECT oid, datdba INTO base FROM pg_database WHERE datname = current_database();
    WITH RECURSIVE
    -- What is in the schema, the tables that inherit from these, and those that they inherit from.
    relation (oid) AS (
        SELECT oid FROM pg_class WHERE relnamespace = place
        UNION
        SELECT i.oid FROM relation r CROSS JOIN LATERAL (
            SELECT inhrelid FROM pg_inherits WHERE inhparent = r.oid
            UNION ALL SELECT inhparent FROM pg_inherits WHERE inhrelid = r.oid) i (oid)
    ),
    part (class, oid) AS (
        SELECT 'pg_namespace'::regclass, place
        UNION ALL SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = place
        UNION ALL SELECT 'pg_class'::regclass, oid FROM relation
        UNION ALL SELECT 'pg_attrdef'::regclass, p.oid FROM pg_attrdef p JOIN relation r ON r.oid = adrelid
        UNION ALL SELECT 'pg_constraint'::regclass, p.oid FROM pg_constraint p JOIN relation r ON r.oid = conrelid
        UNION ALL SELECT 'pg_policy'::regclass, p.oid FROM pg_policy p JOIN relation r ON r.oid = polrelid
        UNION ALL SELECT 'pg_rewrite'::regclass, p.oid FROM pg_rewrite p JOIN relation r ON r.oid = ev_class
        UNION ALL SELECT 'pg_trigger'::regclass, p.oid FROM pg_trigger p JOIN relation r ON r.oid = tgrelid
    ),
    -- The parts, and the functions, operators, types, tables and servers that they use.
    thing (class, oid) AS (
        SELECT class, oid FROM part
        UNION SELECT refclassid, refobjid FROM pg_depend JOIN part ON classid = class AND objid = oid
              WHERE refclassid <> 'pg_namespace'::regclass
    )
    -- The owner is noted for each object but those of the superuser that made the cluster.
    SELECT pg_describe_object(t.class, t.oid, 0) AS name, a.rolname AS owner INTO wrong
    FROM thing t JOIN pg_shdepend s ON s.dbid = base.oid AND s.classid = t.class AND s.objid = t.oid AND s.deptype = 'o'
    JOIN pg_roles a ON a.oid = s.refobjid
    WHERE NOT a.rolsuper AND a.oid <> base.datdba AND a.rolname NOT IN (current_user, 'pg_database_owner')
      -- Version 1 made this function for a role that cannot log in. Nothing uses it now.
      AND NOT (a.rolname = 'chathist_search_' || base.oid AND NOT a.rolcanlogin AND t.class = 'pg_proc'::regclass
               AND (SELECT pronamespace = place AND proname = 'search' FROM pg_proc p WHERE p.oid = t.oid))
    ORDER BY t.class = 'pg_namespace'::regclass DESC, 1 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% belongs to ''%'', and not to the owner of the database, a superuser or ''%''',
                        wrong.name, wrong.owner, current_user USING ERRCODE = 'feature_not_supported';
    END IF;
    -- A schema of this name that something else made stays as it is.
    IF EXISTS (SELECT FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = place
               AND classid <> 'pg_default_acl'::regclass)
       AND EXISTS (VALUES ('version'::name, 'r'::"char"), ('owners', 'r'), ('messages', 'p'), ('deleted', 'r'),
                          ('cursors', 'r'), ('sessions', 'v')
                   EXCEPT SELECT relname, relkind FROM pg_class WHERE relnamespace = place) THEN
        RAISE EXCEPTION 'the schema chathist of this database is not one of hist-sync'
            USING ERRCODE = 'feature_not_supported';
    END IF;
END
$trust$;

DO $version$
BEGIN
    IF to_regclass('chathist.version') IS NULL THEN
        CREATE TABLE chathist.version (version integer NOT NULL);
        INSERT INTO chathist.version VALUES (0);
    END IF;
EXCEPTION WHEN duplicate_table OR unique_violation THEN
    NULL; -- as above
END
$version$;

DO $step1$
DECLARE
    tab text;
    col text;
BEGIN
    IF (SELECT version FROM chathist.version) < 2 THEN
        -- Others wait here until this transaction ends. Readers of the table do not prevent it.
        LOCK TABLE chathist.version IN SHARE UPDATE EXCLUSIVE MODE;
    END IF;
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
    -- the line, byte for byte; the other columns are derived from it. A line that was deleted leaves
    -- a row that has only its number, in a history without a name: PostgreSQL has no right to delete
    -- rows that is not also one to lock the table.
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
    UPDATE chathist.version SET version = 1;
END
$step1$;

-- Version 1 had a search that ran as a role of its own, an index for it, a column with the lines as
-- jsonb, and rights that let every role lock the tables.
DO $step2$
DECLARE
    reader text := 'chathist_search_' || (SELECT oid FROM pg_database WHERE datname = current_database());
    given record;
    extension text;
BEGIN
    IF (SELECT version FROM chathist.version) >= 2 THEN
        RETURN;
    END IF;
    IF NOT (SELECT rolsuper OR oid = (SELECT datdba FROM pg_database WHERE datname = current_database())
            FROM pg_roles WHERE rolname = current_user) THEN
        RAISE WARNING 'only the role ''%'' can use these tables, because it does not own the database', current_user;
    END IF;

    DROP FUNCTION IF EXISTS chathist.search(text, text[], bigint);
    DROP POLICY IF EXISTS search ON chathist.messages;
    DROP INDEX IF EXISTS chathist.messages_by_trigram;

    CREATE OR REPLACE FUNCTION chathist.as_jsonb(line text) RETURNS jsonb
        LANGUAGE plpgsql STABLE STRICT SECURITY INVOKER SET search_path = pg_catalog, pg_temp
        AS $body$
    BEGIN
        RETURN line::jsonb;
    EXCEPTION WHEN OTHERS THEN
        RETURN NULL; -- U+0000, half of a surrogate pair, or a number of very many digits
    END
    $body$;

    -- The sessions. A query should select only the columns that it needs: `conversation` is read
    -- from all messages of a session.
    CREATE OR REPLACE VIEW chathist.sessions WITH (security_barrier = true) AS
    SELECT s.history, s.session AS session_id,
           (SELECT min(m.stamp) FROM chathist.messages m
            WHERE m.owner = current_user AND m.history = s.history AND m.session = s.session
              AND m.number = s.first) AS created_at,
           s.last_accessed,
           s.message_count,
           -- A title that another one replaces does not count; of the others the latest does.
           (SELECT chathist.as_jsonb(m.line) ->> 'content' FROM chathist.messages m
            WHERE m.owner = current_user AND m.history = s.history AND m.session = s.session
              AND m.role = 'title'
              AND NOT EXISTS (SELECT FROM chathist.messages r
                              WHERE r.owner = current_user AND r.history = s.history
                                AND r.session = s.session AND r.role = 'title'
                                AND chathist.as_jsonb(r.line) -> 'replaces' ? m.id)
            ORDER BY m.stamp DESC, m.id DESC LIMIT 1) AS title,
           (SELECT jsonb_agg(coalesce(chathist.as_jsonb(m.line),
                                      jsonb_build_object('id', m.id, 'role', m.role, 'line', m.line))
                             ORDER BY m.number)
            FROM chathist.messages m
            WHERE m.owner = current_user AND m.history = s.history AND m.session = s.session
              AND m.role <> 'title') AS conversation,
           s.first, s.last
    FROM (SELECT m.history, m.session, min(m.number) AS first, max(m.number) FILTER (WHERE m.role <> 'title') AS last,
                 -- A time that is ahead of the clock says nothing if there is another.
                 coalesce(max(m.stamp) FILTER (WHERE m.role <> 'title' AND m.stamp <= now()),
                          max(m.stamp) FILTER (WHERE m.role <> 'title')) AS last_accessed,
                 count(*) FILTER (WHERE m.role <> 'title') AS message_count
          FROM chathist.messages m WHERE m.owner = current_user AND m.history <> ''
          GROUP BY m.history, m.session HAVING count(*) FILTER (WHERE m.role <> 'title') > 0) s;
    ALTER TABLE chathist.messages DROP COLUMN IF EXISTS body;

    -- The rights that version 1 or ALTER DEFAULT PRIVILEGES gave.
    FOR given IN SELECT DISTINCT format('%s %s', kind, name) AS what,
                        CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS grantee
                 FROM (SELECT 'SCHEMA' AS kind, 'chathist' AS name, nspowner AS owner, nspacl AS acl
                       FROM pg_namespace WHERE nspname = 'chathist'
                       UNION ALL SELECT 'TABLE', oid::regclass::text, relowner, relacl FROM pg_class
                       WHERE relnamespace = 'chathist'::regnamespace AND relkind IN ('r', 'p', 'v')) o
                 CROSS JOIN LATERAL aclexplode(acl) WHERE grantee <> owner LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s CASCADE', given.what, given.grantee);
    END LOOP;
    GRANT USAGE ON SCHEMA chathist TO PUBLIC;
    GRANT EXECUTE ON FUNCTION chathist.as_jsonb TO PUBLIC;
    GRANT SELECT ON chathist.version, chathist.sessions TO PUBLIC;
    GRANT SELECT, INSERT, UPDATE (last) ON chathist.owners TO PUBLIC;
    -- All but the owner and the number, to erase a line.
    GRANT SELECT, INSERT, UPDATE (history, session, id, digest, mark, role, stamp, line, folded)
        ON chathist.messages TO PUBLIC;
    GRANT SELECT, INSERT ON chathist.deleted TO PUBLIC;
    GRANT SELECT, INSERT, UPDATE (pushed, pushed_check, deleted, deleted_check, pulled, seen, seen_check)
        ON chathist.cursors TO PUBLIC;

    FOREACH extension IN ARRAY ARRAY['btree_gin', 'pg_trgm'] LOOP
        BEGIN
            IF EXISTS (SELECT FROM pg_extension WHERE extname = extension
                       AND extnamespace = 'chathist'::regnamespace) THEN
                EXECUTE format('DROP EXTENSION %I', extension);
            END IF;
        EXCEPTION WHEN OTHERS THEN
            NULL; -- Something else uses it.
        END;
    END LOOP;
    BEGIN
        IF to_regrole(reader) IS NOT NULL THEN
            EXECUTE format('DROP ROLE %I', reader);
        END IF;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'the role % is not needed any more, and remains: %', reader, SQLERRM;
    END;
    UPDATE chathist.version SET version = 2;
END
$step2$;

-- With this option, which PostgreSQL 15 brought, the view checks the rights of the role that reads it.
DO $view$
BEGIN
    IF current_setting('server_version_num')::integer >= 150000
       AND pg_has_role((SELECT relowner FROM pg_class WHERE oid = 'chathist.sessions'::regclass), 'USAGE') THEN
        ALTER VIEW chathist.sessions SET (security_invoker = true);
    END IF;
END
$view$;

COMMIT;
