#!/usr/bin/env bats
#
# hist-sync with a PostgreSQL database: copies of a history become equal, and people are kept apart.
# shellcheck disable=SC2016

load ../helper
load ../servers
load ../postgres

setup() {
    sandbox
    use_postgres
}

# people: makes the roles admin, who makes the tables, alice, bob, and team, which both may be.
people() {
    sql "CREATE ROLE admin$BATS_TEST_NUMBER LOGIN; CREATE ROLE alice$BATS_TEST_NUMBER LOGIN;
        CREATE ROLE bob$BATS_TEST_NUMBER LOGIN; CREATE ROLE team$BATS_TEST_NUMBER NOLOGIN;
        GRANT team$BATS_TEST_NUMBER TO alice$BATS_TEST_NUMBER, bob$BATS_TEST_NUMBER;
        ALTER DATABASE $PGDATABASE OWNER TO admin$BATS_TEST_NUMBER"
    admin=admin$BATS_TEST_NUMBER team=team$BATS_TEST_NUMBER alice=alice$BATS_TEST_NUMBER bob=bob$BATS_TEST_NUMBER
    run_expect 0 hist-sync init "$PLACE&user=$admin"
}

# line ID SESSION TEXT: prints a line of a history.
line() {
    printf '{"id":"%s","session_id":"%s","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"user","content":"%s"}\n' "$@"
}

# run_sync HISTORY [ARGUMENT]...: synchronises a file under the name h; must succeed.
run_sync() {
    run_expect 0 hist-sync --name h --history "$@" "$PLACE"
}

# equal FILE…: all have the same lines, in any order.
equal() {
    local file
    for file; do
        sort "$file" >"$file.sorted"
        [[ -s $file.sorted ]] || fail "$file is empty"
        cmp "$1.sorted" "$file.sorted" >&2 || fail "$file differs from $1"
    done
}

@test "hist-sync: messages, titles, deletions and conflicts travel through a database" {
    run_expect 2 hist-sync --name h --history a "$PLACE"
    stderr_has "run 'hist-sync init' once"
    # Several at once make the tables once, and doing it again changes nothing.
    for i in 1 2 3; do hist-sync init "$PLACE" 2>"init.$i" & pids[i]=$!; done
    for i in 1 2 3; do wait "${pids[i]}" || fail "init $i failed: $(<"init.$i")"; done
    run_expect 0 hist-sync init "$PLACE"
    stderr_empty
    run_expect 0 sql 'SELECT version FROM chathist.version'
    stdout_is 2

    # Lines that jsonb cannot hold, and bytes that are escaped.
    {
        line 1 s1 'nul \u0000 half \ud83d end'
        line 2 s1 'quote \" backslash \\ tab \t 😀 \ud83d\ude00'
        echo '{"id":"3","session_id":"s1","timestamp":"2024-06-27T15:00:00Z","role":"user","content":"n","x":1e999999,"x":2}'
        echo 'not a line'
        line 4 s2 'to be deleted'
    } >a
    run_expect 0 hist-title --history a s1 'a title'
    run_sync a --dry-run
    stdout_is $'h\t5 sent'
    run_expect 0 sql 'SELECT count(*) FROM chathist.messages'
    stdout_is 0
    run_sync a
    stdout_is $'h\t5 sent'
    run_sync a
    stdout_empty
    run_expect 0 sql "SELECT string_agg(id, ' ' ORDER BY number) FROM chathist.messages WHERE chathist.as_jsonb(line) IS NULL"
    stdout_is '1 3'
    run_sync b
    stdout_is $'h\t5 received'
    grep -v 'not a line' a >a.valid
    cmp a.valid b

    # Two machines write at the same time, and one message gets two texts.
    line 5 s1 'from a' >>a
    line 6 s1 'one text' >>a
    line 6 s1 'another text' >>b
    run_sync a
    run_sync b
    stdout_is $'h\t2 received, 1 sent'
    stderr_has "have the id '6', and both are kept"
    run_sync a
    stdout_is $'h\t1 received'
    run_sync b
    stdout_empty

    # A deletion reaches the others, and the line does not come back from a copy that was offline.
    cp b c
    run_expect 0 hist-delete --history b --force s2
    run_sync b
    run_sync c
    stdout_is $'h\t1 deleted'
    run_sync a
    stdout_is $'h\t1 deleted'
    grep -v 'not a line' a >a.valid
    equal a.valid b c
    run_expect 0 sql "SELECT count(*) FROM chathist.messages WHERE session = 's2'"
    stdout_is 0

    # A history that lost lines, and one that was replaced by an older one.
    head -n 2 b >older
    cat older >b
    rm -f c c.deleted
    run_sync b
    run_sync c pull
    grep -v 'not a line' a >a.valid
    equal a.valid b c
    run_sync b
    stdout_empty

    # A database that lost everything gets it back.
    sql 'DROP SCHEMA chathist CASCADE'
    run_expect 0 hist-sync init "$PLACE"
    run_sync a push
    rm -f d
    run_sync d pull
    equal a.valid d
}

