#!/usr/bin/env bats
#
# Several repositories: lists say where a session is, and its id is found from everywhere.

load ../helper

setup() {
    sandbox
    use_echo
    umask 077
    cd "$HOME" || return 1
    make_repo alpha
    make_repo beta
    for repo in alpha beta; do
        cd "$HOME/$repo" || return 1
        run_expect 0 chat -N "question of $repo"
        run_expect 0 chat -s notes "notes of $repo"
    done
    run_expect 0 hist-sessions --json
    # The generated id of beta's first session.
    ID=$(jq -r 'select(.preview == "question of beta") | .session_id' "$OUT")
    cd "$HOME/alpha" || return 1
}

@test "histories: one list of all, sorted, matched, restricted" {
    run_expect 0 hist-sessions --all
    [[ $(cut -f 4 "$OUT" | paste -sd ,) == 'notes of beta,question of beta,notes of alpha,question of alpha' ]] || fail order
    [[ $(awk -F '\t' '{ print NF }' "$OUT" | sort -u) == 5 ]]
    run_expect 0 hist-sessions --all --sort title --reverse
    [[ $(cut -f 4 "$OUT" | paste -sd ,) == 'question of beta,question of alpha,notes of beta,notes of alpha' ]] || fail order
    run_expect 0 hist-sessions --all --sort created -n 1 --reverse
    [[ $(cut -f 4 "$OUT") == 'question of alpha' ]]
    run_expect 0 chat -s notes 'much more'
    run_expect 0 hist-sessions --all --sort count -n 1
    [[ $(cut -f 3,4 "$OUT") == $'4\tnotes of alpha' ]]
    run_expect 0 hist-sessions --all --sort size -n 1 --json
    stdout_json .message_count 4
    run_expect 0 hist-sessions --repo BETA
    [[ $(cut -f 4 "$OUT" | paste -sd ,) == 'notes of beta,question of beta' ]]
    run_expect 2 hist-sessions --repo gamma
    stderr_is "hist-sessions: no history of yours has 'gamma' in the path of its repository"
    run_expect 0 hist-search -c --repo alpha of
    stdout_is 4
    run_expect 0 hist-sessions --match 'MORE much'
    [[ $(cut -f 1 "$OUT") == notes ]]
    run_expect 0 hist-sessions --all --match 'repo:beta question'
    [[ $(cut -f 1 "$OUT") == "$ID" ]]
    run_expect 0 hist-title notes 'A b c'
    run_expect 0 hist-sessions --match 'c a'
    [[ $(cut -f 4 "$OUT") == 'A b c' ]]
    run_expect 0 hist-sessions --match nowhere
    stdout_empty
    run_expect 2 hist-sessions --match 'since:never'
    run_expect 2 hist-sessions --sort colour
    COLUMNS=100 run_expect 0 on_tty --raw hist-sessions --all --color=never -n 2
    stdout_matches '  ~/alpha     A b c' '  ~/beta      notes of beta'
}

@test "histories: where nothing is stored yet, a person is told of the others" {
    make_repo "$HOME/gamma"
    cd "$HOME/gamma"
    HINT='there is no session here; --all reads 2 other histories of yours'
    run_expect 0 hist-sessions
    stdout_empty
    stderr_empty
    run_expect 0 on_tty --raw hist-sessions
    stdout_is "hist-sessions: $HINT"
    run_expect 1 on_tty --raw hist-search question
    stdout_is "hist-search: $HINT"
    run_expect 1 on_tty --raw hist-search question notes
    stdout_is "hist-search: $HINT"
    run_expect 0 on_tty --raw hist-stats
    stdout_has "hist-stats: $HINT"
    for options in -q --all; do
        run_expect 0 on_tty --raw hist-sessions $options
        stdout_lacks "$HINT"
    done
    touch empty
    CHAT_HISTORY=empty run_expect 0 on_tty --raw hist-sessions
    stdout_empty
    # Nor where something is, or nothing anywhere.
    run_expect 0 chat one
    run_expect 0 on_tty --raw hist-sessions -r system
    stdout_empty
    run_expect 1 on_tty --raw hist-search question
    stdout_is 'hist-search: nothing has this text; --query looks for other forms of its words, too'
    cd "$WORK"
    HOME=$WORK run_expect 0 on_tty --raw hist-sessions
    stdout_empty
}

