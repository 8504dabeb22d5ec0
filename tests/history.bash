# shellcheck shell=bash
#
# history: for .bats files that have loaded `helper` and whose tests all use one explicit history, $HISTORY.

setup() {
    sandbox
    use_history
}

# made: the id that the last command printed alone on stdout, in ID; it has the documented form.
made() {
    stdout_matches '^sess_[0-9]{13}_[0-9a-f]{6}$' || return 1
    lines_are 1 || return 1
    # shellcheck disable=SC2034 # it is for the test
    ID=$(cat "$OUT")
}

# current ID: is it that?
current() {
    [[ -f $HISTORY.session ]] || fail 'there is no pointer' || return 1
    pointer_is "$HISTORY.session" "$1"
}