@test "hist-sync: a database is searched, listed and shown, and has the sessions of system B" {
    run_expect 0 hist-sync init "$PLACE"
    { line 1 abc 'STRASSE 100% a_b'; line 2 abc 'zwei Straße'; line 3 xyz 'drei'; } >a
    run_expect 0 hist-title --history a abc 'Straßen'
    run_sync a
    read_it() { run_expect 0 hist-sync --name h "$@" "$PLACE"; }
    read_it --search 'ABE' --search x
    stdout_empty
    read_it --search 'strasse' --search '0% A_B'
    stdout_is "$(sed -n 1p a)"
    read_it --search STRA -n 1
    stdout_is "$(sed -n 2p a)"
    read_it --show ab
    stdout_is "$(grep '"abc"' a)"
    read_it --show last
    stdout_is "$(sed -n 3p a)"
    run_expect 1 hist-sync --name h --show none "$PLACE"
    stderr_has "no session 'none'"
    CHAT_REMOTE=$PLACE run_expect 0 hist-sync --name h --sessions
    run_expect 0 hist-sessions --history a --json
    hist-sessions --history a --json >local
    hist-sync --name h --sessions "$PLACE" >remote
    cmp local remote

    run_expect 0 sql "SELECT session_id, created_at, last_accessed, message_count, title,
        jsonb_path_query_array(conversation, '\$[*].content') FROM chathist.sessions ORDER BY session_id"
    stdout_is 'abc|2024-06-27 15:00:00+00|2024-06-27 15:00:00+00|2|Straßen|["STRASSE 100% a_b", "zwei Straße"]' \
        'xyz|2024-06-27 15:00:00+00|2024-06-27 15:00:00+00|1||["drei"]'
}

@test "hist-sync: the title that was given last counts in the database, too" {
    run_expect 0 hist-sync init "$PLACE"
    line 1 s1 one >a
    run_sync a
    run_sync b
    run_expect 0 hist-title --history a s1 'given first'
    run_expect 0 hist-title --history b s1 'given last'
    run_sync b
    run_sync a
    run_sync b
    for history in a b; do
        run_expect 0 hist-title --history "$history" s1
        stdout_is 'given last'
    done
    run_expect 0 hist-sync --name h --sessions "$PLACE"
    [[ $(jq -r .title "$OUT") == 'given last' ]]
    run_expect 0 sql 'SELECT title FROM chathist.sessions'
    stdout_is 'given last'
}

@test "hist-sync: a title that another one replaces does not count in the database, whatever its time" {
    run_expect 0 hist-sync init "$PLACE"
    line 1 s1 one >a
    jq -cn '{id: "t1", session_id: "s1", role: "title", content: "from the future", timestamp: "2099-01-01T00:00:00Z"},
            {id: "t2", session_id: "s1", role: "title", content: "given by hand", timestamp: "2024-01-01T00:00:00Z", replaces: ["t1"]}' >>a
    run_sync a
    run_expect 0 hist-title --history a s1
    stdout_is 'given by hand'
    run_expect 0 sql 'SELECT title FROM chathist.sessions'
    stdout_is 'given by hand'
}

