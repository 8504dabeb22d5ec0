#!/usr/bin/env bats
#
# postgresql:// with several servers: one that is dead, one that is silent, one that can only be read, one that dies.

load ../helper
load ../servers
load ../postgres

setup() {
    sandbox
}

@test "failover: a server that is dead, silent or read only is passed over, and reads may prefer the standby" {
    local primary=$POSTGRES_DIR/socket place
    use_postgres
    start_standby
    # address HOST...: the database on these servers.
    address() {
        local IFS=,
        place="postgresql:///$PGDATABASE?host=$*"
    }
    hist_line s1 user 'the first line' >a
    address "$PWD/absent" "$STANDBY/socket" "$primary"
    run_expect 0 hist-sync init "$place"
    # Only a server that can be written to is of use, whatever the address asks for.
    run_expect 0 hist-sync --name h --history a "$place&target_session_attrs=read-write"
    stdout_is $'h\t1 sent'
    stderr_empty
    address "$STANDBY/socket" "$primary"
    run_expect 0 hist-sync --name h --history b "$place&target_session_attrs=prefer-standby"
    stdout_is $'h\t1 received'
    run_expect 0 hist-sync --name h --history c pull "$place"
    stdout_is $'h\t1 received'

    # The standby stays where it is, so that its answers differ from those of the primary.
    replayed() { [[ $(PGHOST=$STANDBY/socket sql 'SELECT count(*) FROM chathist.messages') == 1 ]]; }
    wait_for replayed
    PGHOST=$STANDBY/socket sql 'SELECT pg_wal_replay_pause()'
    hist_line s1 user 'the second line' >>a
    run_expect 0 hist-sync --name h --history a push "$place"
    stdout_is $'h\t1 sent'
    address "$primary" "$STANDBY/socket"
    CHAT_REMOTE="$place" run_expect 0 hist-search --remote --all -c line
    stdout_is 2
    CHAT_REMOTE="$place&target_session_attrs=prefer-standby" run_expect 0 hist-search --remote --all -c line
    stdout_is 1
    CHAT_REMOTE="$place&target_session_attrs=prefer-standby" run_expect 0 hist-sessions --remote --all
    stdout_matches '	1	the first line$'
    CHAT_REMOTE="$place&target_session_attrs=prefer-standby" run_expect 0 hist-show --remote s1
    stdout_lacks second

    # A server that accepts connections and never answers.
    mkdir silent
    background "$TESTS/tools/wrong-postgres" silent silent
    wait_for test -S silent/.s.PGSQL.5432
    address "$PWD/silent" "$primary"
    run_expect 0 hist-sync --name h --history b "$place&connect_timeout=2"
    stdout_is $'h\t1 received'
    stderr_empty

    # The message names each server, with its reason.
    address "$PWD/absent" "$STANDBY/socket"
    run_expect 4 hist-sync --name h --history a "$place"
    stderr_is "hist-sync: cannot connect to PostgreSQL: connection to server on socket \"$PWD/absent/.s.PGSQL.5432\" failed: No such file or directory; connection to server on socket \"$STANDBY/socket/.s.PGSQL.5432\" failed: session is read-only"
}

@test "failover: the server dies in the middle of a run, and its standby takes its place" {
    local place
    place=$(env -u TMPDIR mktemp -d)
    chmod 755 "$place"
    cd "$place" || return 1
    run_expect 0 "$TESTS/tools/failover-oracle" 8 3
    cd "$WORK" || return 1
    rm -rf "$place"
    stdout_matches '^seed 8: [1-3] servers killed, .*, 0 failed$'
}
