#!/usr/bin/env bats
#
# The servers of the tests: a PostgreSQL server and an ssh server that are private to a test file.
# shellcheck disable=SC2016

load ../helper
load ../servers

setup_file() {
    start_postgres
}

teardown_file() {
    stop_postgres
}

setup() {
    sandbox
}

@test "postgres: a database for each test, roles, a password, and the same data after a crash" {
    use_postgres
    sql "CREATE TABLE t (x text); INSERT INTO t VALUES ('Ä'); CREATE ROLE needs_password; CREATE EXTENSION pg_trgm;
        CREATE ROLE alice LOGIN; GRANT SELECT ON t TO alice; CREATE ROLE bob LOGIN PASSWORD 'secret' IN ROLE needs_password"
    run_expect 0 sql 'SELECT x, lower(x), current_user FROM t' alice
    stdout_is 'Ä|ä|alice'
    run_expect 2 sql 'SELECT 1' bob
    stderr_has 'fe_sendauth: no password supplied'
    run_expect 0 env PGPASSWORD=secret PGUSER=bob psql -qXAt -c 'SELECT current_user'
    stdout_is bob
    kill_postgres
    run_expect 2 sql 'SELECT 1'
    start_postgres
    run_expect 0 sql 'SELECT count(*) FROM t'
    stdout_is 1
}

@test "postgres: a connection that is cut" {
    use_postgres
    sql 'CREATE TABLE t (x text)'
    cut_postgres 100000 -
    seq 100000 >numbers
    run_expect 2 sql '\copy t FROM numbers'
    run_expect 0 sql '\copy t FROM numbers'
    run_expect 0 sql 'SELECT count(*) FROM t'
    stdout_is 100000
}

@test "sshd: another home, the same programs, and a connection that is cut" {
    use_sshd GREETING='good morning'
    echo text >input
    run_expect 0 ssh anyhost 'cd && pwd && echo "$GREETING" && cat && type chat' <input
    stdout_is "$FAR" 'good morning' text "chat is $BIN/chat"
    stderr_empty
    run_expect 3 ssh anyhost 'exit 3'
    export SSH_CUT_FROM=20000
    run_expect 255 ssh anyhost 'seq 100000'
    unset SSH_CUT_FROM
    export SSH_CUT_TO=20000
    seq 100000 >input
    run_expect 255 ssh anyhost 'cat >/dev/null' <input
    unset SSH_CUT_TO
    run_expect 0 ssh anyhost 'seq 3'
    stdout_is 1 2 3
}