@test "hist-sync: init leaves a schema of others as it is" {
    for what in 'TABLE chathist.notes (a text)' 'TABLE chathist.version (version integer)' \
        'VIEW chathist.messages AS SELECT 1 AS a' 'FUNCTION chathist.f() RETURNS integer LANGUAGE sql AS $$SELECT 1$$'; do
        sql "CREATE SCHEMA chathist; CREATE $what"
        run_expect 0 sql "SELECT count(*) FROM pg_class"
        cp "$OUT" before
        run_expect 2 hist-sync init "$PLACE"
        stderr_is 'hist-sync: PostgreSQL: the schema chathist of this database is not one of hist-sync'
        run_expect 0 sql "SELECT count(*) FROM pg_class"
        stdout_is_file before
        sql 'DROP SCHEMA chathist CASCADE'
    done
    # An empty one, which an administrator has made for it.
    sql 'CREATE SCHEMA chathist'
    run_expect 0 hist-sync init "$PLACE"
}

@test "hist-sync: each conflict is reported once, and deletions that were replaced are pushed" {
    run_expect 0 hist-sync init "$PLACE"
    { line 1 s1 'one text'; line 2 s2 two; } >a
    { line 1 s1 'another text'; line 3 s3 three; } >b
    run_sync a
    run_sync b push
    stderr_is "hist-sync: two messages of session 's1' have the id '1', and both are kept: 'another text' here, 'one text' in the database"
    { line 1 s1 'a third text'; } >c
    run_sync c --json
    [[ $(jq .conflicts "$OUT") == 2 ]]
    stderr_lines=$(wc -l <"$ERR")
    [[ $stderr_lines == 2 ]]
    run_sync a
    cp a.deleted before
    run_expect 0 hist-delete --history a --force s2
    run_sync a
    cp before a.deleted
    run_expect 0 hist-delete --history a --force s3
    run_sync a
    run_expect 0 sql "SELECT count(*) FROM chathist.messages WHERE session = 's3'"
    stdout_is 0
}

@test "hist-sync: a pull after deletions does not hide new lines from the next push" {
    run_expect 0 hist-sync init "$PLACE"
    for i in 1 2 3 4; do line "$i" "s$i" "text $i"; done >a
    run_sync a
    run_expect 0 hist-delete --force --history a s1 s2
    for i in 5 6; do line "$i" "s$i" "text $i"; done >>a
    run_sync a pull
    run_sync a push
    stdout_is $'h\t2 sent'
    run_sync b pull
    equal a b
}

@test "hist-sync: a server or connection that ends in the middle of a batch loses nothing" {
    run_expect 0 hist-sync init "$PLACE"
    hist_lines long 20000 >a
    cut_postgres 700000 - - -
    run_expect 4 hist-sync --name h --history a "$PLACE"
    stderr_has 'the connection to PostgreSQL was lost'
    run_sync a push
    stdout_is $'h\t20000 sent'
    # The answer of the server is cut, too.
    use_postgres "$PGDATABASE-2"
    run_expect 0 hist-sync init "$PLACE"
    hist-sync --name h --history a push "$PLACE" >out 2>err & pid=$!
    until [[ $(sql "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%' OR query LIKE 'WITH a AS%'") != 0 ]] ||
        ! kill -0 $pid 2>/dev/null; do :; done
    kill_postgres
    wait $pid || status=$?
    [[ ${status-0} == [045] ]] || fail "status $status: $(<err)"
    run_expect 4 hist-sync --name h --history a "$PLACE"
    stderr_has 'cannot connect to PostgreSQL'
    start_postgres
    run_sync a
    run_sync b
    stdout_is $'h\t20000 received'
    cmp a b
    run_expect 0 hist-sync --name h --history b "$PLACE"
    stdout_empty
    # A whole session goes, and more comes, before the database has statistics.
    hist-delete --history a --force -q long
    hist_lines more 100 >>a
    run_sync a
    stdout_is $'h\t100 sent'
    run_sync b --accept-deletions
    equal a b
}

