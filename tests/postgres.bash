# shellcheck shell=bash
#
# postgres: for .bats files that have loaded `helper` and `servers` and whose tests all use the database server.

setup_file() {
    need_postgres
    start_postgres
}

teardown_file() {
    stop_postgres
}

# use_remote: an empty database with the tables of hist-sync, which is the place of --remote.
use_remote() {
    use_postgres
    export CHAT_REMOTE=$PLACE
    hist-sync init
}