@test "histories: an id is found in another one, which is named" {
    run_expect 0 hist-show "$ID"
    stdout_has 'question of beta'
    stderr_is "hist-show: session '$ID' is in ~/beta"
    run_expect 0 hist-show -q "${ID#*_*_}"
    stderr_empty
    echo "$ID" | run_expect 0 hist-export -f txt -
    stdout_has '=== question of beta'
    stderr_is "hist-export: session '$ID' is in ~/beta"
    # A title is given there; nothing is deleted there by accident.
    run_expect 0 hist-title "$ID" 'A title from afar'
    stderr_is "hist-title: session '$ID' is in ~/beta"
    run_expect 0 hist-title -q "$ID"
    stdout_is 'A title from afar'
    run_expect 1 hist-delete --force "$ID"
    stderr_is "hist-delete: session '$ID' is in ~/beta" \
        "hist-delete: nothing is deleted in another history: to do so, give --history $HOME/beta/.git/aicoder/history.jsonl"
    run_expect 0 hist-show -q "$ID"
    # What this history has comes first; a part of an id must be unique in all.
    run_expect 0 hist-show notes
    stdout_has 'notes of alpha'
    stderr_empty
    cd "$HOME" || return 1
    run_expect 2 hist-show notes
    stderr_has "session 'notes' is in several histories: ~/beta, ~/alpha"
    run_expect 1 hist-show nowhere
    stderr_is "hist-show: no session 'nowhere'"
    # A file that is named is the only one.
    CHAT_HISTORY=$HOME/alpha/.git/aicoder/history.jsonl run_expect 1 hist-show "$ID"
    # One that is not trusted is not looked at.
    rm beta/.git/aicoder/owner
    cd alpha || return 1
    run_expect 1 hist-show "$ID"
    stderr_is "hist-show: no session '$ID'"
}

