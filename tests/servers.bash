# shellcheck shell=bash
#
# servers: PostgreSQL and an ssh server for .bats files that have loaded `helper`.
#
#   load ../helper
#   load ../servers
#   load ../postgres
#   setup() { sandbox; use_postgres; }
#
# The database server is started once for a file, and each test has an empty database. These functions return 1 and
# say why when they fail, as those of `helper` do.

# The variables are for the tests.
# shellcheck disable=SC2034

# need_postgres: skips the tests where PostgreSQL's server is missing; where they must be complete they fail.
need_postgres() {
    if ! "$TESTS/tools/postgres" --where >/dev/null 2>&1; then
        [[ -z ${CI:-} ]] || fail "PostgreSQL's server is missing" || return 1
        skip "PostgreSQL's server is missing"
    fi
}

# start_postgres [OPTION]...: starts the server, with these options of PostgreSQL, and waits until it accepts
# connections. Sets POSTGRES_DIR, its directory, and POSTGRES_PID. After kill_postgres it starts again with the same data.
start_postgres() {
    local line=
    if [[ -z ${POSTGRES_DIR-} ]]; then
        POSTGRES_DIR=$BATS_FILE_TMPDIR/postgres
        # It does not run as root, and another user cannot enter the directory of the tests.
        [[ $EUID != 0 ]] || POSTGRES_DIR=$(env -u TMPDIR mktemp -d) || return 1
        [[ $EUID != 0 ]] || chmod 755 "$POSTGRES_DIR"
        export POSTGRES_DIR
    fi
    exec {POSTGRES_READY}< <(exec "${BASH_SOURCE[0]%/*}/tools/postgres" "$POSTGRES_DIR" "$@" 2>"$BATS_FILE_TMPDIR/postgres.err" 3>&- 4>&-)
    export POSTGRES_PID=$!
    read -r -t 120 -u "$POSTGRES_READY" line || :
    exec {POSTGRES_READY}<&-
    [[ $line == ready ]] || {
        cat "$BATS_FILE_TMPDIR/postgres.err" >&2
        return 1
    }
}

# start_standby: starts a standby of the server, whose socket is in $STANDBY/socket.
start_standby() {
    local line=
    STANDBY=$POSTGRES_DIR/standby
    exec {STANDBY_READY}< <(exec "$TESTS/tools/postgres" --standby-of "$POSTGRES_DIR" "$STANDBY" 2>standby.err 3>&- 4>&-)
    BACKGROUND+=("$!")
    read -r -t 120 -u "$STANDBY_READY" line || :
    exec {STANDBY_READY}<&-
    [[ $line == ready ]] || fail 'there is no standby:' "$(cat standby.err)"
}

# kill_postgres: ends the server in the middle of what it does; clients see a lost connection.
kill_postgres() {
    kill "$POSTGRES_PID" 2>/dev/null || :
    while alive "$POSTGRES_PID"; do sleep 0.02; done
}

stop_postgres() {
    [[ -n ${POSTGRES_DIR-} ]] || return 0
    kill_postgres
    rm -rf "$POSTGRES_DIR"
}

# use_postgres [NAME]: makes an empty database (`test` and the number of the test) and the variables of libpq for it:
# the superuser `postgres` at the server's socket. PLACE is its URL, without a user.
use_postgres() {
    PGDATABASE=${1:-test$BATS_TEST_NUMBER}
    export PGHOST=$POSTGRES_DIR/socket PGPORT=5432 PGUSER=postgres PGDATABASE
    PLACE="postgresql:///$PGDATABASE?host=$PGHOST"
    psql -qX -d postgres -c "CREATE DATABASE \"$PGDATABASE\"" || fail 'the database cannot be made'
}

# sql STATEMENT [ROLE]: runs it as the superuser, or as that role; prints rows, a | between columns.
sql() {
    PGUSER=${2:-postgres} psql -qXAt -v ON_ERROR_STOP=1 -c "$1"
}

# cut_postgres BYTES...: PGHOST becomes a line to the server on which the k-th connection is cut after the client has
# sent that many bytes (`cut-relay --help`).
cut_postgres() {
    local line=
    mkdir -p "$BATS_TEST_TMPDIR/line"
    exec {CUT_READY}< <(exec python3 -S "$TESTS/tools/cut-relay" "$BATS_TEST_TMPDIR/line/.s.PGSQL.5432" \
        "$POSTGRES_DIR/socket/.s.PGSQL.5432" "$@" 3>&- 4>&-)
    BACKGROUND+=("$!")
    read -r -t 60 -u "$CUT_READY" line || :
    exec {CUT_READY}<&-
    [[ $line == ready ]] || fail 'cut-relay did not start' || return 1
    PGHOST=$BATS_TEST_TMPDIR/line
    PLACE="postgresql:///$PGDATABASE?host=$PGHOST"
}

# use_sshd [NAME=VALUE]...: from now on `ssh` reaches another machine under any name. It has the same programs, a
# home of its own, $FAR, and the variables given. tests/tools/sshd has SSH_CUT_TO and SSH_CUT_FROM.
use_sshd() {
    FAR=$BATS_TEST_TMPDIR/far
    mkdir -p "$FAR"
    "$TESTS/tools/sshd" "$BATS_TEST_TMPDIR/sshd" "HOME=$FAR" "PATH=$BIN:/usr/bin:/bin" LC_ALL=C.UTF-8 TZ=UTC \
        "ASAN_OPTIONS=$ASAN_OPTIONS" "UBSAN_OPTIONS=$UBSAN_OPTIONS" "$@" || fail 'sshd cannot be prepared' || return 1
    PATH=$BATS_TEST_TMPDIR/sshd/bin:$PATH
}
