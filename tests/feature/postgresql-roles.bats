#!/usr/bin/env bats
#
# hist-sync with a PostgreSQL database in which another role means harm: it gets no row, and no code of it runs with
# the rights of the others.
# shellcheck disable=SC2016

load ../helper
load ../servers
load ../postgres

# The owner of the database is $admin, alice has a history, and mallory, who may create schemas, has one with
# a table for what was taken.
setup() {
    sandbox
    use_postgres
    admin=admin$BATS_TEST_NUMBER alice=alice$BATS_TEST_NUMBER mallory=mallory$BATS_TEST_NUMBER
    sql "CREATE ROLE $admin LOGIN CREATEROLE; CREATE ROLE $alice LOGIN; CREATE ROLE $mallory LOGIN;
        ALTER DATABASE $PGDATABASE OWNER TO $admin; GRANT CREATE ON DATABASE $PGDATABASE TO $mallory"
    hist_line s1 user 'the secret of alice' >history
    as_mallory "CREATE SCHEMA m; GRANT USAGE ON SCHEMA m TO PUBLIC; CREATE TABLE m.loot (who name, line text);
        GRANT INSERT ON m.loot TO PUBLIC;
        -- Notes who runs it, takes what that role can read, and tries to become a superuser.
        CREATE FUNCTION m.take() RETURNS void LANGUAGE plpgsql AS \$\$
        BEGIN
            IF current_setting('m.busy', true) = 'yes' THEN RETURN; END IF;
            PERFORM set_config('m.busy', 'yes', true);
            INSERT INTO m.loot VALUES (current_user);
            BEGIN EXECUTE 'INSERT INTO m.loot SELECT current_user, line FROM chathist.messages'; EXCEPTION WHEN OTHERS THEN NULL; END;
            BEGIN EXECUTE 'INSERT INTO m.loot SELECT current_user, chathist.search(NULL, ''{}'', 99)'; EXCEPTION WHEN OTHERS THEN NULL; END;
            BEGIN EXECUTE 'INSERT INTO m.loot SELECT current_user, session_id FROM chathist.sessions'; EXCEPTION WHEN OTHERS THEN NULL; END;
            BEGIN EXECUTE 'ALTER ROLE $mallory SUPERUSER'; EXCEPTION WHEN OTHERS THEN NULL; END;
            PERFORM set_config('m.busy', 'no', true);
        END \$\$;
        CREATE FUNCTION m.one() RETURNS integer LANGUAGE plpgsql STABLE AS 'BEGIN PERFORM m.loud(); RETURN 1; END';
        CREATE FUNCTION m.loud() RETURNS void LANGUAGE plpgsql AS 'BEGIN PERFORM m.take(); END';
        CREATE FUNCTION m.of(i integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM m.loud(); RETURN i; END';
        CREATE FUNCTION m.of_text(t text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM m.loud(); RETURN true; END';
        CREATE FUNCTION m.on_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM m.take(); RETURN new; END'"
}

as_mallory() {
    run_expect 0 sql "$1" "$mallory"
}

# taken: the roles with whose rights mallory's code ran, and the lines that it got.
taken() {
    sql 'SELECT who FROM m.loot GROUP BY who ORDER BY who; SELECT line FROM m.loot WHERE line IS NOT NULL'
}

# nothing_taken: mallory's code ran for nobody else.
nothing_taken() {
    run_expect 0 sql "SELECT * FROM m.loot WHERE who <> '$mallory' OR line IS NOT NULL;
        SELECT 'superuser' FROM pg_roles WHERE rolname = '$mallory' AND rolsuper"
    stdout_empty
}

as_alice() {
    hist-sync --name h --history history "$@" "$PLACE&user=$alice"
}

# refused MESSAGE: nobody uses the tables, and everyone says why.
refused() {
    local command
    for command in "push $PLACE&user=$alice" "--search x $PLACE&user=$alice" "init $PLACE&user=$admin" "init $PLACE"; do
        # shellcheck disable=SC2086
        run_expect 2 hist-sync --name h --history history $command
        stderr_matches "$1"
    done
    nothing_taken
}

@test "postgresql: code that others' maintenance runs gets no row" {
    run_expect 0 hist-sync init "$PLACE&user=$admin"
    run_expect 0 as_alice push
    run_expect 0 hist-sync --name h --history history push "$PLACE&user=$admin"
    run_expect 0 hist-sync --name h --history history push "$PLACE"
    as_mallory "CREATE TABLE m.bait (i integer); INSERT INTO m.bait VALUES (1); CREATE INDEX hook ON m.bait (m.of(i));
        CREATE MATERIALIZED VIEW m.view AS SELECT m.of(i) FROM m.bait; TRUNCATE m.loot"
    for statement in 'ANALYZE m.bait' 'VACUUM ANALYZE m.bait' 'REINDEX TABLE m.bait' 'CLUSTER m.bait USING hook' \
        'REFRESH MATERIALIZED VIEW m.view' "REINDEX DATABASE $PGDATABASE" 'VACUUM FULL ANALYZE'; do
        sql "$statement"
        [[ $(sql 'SELECT count(*) > 0 FROM m.loot') == t ]] || fail "$statement did not run the code"
        nothing_taken
        sql 'TRUNCATE m.loot'
    done
    # A function with the rights of mallory that another role calls.
    as_mallory "CREATE FUNCTION m.helpful() RETURNS integer LANGUAGE sql SECURITY DEFINER AS 'SELECT m.take(); SELECT 1'"
    for role in "$alice" "$admin" postgres; do
        run_expect 0 sql 'SELECT m.helpful()' "$role"
        stdout_is 1
    done
    nothing_taken
    sql 'TRUNCATE m.loot'
    # Nobody does anything, but the server does.
    sql "ALTER SYSTEM SET autovacuum_naptime = '1s'"
    sql 'SELECT pg_reload_conf()' >reloaded
    as_mallory 'ALTER TABLE m.bait SET (autovacuum_analyze_threshold = 1, autovacuum_analyze_scale_factor = 0);
        INSERT INTO m.bait SELECT generate_series(1, 99); TRUNCATE m.loot'
    ran() { [[ $(sql 'SELECT count(*) > 0 FROM m.loot') == t ]]; }
    wait_for ran
    sql 'ALTER SYSTEM RESET autovacuum_naptime'
    nothing_taken
    run_expect 0 sql "SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'chathist'::regnamespace"
    stdout_empty
}

@test "postgresql: a schema that another role made first is not used" {
    as_mallory 'CREATE SCHEMA chathist'
    refused "schema chathist belongs to '$mallory', and not to the owner of the database, a superuser or"
    # It looks like the real one, and everything in it runs code.
    as_mallory "$(sed '/^DO \$trust/,/^\$trust/d' "$TESTS/../docs/hist-sync.sql")
        ALTER TABLE chathist.version RENAME TO numbers; CREATE VIEW chathist.version AS SELECT 1 + m.one() AS version;
        GRANT SELECT ON chathist.version TO PUBLIC;
        CREATE POLICY more ON chathist.messages AS RESTRICTIVE USING (m.one() = 1);
        CREATE POLICY more ON chathist.owners AS RESTRICTIVE USING (m.one() = 1);
        ALTER TABLE chathist.owners ALTER COLUMN last SET DEFAULT m.one();
        CREATE TRIGGER more BEFORE INSERT ON chathist.owners FOR EACH ROW EXECUTE FUNCTION m.on_row();
        CREATE INDEX more ON chathist.messages (m.of_text(line))"
    refused "schema chathist belongs to '$mallory'"
    for command in pull --dry-run --sessions '--show last' '--show s1'; do
        # shellcheck disable=SC2086
        run_expect 2 as_alice $command
        stderr_has "schema chathist belongs to '$mallory'"
    done
    # The view is what a superuser would have to be afraid of.
    run_expect 0 sql 'SELECT version FROM chathist.version' "$alice"
    [[ $(taken | head -n 1) == "$alice" ]] || fail 'the code of the look-alike does not run'
}

@test "postgresql: nothing that belongs to another role is used in a schema that does not" {
    run_expect 0 hist-sync init "$PLACE&user=$admin"
    run_expect 0 as_alice push
    # Each is made by mallory, to whom the owner gave too much; or it is made by the owner with a part of hers.
    sql "GRANT CREATE ON SCHEMA chathist TO $mallory; GRANT TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA chathist TO $mallory"
    as_mallory "CREATE DOMAIN m.word AS text CHECK (m.of_text(value)); CREATE TYPE m.pair AS (a integer);
        CREATE FUNCTION m.same(text, text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM m.take(); RETURN \$1 = \$2; END';
        CREATE OPERATOR m.=== (FUNCTION = m.same, LEFTARG = text, RIGHTARG = text)"
    while IFS='|' read -r what make drop as; do
        sql "$make" "${as:-$mallory}"
        # The statement itself may have run the code.
        sql "TRUNCATE m.loot; ALTER ROLE $mallory NOSUPERUSER"
        refused "$what.* belongs to '$mallory'"
        sql "$drop"
    done <<END
table chathist.mine|CREATE TABLE chathist.mine (i integer)|DROP TABLE chathist.mine
function chathist.strpos|CREATE FUNCTION chathist.strpos(text, text) RETURNS integer LANGUAGE sql AS 'SELECT 1'|DROP FUNCTION chathist.strpos
function chathist.search|CREATE FUNCTION chathist.search(text, text[], bigint) RETURNS SETOF text LANGUAGE sql AS 'SELECT m.one()::text'|DROP FUNCTION chathist.search
view chathist.v|CREATE VIEW chathist.v AS SELECT 1 AS a|DROP VIEW chathist.v
materialized view chathist.v|CREATE MATERIALIZED VIEW chathist.v AS SELECT 1|DROP MATERIALIZED VIEW chathist.v
sequence chathist.s|CREATE SEQUENCE chathist.s|DROP SEQUENCE chathist.s
type chathist.t|CREATE DOMAIN chathist.t AS text|DROP DOMAIN chathist.t
function m.same|CREATE OPERATOR chathist.= (FUNCTION = m.same, LEFTARG = text, RIGHTARG = text)|DROP OPERATOR chathist.= (text, text)
collation chathist.|CREATE COLLATION chathist."C" FROM pg_catalog."POSIX"|DROP COLLATION chathist."C"
function m.on_row|CREATE TRIGGER t BEFORE INSERT ON chathist.owners FOR EACH ROW EXECUTE FUNCTION m.on_row()|DROP TRIGGER t ON chathist.owners
function m.on_row|CREATE TRIGGER t AFTER INSERT ON chathist.messages FOR EACH ROW EXECUTE FUNCTION m.on_row()|DROP TRIGGER t ON chathist.messages
function m.of_text|CREATE INDEX i ON chathist.owners ((1)) WHERE m.of_text(owner::text)|DROP INDEX chathist.i|postgres
function m.one|ALTER TABLE chathist.cursors ALTER seen_check SET DEFAULT m.one()|ALTER TABLE chathist.cursors ALTER seen_check DROP DEFAULT|$admin
function m.one|CREATE POLICY p ON chathist.deleted USING (m.one() = 1)|DROP POLICY p ON chathist.deleted|$admin
function m.of_text|ALTER TABLE chathist.deleted ADD CONSTRAINT c CHECK (m.of_text(id))|ALTER TABLE chathist.deleted DROP CONSTRAINT c|$admin
function m.take|CREATE RULE r AS ON INSERT TO chathist.cursors DO ALSO SELECT m.take()|DROP RULE r ON chathist.cursors|$admin
type m.word|ALTER TABLE chathist.deleted ADD COLUMN c m.word|ALTER TABLE chathist.deleted DROP COLUMN c|$admin
operator m.===|CREATE VIEW chathist.v AS SELECT 'a' OPERATOR(m.===) 'b' AS a|DROP VIEW chathist.v|$admin
table m.loot|CREATE VIEW chathist.v AS SELECT * FROM m.loot|DROP VIEW chathist.v|postgres
table m.child|CREATE TABLE m.child () INHERITS (chathist.owners); ALTER TABLE m.child OWNER TO $mallory|DROP TABLE m.child|postgres
table m.part|CREATE TABLE m.part (LIKE chathist.messages_7); ALTER TABLE chathist.messages DETACH PARTITION chathist.messages_7; ALTER TABLE chathist.messages ATTACH PARTITION m.part FOR VALUES WITH (MODULUS 8, REMAINDER 7); ALTER TABLE m.part OWNER TO $mallory|ALTER TABLE chathist.messages DETACH PARTITION m.part; ALTER TABLE chathist.messages ATTACH PARTITION chathist.messages_7 FOR VALUES WITH (MODULUS 8, REMAINDER 7); DROP TABLE m.part|postgres
END
    # A view or a foreign key of mallory's, elsewhere, stops nobody.
    as_mallory 'CREATE VIEW m.view AS SELECT * FROM chathist.messages'
    run_expect 0 as_alice --search secret
    stdout_is_file history
    # Its kind must be right, too, whoever made it.
    sql "ALTER TABLE chathist.cursors RENAME TO c; CREATE VIEW chathist.cursors AS SELECT * FROM chathist.c" "$admin"
    refused 'the schema chathist of this database is not one of hist-sync'
}

@test "postgresql: the file for psql and hist-sync use no name of another schema" {
    # The schema of a role's own name is searched first, then public.
    sql "GRANT CREATE ON SCHEMA public TO PUBLIC"
    as_mallory "CREATE SCHEMA $admin; GRANT USAGE ON SCHEMA $admin TO PUBLIC"
    for schema in public "$admin"; do
        as_mallory "
            CREATE FUNCTION $schema.format(text, integer, integer) RETURNS text LANGUAGE plpgsql AS
                'BEGIN PERFORM m.take(); RETURN pg_catalog.format(\$1, \$2, \$3); END';
            CREATE FUNCTION $schema.format(text, text) RETURNS text LANGUAGE plpgsql AS
                'BEGIN PERFORM m.take(); RETURN pg_catalog.format(\$1, \$2); END';
            CREATE FUNCTION $schema.format(text, text, text) RETURNS text LANGUAGE plpgsql AS
                'BEGIN PERFORM m.take(); RETURN pg_catalog.format(\$1, \$2, \$3); END';
            CREATE FUNCTION $schema.both(text, oid) RETURNS text LANGUAGE plpgsql AS
                'BEGIN PERFORM m.take(); RETURN pg_catalog.concat(\$1, \$2); END';
            CREATE OPERATOR $schema.|| (FUNCTION = $schema.both, LEFTARG = text, RIGHTARG = oid);
            CREATE FUNCTION $schema.same(name, text) RETURNS boolean LANGUAGE plpgsql AS
                'BEGIN PERFORM m.take(); RETURN \$1::text OPERATOR(pg_catalog.=) \$2; END';
            CREATE OPERATOR $schema.= (FUNCTION = $schema.same, LEFTARG = name, RIGHTARG = text);
            CREATE OPERATOR $schema.<> (FUNCTION = $schema.same, LEFTARG = name, RIGHTARG = text);
            CREATE DOMAIN $schema.tab AS text; CREATE VIEW $schema.pg_class AS SELECT m.one();
            CREATE VIEW $schema.pg_roles AS SELECT m.one() AS rolsuper"
    done
    PGUSER=$admin run_expect 0 psql -qX -v ON_ERROR_STOP=1 -f "$TESTS/../docs/hist-sync.sql"
    nothing_taken
    sql "ALTER ROLE $alice SET search_path = public, pg_catalog"
    run_expect 0 as_alice
    stdout_is $'h\t1 sent'
    run_expect 0 as_alice --search secret
    stdout_is_file history
    run_expect 0 as_alice --sessions
    nothing_taken
    PGUSER=postgres run_expect 0 psql -qX -v ON_ERROR_STOP=1 -f "$TESTS/../docs/hist-sync.sql"
    nothing_taken
}

@test "postgresql: no role locks the tables for the others" {
    # What the owner gives by default is taken back.
    sql "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO $mallory;
        ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO $mallory" "$admin"
    # Nor does a lock that is known prevent init.
    psql -qX -U "$mallory" -c 'SELECT pg_advisory_lock(4845187361); SELECT pg_sleep(60)' >slept 2>&1 &
    pid=$!
    run_expect 0 hist-sync init "$PLACE&user=$admin&options=-c%20statement_timeout%3D20s"
    kill "$pid"
    run_expect 0 as_alice push
    hist_line s1 user 'a line of mallory' >other
    run_expect 0 hist-sync --name h --history other push "$PLACE&user=$mallory"
    as_mallory 'CREATE VIEW m.messages AS SELECT * FROM chathist.messages; CREATE VIEW m.sessions AS SELECT * FROM chathist.sessions'
    for table in chathist.{version,owners,messages,messages_0,deleted,cursors,sessions} m.messages m.sessions; do
        for mode in 'ROW SHARE' 'SHARE UPDATE EXCLUSIVE' SHARE 'SHARE ROW EXCLUSIVE' EXCLUSIVE 'ACCESS EXCLUSIVE'; do
            [[ $table/$mode != [cm]*/'ROW SHARE' ]] || continue
            run_expect 1 sql "BEGIN; LOCK TABLE $table IN $mode MODE; ROLLBACK" "$mallory"
            stderr_has 'permission denied'
        done
    done
    for statement in 'TRUNCATE chathist.messages' 'TRUNCATE chathist.messages_3' 'DELETE FROM chathist.messages' \
        'DELETE FROM chathist.owners' 'DROP TABLE chathist.messages_0' 'VACUUM FULL chathist.owners' \
        'CREATE TRIGGER t BEFORE INSERT ON chathist.owners FOR EACH ROW EXECUTE FUNCTION m.on_row()' \
        'CREATE TABLE m.key (owner name REFERENCES chathist.owners)' 'SELECT * FROM chathist.messages_5' \
        'CREATE TABLE chathist.mine ()' 'UPDATE chathist.messages SET owner = current_user' \
        'CREATE INDEX ON chathist.messages (line)' 'CREATE STATISTICS m.s ON line, role FROM chathist.messages' \
        'CREATE RULE r AS ON INSERT TO chathist.owners DO ALSO NOTHING' 'ALTER TABLE chathist.owners SET UNLOGGED'; do
        [[ $statement != VACUUM* ]] || continue
        run_expect 1 sql "$statement" "$mallory"
    done
    # Own rows are erased without such a right, and nothing of them stays.
    run_expect 0 hist-delete --force --history history s1
    run_expect 0 as_alice
    run_expect 0 sql "SELECT m.* FROM chathist.messages m WHERE m::text LIKE '%secret%' OR m::text LIKE '%s1%'" "$alice"
    stdout_empty
    run_expect 0 sql "SELECT count(*), sum(length(history || session || id || role || line || folded)) FROM chathist.messages" "$alice"
    stdout_is '1|0'
    run_expect 0 sql "SELECT count(*) FROM chathist.messages WHERE session = 's1'" "$mallory"
    stdout_is 1
    run_expect 0 hist-sync --all --sessions "$PLACE&user=$alice"
    stdout_empty
    run_expect 0 sql 'SELECT count(*) FROM chathist.sessions' "$alice"
    stdout_is 0
}

@test "postgresql: EXPLAIN shows the same, whatever others have written" {
    run_expect 0 hist-sync init "$PLACE&user=$admin"
    for i in {1..400}; do hist_line "s$((i % 9))" user "frequent $i"; done >many
    run_expect 0 hist-sync --name h --history many push "$PLACE&user=$alice"
    hist_line s user mine >other
    run_expect 0 hist-sync --name h --history other push "$PLACE&user=$mallory"
    sql 'VACUUM ANALYZE'
    # explain WORD [STATEMENT]: what mallory learns by looking for a word. All buffers are there from the first time.
    explain() {
        local query statement
        for query in "strpos(folded, '$1') > 0" "folded LIKE '%$1%'" "owner = '$alice' AND id = '$1'" \
            "digest = sha256('$1')" "history = '$1'" "role = '$1'"; do
            for statement in "$2" "$2" 'SET enable_seqscan = off;'; do
                sql "$statement EXPLAIN (ANALYZE, BUFFERS, TIMING off, SUMMARY off) SELECT * FROM chathist.messages WHERE $query" "$mallory"
            done
        done | sed "s/$1/WORD/g; s/'.x[0-9a-f]*'/HASH/" | awk '/^Planning/ { planning = 1; next } /^  Buffers/ && planning { next } { planning = 0; print }'
    }
    explain nobody >warm
    explain frequent >with
    explain nobody >without
    diff with without >&2
    run_expect 0 sql "SELECT count(*) FROM pg_class WHERE relkind IN ('i', 'I') AND relnamespace = 'chathist'::regnamespace
        AND pg_get_indexdef(oid) !~ 'USING btree \\(owner[,)]'"
    stdout_is 0
}

@test "postgresql: init turns the tables of version 1 into these, and keeps what they have" {
    PGUSER=$admin run_expect 0 psql -qX -v ON_ERROR_STOP=1 -f "$TESTS/fixtures/postgres/version-1.sql"
    reader=$(sql "SELECT polroles[1]::regrole FROM pg_policy WHERE polname = 'search'")
    hist_line s2 assistant 'and its answer' >>history
    while IFS= read -r line; do
        sql "INSERT INTO chathist.owners VALUES (DEFAULT, 1) ON CONFLICT (owner) DO UPDATE SET last = owners.last + 1;
            INSERT INTO chathist.messages SELECT current_user, 'h', j ->> 'session_id', j ->> 'id', sha256(convert_to('$line', 'UTF8')), n, n,
            j ->> 'role', (j ->> 'timestamp')::timestamptz, '$line', j, lower(j ->> 'content')
            FROM (SELECT last AS n, '$line'::jsonb AS j FROM chathist.owners) v" "$alice"
    done <history
    run_expect 2 as_alice --search secret
    stderr_is "hist-sync: the tables were made by an earlier version: run 'hist-sync init'"
    run_expect 0 hist-sync init "$PLACE&user=$admin"
    stderr_empty
    run_expect 0 sql "SELECT version FROM chathist.version"
    stdout_is 2
    run_expect 0 sql "SELECT proname FROM pg_proc WHERE pronamespace = 'chathist'::regnamespace;
        SELECT polname FROM pg_policy WHERE polname <> 'own'; SELECT extname FROM pg_extension WHERE extname <> 'plpgsql';
        SELECT relname FROM pg_class WHERE relname ~ 'trigram'; SELECT rolname FROM pg_roles WHERE rolname = '$reader';
        SELECT attname FROM pg_attribute WHERE attname = 'body' AND attrelid = 'chathist.messages'::regclass"
    stdout_is as_jsonb
    run_expect 1 sql 'LOCK TABLE chathist.messages' "$mallory"
    run_expect 0 hist-sync --name h --history pulled pull "$PLACE&user=$alice"
    cmp history pulled
    run_expect 0 as_alice --search SECRET
    stdout_is "$(head -n 1 history)"
    run_expect 0 hist-delete --force --history pulled s1
    run_expect 0 hist-sync --name h --history pulled "$PLACE&user=$alice"
    run_expect 0 as_alice
    run_expect 0 sql 'SELECT jsonb_path_query_array(conversation, '\''$[*].content'\'') FROM chathist.sessions' "$alice"
    stdout_is '["and its answer"]'
    # Again, by the owner, by a superuser, and by one who may not.
    sql "SELECT relname, relacl, relowner FROM pg_class WHERE relnamespace = 'chathist'::regnamespace ORDER BY 1" >before
    run_expect 0 hist-sync init "$PLACE&user=$admin"
    run_expect 0 hist-sync init "$PLACE"
    run_expect 0 hist-sync init "$PLACE&user=$alice"
    run_expect 0 sql "SELECT relname, relacl, relowner FROM pg_class WHERE relnamespace = 'chathist'::regnamespace ORDER BY 1"
    stdout_is_file before
}
