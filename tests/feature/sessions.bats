#!/usr/bin/env bats
#
# The next request of any session: its parts, and that each service accepts it.

load ../helper

@test "sessions: each request of random sessions is accepted by servers that act their rules strictly" {
    SESSION_TURNS=$BUILD/tests/tools/session-turns RUN_LIMIT=120 run_expect 0 "$TESTS/tools/session-oracle" 1 40
    stdout_has '40 sessions, '
    stdout_has ', 0 failed'
    # A killed turn behind the newest answer fills the limits.
    SESSION_TURNS=$BUILD/tests/tools/session-turns RUN_LIMIT=120 run_expect 0 "$TESTS/tools/session-oracle" 20524 1
}

# The oracle is no oracle if it agrees with everything.
@test "sessions: the oracle sees what is lacking" {
    local wrong tool=$BUILD/tests/tools/session-turns
    mkdir wrong
    for wrong in 's/,"reasoning_content":"[^"]*"//' 's/"tool_use_id":"/&x/' 's/"content":"A[0-9]* /"content":"/'; do
        printf '#!/bin/bash\nexec "%s" | sed -u '\''/^R/%s'\''\n' "$tool" "$wrong" >wrong/session-turns
        chmod +x wrong/session-turns
        SESSION_TURNS=$PWD/wrong/session-turns RUN_LIMIT=120 run_expect 1 "$TESTS/tools/session-oracle" 1 40
        stdout_has 'seed '
    done
}
