# shellcheck shell=bash
#
# sidecar: what lies beside a history changes no answer. For .bats files that have loaded `helper` and set
# SUFFIX, what its name has more than the history's (SIDECAR: its whole name), and QUESTIONS: commands with
# words that have no blanks, and the escapes of printf %b.

# answer QUESTION FILE: all that it prints, with its status.
answer() {
    local status=0 words
    read -r -a words < <(printf '%b\n' "$1")
    "${words[@]}" >"$2" 2>"$2.err" </dev/null || status=$?
    printf 'status %s\n' "$status" >>"$2"
    cat "$2.err" >>"$2"
}

# without QUESTION FILE: the same while it cannot be there.
without() {
    local sidecar=${SIDECAR:-$HISTORY$SUFFIX}
    [[ ! -e $sidecar ]] || mv "$sidecar" aside
    mkdir "$sidecar"
    answer "$1" "$2"
    rmdir "$sidecar"
    [[ ! -e aside ]] || mv aside "$sidecar"
}

# agree: every question has the answer that it has without.
agree() {
    local question
    for question in "${QUESTIONS[@]}"; do
        without "$question" want
        answer "$question" got
        cmp -s want got || fail "$question: wanted" "$(visible want)" got "$(visible got)" || return 1
    done
}

# reads KB COMMAND...: it succeeds and reads no more than so many kilobytes of the history.
reads() {
    traced -f -y -o trace -e trace=pread64,read "${@:2}" >"$OUT"
    local bytes
    bytes=$(awk '/h\.jsonl>/ { if ($NF > 0) sum += $NF } END { printf "%.0f\n", sum }' trace)
    [[ $bytes -le $(($1 * 1024)) ]] || fail "$* reads $bytes bytes"
}
