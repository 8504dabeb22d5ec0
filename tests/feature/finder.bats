#!/usr/bin/env bats
#
# One language and one search in the box of hist-browse, /search, hist-search --query, hist-sessions --match and
# hist-mcp, and in the HTML page: the same queries through all of them.

load ../helper
load ../tmux

setup() {
    sandbox
    use_echo
    use_history
    tmux_begin
    export SCREEN_FROM=0
    hist_line sess_1700000000000_ca264e user 'an old cart' 2026-01-01T10:00:00.000000+00:00 >"$HISTORY"
    hist_line sess_1710000000000_db264e assistant 'a new cart' 2026-06-01T10:00:00.000000+00:00 \
        '{"origin":"aider:a/1","model":"gpt-9"}' >>"$HISTORY"
}

teardown() {
    tmux_end
    sandbox_end
}

# What is asked, and the texts that are found; `!` before what is said in place of them.
queries() {
    cat <<'END'
before:2026-03-01 cart|an old cart
after:2026-03-01 cart|a new cart
until:2026-03-01|an old cart
in:history cart|an old cart,a new cart
in:nowhere cart|
role:assistant cart|a new cart
model:gpt|a new cart
from:aid|a new cart
264e|an old cart,a new cart
ca264e|an old cart
sess_1700000000000_ca264e|an old cart
/o.d/|an old cart
new cort cart|a new cart
colour:red cart|!no field 'colour:'
END
}

# has_texts FILE QUERY WANTED: the file has these texts, and none of the others.
has_texts() {
    local text
    if [[ $3 == '!'* ]]; then
        grep -qF -- "${3#!}" "$1" || fail "$2: wanted '$3'" "$(cat "$1")"
        return
    fi
    for text in 'an old cart' 'a new cart'; do
        if [[ ,$3, == *,"$text",* ]]; then
            grep -qF "$text" "$1" || fail "$2: no '$text'" "$(cat "$1")"
        elif grep -qF "$text" "$1"; then
            fail "$2: '$text'" "$(cat "$1")"
        fi
    done
}

@test "finder: hist-search, hist-sessions and hist-mcp give one answer to each query" {
    while IFS='|' read -r query wanted; do
        hist-search --in-session --nearly --query "$query" >shown 2>&1 || [[ $? -le 2 ]]
        has_texts shown "hist-search: $query" "$wanted"
        [[ $query == *cort* ]] || {
            hist-sessions --match "$query" >shown 2>&1 || [[ $? -le 2 ]]
            has_texts shown "hist-sessions: $query" "$wanted"
        }
        jq -cn --arg query "$query" '{jsonrpc: "2.0", id: 2, method: "tools/call",
            params: {name: "search", arguments: {query: $query}}}' >call
        [[ $query == *cort* ]] || {
            { echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}'
              cat call; } | hist-mcp | tail -n 1 >shown
            has_texts shown "hist-mcp: $query" "$wanted"
        }
    done < <(queries)
}

# The list has the messages that were found, not the sessions any more.
found_now() {
    screen
    sed -n 2p "$BATS_TEST_TMPDIR/screen" >title
    grep -qE ' (hits|all words but one) ' title
}

@test "finder: the box of hist-browse gives the same answers" {
    terminal 100x24
    type_lines hist-browse
    screen_has 'Esc close'
    while IFS='|' read -r query wanted; do
        keys C-u
        screen_has ' sessions '
        keys -l "$query"
        if [[ -z $wanted ]]; then
            screen_has ' no hit '
        elif [[ $wanted == '!'* ]]; then
            screen_has "${wanted#!}"
            continue
        else
            soon found_now
        fi
        sed -n 's/ *│.*//p' "$BATS_TEST_TMPDIR/screen" >shown
        has_texts shown "hist-browse: $query" "$wanted"
    done < <(queries)
    keys C-c
}

# The search is over: below it the prompt waits again.
searched_now() {
    screen
    grep -qE '/load N|nothing was found|no field' "$BATS_TEST_TMPDIR/screen"
}

@test "finder: /search gives the same answers" {
    terminal 100x40
    type_lines chat
    screen_has 'Ctrl-D leaves'
    while IFS='|' read -r query wanted; do
        keys C-l
        keys -l "/search $query"
        keys Enter
        soon searched_now
        has_texts "$BATS_TEST_TMPDIR/screen" "/search: $query" "$wanted"
    done < <(queries)
    keys C-d
}

@test "finder: the HTML page gives the same answers" {
    need_browser
    # Only a page of all repositories names them.
    make_repo history
    unset CHAT_HISTORY
    cd history || return
    run_expect 0 hist-append --json <"$HISTORY"
    cd .. || return
    run_expect 0 hist-export --all -f html -o page.html
    queries | jq -R 'split("|")[0]' | jq -s . >asked
    cat >script <<END
(async () => {
    const status = document.getElementById('status');
    const answers = [];
    for (const query of $(<asked)) {
        status.textContent = 'waiting';
        const changed = new Promise((resolve) => addEventListener('hashchange', resolve, { once: true }));
        location.hash = '#q=' + encodeURIComponent(query);
        await changed;
        while (['waiting', 'Searching…'].includes(status.textContent)) await new Promise((resolve) => setTimeout(resolve));
        answers.push(status.textContent.replace(/[\u201c\u201d]/g, "'").replace('No field', 'no field') + ' ' +
            document.getElementById('side-list').textContent.replace(/\s+/g, ' '));
    }
    return answers.join('\n');
})()
END
    run_expect 0 "$TESTS/tools/in-browser" page.html --run script
    stderr_empty
    exec 4<"$OUT"
    while IFS='|' read -r query wanted; do
        IFS= read -r answer <&4
        echo "$answer" >shown
        has_texts shown "the page: $query" "$wanted"
    done < <(queries)
}