@test "hist-sync: exit codes, and no password in a message" {
    sql "CREATE ROLE needs_password; CREATE ROLE carol LOGIN PASSWORD 'geheim' IN ROLE needs_password;
        GRANT CREATE ON DATABASE $PGDATABASE TO carol"
    run_expect 3 hist-sync init "$PLACE&user=carol&password=wrongpw"
    stderr_has 'password authentication failed'
    stderr_lacks wrongpw
    run_expect 3 hist-sync init "$PLACE&user=carol"
    printf '%s\n' "*:*:*:carol:geheim" >"$HOME/.pgpass"
    chmod 600 "$HOME/.pgpass"
    run_expect 0 hist-sync init "$PLACE&user=carol"
    printf '[mine]\nhost=%s\ndbname=%s\nuser=carol\n' "$PGHOST" "$PGDATABASE" >"$HOME/.pg_service.conf"
    PGSERVICE=mine run_expect 0 hist-sync --name h --history a postgresql://
    run_expect 2 hist-sync init "postgresql://u:topsecret@[broken"
    stderr_lacks topsecret
    # The password ends at its slash, and what is before it is taken as a port.
    run_expect 2 hist-sync init "postgresql://u:top/secret@host/x"
    stderr_has 'hist-sync: bad address of a database: invalid '
    stderr_lacks top
    run_expect 2 hist-sync init "${PLACE/$PGDATABASE/absent}"
    run_expect 4 hist-sync init "postgresql://127.0.0.1:1/x"
    run_expect 0 hist-sync init "$PLACE&user=carol&connect_timeout=2147483647"
    sql "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"
    run_expect 2 hist-sync init "${PLACE/$PGDATABASE/latin}"
    stderr_has 'the encoding of the database is LATIN1: UTF8 is needed'
    run_expect 2 hist-sync push .
    stderr_has "is for a database"
    run_expect 2 hist-sync --search x .
}

@test "hist-sync: no role reads, counts, guesses, changes or deletes what is another's" {
    people
    { line 1 private 'alices secret word'; line 2 private 'more'; } >a
    { line 1 private 'bob here'; line 9 bobs 'word of bob'; } >b
    run_expect 0 hist-sync --name h --history a "$PLACE&user=$alice"
    # The same ids are no conflict between people, and tell nothing.
    run_expect 0 hist-sync --name h --history b "$PLACE&user=$bob"
    stdout_is $'h\t2 sent'
    stderr_empty

    # as_bob EXPECTED STATEMENT
    as_bob() {
        run_expect 0 sql "$2" "$bob"
        if [[ -n $1 ]]; then stdout_is "$1"; else stdout_empty; fi
    }
    as_bob 2 'SELECT count(*) FROM chathist.messages'
    as_bob '' "SELECT line FROM chathist.messages WHERE line LIKE '%secret%'"
    for text in secret "alices%' OR true --" "') > 0 OR (true) --"; do
        run_expect 0 hist-sync --all --search "$text" "$PLACE&user=$bob"
        stdout_empty
    done
    run_expect 0 hist-sync --all --search word "$PLACE&user=$bob"
    stdout_is "$(sed -n 2p b)"
    as_bob $'bobs|1\nprivate|1' 'SELECT session_id, message_count FROM chathist.sessions ORDER BY 1'
    as_bob 1 'SELECT count(*) FROM chathist.owners'
    as_bob 1 'SELECT count(DISTINCT owner) FROM chathist.cursors'
    as_bob 2 'SELECT max(number) FROM chathist.messages'
    as_bob '' "UPDATE chathist.owners SET last = 0 WHERE owner = '$alice'"
    as_bob '' "UPDATE chathist.messages SET line = '' WHERE owner = '$alice' OR line LIKE '%secret%'"
    as_bob '' "UPDATE chathist.cursors SET pushed = 0 WHERE owner = '$alice'"
    run_expect 0 sql 'COPY chathist.messages (line) TO STDOUT' "$bob"
    stdout_lacks secret
    # A function that is cheaper than the policy sees no row of another.
    as_bob 2 "CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS
        'BEGIN IF \$1 LIKE ''%secret%'' THEN RAISE EXCEPTION ''leaked''; END IF; RETURN true; END';
        SELECT count(*) FROM chathist.messages WHERE pg_temp.leak(line)"
    # What the server refuses, without a word about the rows of another.
    for statement in "INSERT INTO chathist.owners VALUES ('$alice')" \
        "INSERT INTO chathist.deleted VALUES ('$alice', 'h', 'private', '1', 1)" \
        "INSERT INTO chathist.messages SELECT '$alice', history, session, id, digest, mark, number, role, stamp, line, folded FROM chathist.messages" \
        "UPDATE chathist.messages SET owner = '$alice'" 'DELETE FROM chathist.messages' 'DELETE FROM chathist.cursors' 'TRUNCATE chathist.messages' 'SELECT * FROM chathist.messages_0' \
        'DELETE FROM chathist.deleted' 'ALTER TABLE chathist.messages DISABLE ROW LEVEL SECURITY' \
        "SET ROLE $alice" "SET SESSION AUTHORIZATION $alice" \
        "SELECT set_config('role', '$alice', false)" 'SET row_security = off; SELECT * FROM chathist.messages' \
        'UPDATE chathist.version SET version = 9' 'CREATE TABLE chathist.mine ()'; do
        run_expect 1 sql "$statement" "$bob"
        stdout_empty
        stderr_lacks secret
        stderr_lacks private
    done
    # EXPLAIN counts and estimates the same for a person with rows as for one without.
    for who in "$alice" nobody; do
        sql "SET enable_seqscan = off; EXPLAIN (ANALYZE, TIMING off, SUMMARY off, COSTS on)
            SELECT line FROM chathist.messages WHERE owner = '$who' AND session = 'private'" "$bob" |
            sed "s/'$who'/WHO/" >"explain.$who"
    done
    cmp "explain.$alice" explain.nobody
    sql 'ANALYZE chathist.messages'
    run_expect 0 sql "SELECT count(*) FROM pg_statistic WHERE starelid::regclass::text ~ '^chathist.(messages|owners|deleted|cursors)'"
    stdout_is 0
    run_expect 0 sql "SELECT count(*) FROM pg_stats WHERE schemaname = 'chathist' AND tablename <> 'version'"
    stdout_is 0
    # The numbers of one tell nothing about another: no sequence is shared.
    run_expect 0 sql "SELECT count(*) FROM pg_class WHERE relkind = 'S' AND relnamespace = 'chathist'::regnamespace"
    stdout_is 0
    # Not even the role that made the tables sees the rows.
    run_expect 0 sql 'SELECT count(*) FROM chathist.messages; SELECT count(*) FROM chathist.sessions' "$admin"
    stdout_is 0 0
    run_expect 0 hist-sync --all --search word "$PLACE&user=$admin"
    stdout_empty

    # A role that both may be has a history that both see, and only while they are it.
    shared="$PLACE&options=-c%20role%3D$team"
    line 7 ours 'team word' >t
    run_expect 0 hist-sync --name h --history t "$shared&user=$alice"
    run_expect 0 hist-sync --name h --search word "$shared&user=$bob"
    stdout_is_file t
    as_bob 2 'SELECT count(*) FROM chathist.messages'
    run_expect 1 sql "SET ROLE $admin" "$bob"

    # Everything of alice is still there.
    run_expect 0 sql "SELECT count(*) FROM chathist.messages" "$alice"
    stdout_is 2
    run_expect 0 hist-sync --name h --search WORD "$PLACE&user=$alice"
    stdout_is "$(sed -n 1p a)"
}

