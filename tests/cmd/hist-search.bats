#!/usr/bin/env bats
#
# hist-search: messages whose decoded content holds a text.

# shellcheck disable=SC1003,SC2016

load ../helper
load ../history

@test "hist-search: --all, every history of the user, the last one first" {
    unset CHAT_HISTORY
    use_echo
    local name
    for name in one two gone swapped cloned; do
        make_repo "$name"
        (cd "$name" && chat -q -s "$name" "hit $name" >/dev/null)
    done
    touch -d 2024-01-01 one/.git/aicoder/history.jsonl
    touch -d 2024-01-02 two/.git/aicoder/history.jsonl
    touch -d 2024-01-03 gone/.git/aicoder/history.jsonl
    rm -r gone
    mv swapped/.git/aicoder old && cp -r old swapped/.git/aicoder
    touch -d 2024-01-05 swapped/.git/aicoder/history.jsonl
    touch -d 2024-01-04 old/history.jsonl
    make_repo other
    mkdir other/.aicoder
    hist_line x user 'hit x' >other/.aicoder/history.jsonl
    # Only what was never used here is not searched; what is gone was kept.
    run_expect 0 hist-search --all -r user hit
    cut -f 1,6 "$OUT" >found
    kept=$HOME/.local/share/aicoder/repositories/${WORK//\//%}
    is found found cloned$'\t'"$PWD/cloned/.git/aicoder/history.jsonl" \
        swapped$'\t'"$PWD/swapped/.git/aicoder/history.jsonl" swapped$'\t'"$kept%swapped.jsonl" \
        gone$'\t'"$kept%gone.jsonl" two$'\t'"$PWD/two/.git/aicoder/history.jsonl" one$'\t'"$PWD/one/.git/aicoder/history.jsonl"
    run_expect 0 hist-search --all -c hit
    stdout_is 12
    # One that is named counts once.
    rm -r swapped gone cloned "$HOME/.local/share/aicoder/repositories" 2>/dev/null || :
    run_expect 0 hist-search --all --history one/.git/aicoder/history.jsonl --history other/.aicoder/history.jsonl -r user -l hit
    stdout_is "two"$'\t'"$PWD/two/.git/aicoder/history.jsonl" $'one\tone/.git/aicoder/history.jsonl' $'x\tother/.aicoder/history.jsonl'
    # The name is there even when it is the only one.
    rm -r one
    run_expect 0 hist-search --all -l hit
    stdout_is "two"$'\t'"$PWD/two/.git/aicoder/history.jsonl"
    rm -r two
    run_expect 1 hist-search --all hit
    run_expect 1 hist-search --all -c hit
    stdout_is 0
    rm -r "$HOME/.local/state"
    run_expect 1 hist-search --all hit
    stdout_empty
    stderr_empty
}

@test "hist-search: -q stops at the first match" {
    put s user 'hit early'
    head -c 3000000 /dev/zero | tr '\0' '\n' >>"$HISTORY"
    put s user 'hit late'
    traced -o trace -e trace=pread64 hist-search -q hit
    [[ $(wc -l <trace) -le 3 ]] || fail "$(wc -l <trace) reads"
}