@test "histories: a backup of all, and what is new since the last one" {
    run_expect 0 hist-export --all -f jsonl
    lines_are 8
    run_expect 0 hist-export --all --incremental states -f jsonl -o backup/
    stdout_empty
    stderr_empty
    [[ $(cat backup/'~%alpha'/*.jsonl | wc -l) -eq 4 && $(cat backup/'~%beta'/*.jsonl | wc -l) -eq 4 ]]
    cmp <(cat backup/*/*.jsonl | sort) <(sort "$HOME"/*/.git/aicoder/history.jsonl)
    run_expect 0 chat -s notes more
    cp -r backup before
    run_expect 0 hist-export --all --incremental states -f jsonl -o backup/
    cmp backup/'~%alpha'/*notes* <(grep '"session_id":"notes"' "$HOME/alpha/.git/aicoder/history.jsonl")
    diff -r before/'~%beta' backup/'~%beta'
    run_expect 2 hist-export --all -f json
    stderr_has '--all needs a directory for --output with the format json'
    run_expect 2 hist-export --all -o all.jsonl
    run_expect 2 hist-export --all notes
    run_expect 2 hist-export --all --history alpha/.git/aicoder/history.jsonl
    stderr_has '--all cannot be combined with a session, --history or --messages'
    # One that cannot be exported does not stop the others, and its state stays.
    run_expect 0 chat -s notes 'even more'
    (cd "$HOME/beta" && chat -s notes 'more of beta') >said
    echo damaged >states/'~%alpha'
    run_expect 2 hist-export --all --incremental states -f jsonl -o backup/
    stderr_is "hist-export: cannot use 'states/~%alpha': it is no state of an export"
    cmp backup/'~%beta'/*notes* <(grep '"session_id":"notes"' "$HOME/beta/.git/aicoder/history.jsonl")
    [[ $(<states/'~%alpha') == damaged ]]
    # What another person made is not the user's.
    rm "$HOME/beta/.git/aicoder/owner"
    run_expect 0 hist-export --all -f jsonl
    lines_are 8
}

@test "histories: a session of another one is copied here, and never begun or loaded as an empty one" {
    remember "$HOME/beta/.git/aicoder/history.jsonl"
    run_expect 0 hist-sessions
    cp "$OUT" before
    run_expect 1 hist-load "$ID"
    stdout_empty
    stderr_is "hist-load: session '$ID' is in ~/beta: 'hist-fork $ID' copies it here"
    run_expect 2 chat -s "$ID" hello
    stdout_empty
    stderr_has "session '$ID' is in ~/beta: 'hist-fork --detached $ID' copies it here"
    run_expect 0 hist-sessions
    cmp "$OUT" before
    # Names are of one repository; a UUID that is known nowhere begins.
    run_expect 0 chat -s 6f2c1f4e-8d0b-4a57-9c3e-2b7d5a9e1f00 hello
    stdout_is hello '[1 message]'
    run_expect 0 hist-fork "$ID"
    COPY=$(<"$OUT")
    stderr_is "hist-fork: session '$ID' is in ~/beta"
    run_expect 0 hist-show --json "$COPY"
    json_is "$OUT" .session_id "$COPY" "$COPY"
    run_expect 0 chat 'and now?'
    stdout_is 'and now?' '[3 messages]'
    # A terminal asks.
    run_expect 1 on_tty --raw --wait 'y/N' --type 'n\n' hist-load "$ID"
    stdout_has "session '$ID' is in ~/beta: copy it here? [y/N]"
    run_expect 0 on_tty --raw --wait 'y/N' --type 'y\n' hist-load --no-pager "$ID"
    stdout_has 'question of beta'
    run_expect 0 chat 'once more'
    stdout_is 'once more' '[3 messages]'
    run_expect 0 on_tty --raw --wait 'y/N' --type 'y\n' chat -s "$ID" third
    stdout_has '[3 messages]'
    unchanged "$HOME/beta/.git/aicoder/history.jsonl"
}

@test "histories: the first program that stores something in --history DIR/FILE makes the directory" {
    cd "$WORK"
    run_expect 0 chat --history a/b/new.jsonl hello
    run_expect 0 hist-append --history c/d/new.jsonl -s s1 hello
    echo '[{"role":"user","content":"hi"}]' >messages.json
    run_expect 0 hist-import --history e/f/new.jsonl messages.json
    run_expect 0 hist-new --history g/h/new.jsonl
    for file in a/b c/d e/f; do
        run_expect 0 hist-sessions --history "$file/new.jsonl"
        stdout_matches h
        [[ $(stat -c %a "$file") == 700 ]]
    done
    # Programs that only read or delete make nothing.
    for program in 'hist-show s1' hist-sessions hist-check 'hist-delete --force s1'; do
        # shellcheck disable=SC2086
        run_expect 2 $program --history x/y/new.jsonl
        stderr_has "no history 'x/y/new.jsonl'"
    done
    [[ ! -e x ]]
}

@test "histories: there may be more of them than a process may usually have files open" {
    for i in {1..60}; do
        make_repo "$HOME/many/$i"
        cd "$HOME/many/$i" || return 1
        hist-append -q -s "s$i" "text of many" || fail "$i"
    done
    ulimit -Sn 50
    run_expect 0 hist-search --all -c 'text of many'
    stdout_is 60
    stderr_empty
    run_expect 0 hist-sessions --all
    [[ $(wc -l <"$OUT") == 64 ]]
    stderr_empty
    run_expect 0 hist-import --scan --all
    stdout_is 0
    stderr_empty
}