# sent FILE: how many bytes the calls of a trace have sent.
sent() {
    awk '/^sendto/ && $NF > 0 { n += $NF } END { print n }' "$1"
}

@test "hist-sync: killed at any moment of a push or a pull, it continues" {
    run_expect 0 hist-sync init "$PLACE"
    hist_lines long 15000 >a
    # Two batches. It is killed at parts of the calls that send, the most of them in the middle of COPY.
    run_expect 0 traced -o trace -e trace=sendto hist-sync --name whole --history a push "$PLACE"
    calls=$(grep -c '^sendto' trace)
    cp trace whole
    counts=
    for part in 2 3 4 6 7; do
        run_expect 137 traced -o trace -e trace=sendto -e "inject=sendto:signal=KILL:when=$((calls * part / 8))" \
            hist-sync --name "part$part" --history a push "$PLACE"
        # A batch and its cursor are there as a whole, or not at all.
        run_expect 0 sql "SELECT count(*) FROM chathist.messages WHERE history = 'part$part'"
        count=$(cat "$OUT")
        run_expect 0 sql "SELECT coalesce(max(pushed), 0) FROM chathist.cursors WHERE history = 'part$part'"
        stdout_is "$count"
        counts+=" $count"
        run_expect 0 traced -o again -e trace=sendto hist-sync --json --name "part$part" --history a push "$PLACE"
        stdout_json .sent "$((15000 - count))"
        # What the database has is not sent again. Beside lines some statements are sent.
        run_expect 0 test "$(sent again)" -lt "$(($(sent whole) * (15000 - count) / 15000 + 50000))"
    done
    [[ $counts =~ ^' 0'.*' 10000'$ ]] || fail "the kills left$counts messages"

    run_expect 0 traced -o trace -e trace=recvfrom hist-sync --name whole --history b pull "$PLACE"
    calls=$(grep -c '^recvfrom' trace)
    cmp a b
    kills=0
    for part in 2 3 5 7; do
        # How many calls it takes depends on the speed of the server, too: it may end before the kill.
        status=0
        traced -o trace -e trace=recvfrom -e "inject=recvfrom:signal=KILL:when=$((calls * part / 8))" \
            hist-sync --name whole --history "c$part" pull "$PLACE" >"$OUT" || status=$?
        [[ $status == 0 || $status == 137 ]] || fail "status $status"
        kills=$((kills + (status == 137)))
        run_expect 0 hist-sync -q --name whole --history "c$part" pull "$PLACE"
        cmp a "c$part"
        run_expect 0 hist-sync --name whole --history "c$part" "$PLACE"
        stdout_empty
    done
    [[ $kills -ge 2 ]] || fail "$kills of 4 were killed"
}

@test "hist-sync: a pull that ends in the middle leaves no deletion out that another copy pushed meanwhile" {
    run_expect 0 hist-sync init "$PLACE"
    hist_lines long 10000 >a
    run_sync a push
    head -n 1 a >b
    id=$(jq -r .id b)
    # The pull has asked for the last number and for deletions, and waits for the rows of the batch.
    psql -qX -v ON_ERROR_STOP=1 >said 2>&1 <<END & psql=$!
        BEGIN;
        LOCK TABLE chathist.messages IN ACCESS EXCLUSIVE MODE;
        SELECT 'locked';
        \\o
        DO 'BEGIN WHILE NOT EXISTS (SELECT FROM pg_locks WHERE NOT granted) LOOP PERFORM pg_sleep(0.02); END LOOP; END';
        UPDATE chathist.owners SET last = last + 2;
        INSERT INTO chathist.deleted (history, session, id, number) VALUES ('h', 'long', '$id', 10001);
        DELETE FROM chathist.messages WHERE id = '$id';
        INSERT INTO chathist.messages (history, session, id, digest, mark, number, role, stamp, line, folded)
            VALUES ('h', 'more', 'x', '', 7, 10002, 'user', now(), '$(line x more text)', '');
        COMMIT;
END
    wait_for grep -q locked said
    # The cursor is stored after the batch, and cannot be stored once more.
    sql "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''stopped''; END';
        CREATE TRIGGER stop BEFORE UPDATE ON chathist.cursors FOR EACH ROW EXECUTE FUNCTION stop()"
    run_expect 0 hist-sync --name h --history b pull "$PLACE"
    stderr_empty
    wait $psql || fail "$(<said)"
    sql 'DROP TRIGGER stop ON chathist.cursors'
    [[ $(wc -l <b) == 10001 ]]
    run_sync b pull
    { tail -n +2 a; line x more text; } >wanted
    equal wanted b
}

@test "hist-sync: deletions of much of a history wait with a database, too, and nothing is pushed back" {
    run_expect 0 hist-sync init "$PLACE"
    for i in {1..40}; do line "$i" "s$((i > 30))" "text $i"; done >a
    run_sync a
    run_sync b
    run_expect 0 hist-delete --force -q --history a s0
    run_sync a
    line 41 s2 'of b' >>b
    run_expect 1 hist-sync --name h --history b "$PLACE"
    stdout_is $'h\t1 sent'
    stderr_is "hist-sync: 30 lines of 1 session of 'h' that another copy deleted wait: --accept-deletions erases them"
    run_expect 1 hist-sync --name h --history b "$PLACE"
    stdout_empty
    run_expect 0 sql "SELECT count(*) FROM chathist.messages WHERE history = 'h'"
    stdout_is 11
    [[ $(grep -c s0 b) == 30 ]]
    run_sync a
    stdout_is $'h\t1 received'
    run_sync b --accept-deletions
    stdout_is $'h\t30 deleted'
    run_sync b
    stdout_empty
    sort a >a.lines
    sort b | diff a.lines -
}
