#!/usr/bin/env bats
#
# hist-sync: copies of a history on several machines become equal. A machine is a home directory here.

load ../helper

setup() {
    sandbox
    use_echo
    mkdir folder
}

# as MACHINE: from here on, commands run on this machine.
as() {
    export HOME=$BATS_TEST_TMPDIR/$1
    mkdir -p "$HOME"
}

# ask SESSION TEXT: a turn on this machine.
ask() {
    run_expect 0 chat -q -s "$1" "$2"
}

# equal MACHINE…: all of them have the same lines, in any order, and these are not empty.
equal() {
    local machine

    for machine; do
        sort "$BATS_TEST_TMPDIR/$machine/.local/share/aicoder/history.jsonl" >"$machine.lines"
        [[ -s $machine.lines ]] || fail "$machine has no lines"
        cmp "$1.lines" "$machine.lines" >&2 || fail "$machine differs from $1"
    done
}

@test "hist-sync: a directory carries messages, titles and deletions between three machines" {
    as a
    ask s1 'from a'
    run_expect 0 hist-title s1 'a title'
    run_expect 0 hist-sync folder
    stdout_is $'own\t3 sent'
    as b
    ask s2 'from b'
    run_expect 0 hist-sync folder
    stdout_is $'own\t3 received, 2 sent'
    run_expect 0 hist-title s1
    stdout_is 'a title'
    ask s1 'continued on b'
    run_expect 0 hist-sync folder
    stdout_is $'own\t2 sent'
    as c
    run_expect 0 hist-sync folder
    stdout_is $'own\t7 received'
    # A conversation never comes before its beginning.
    run_expect 0 hist-search --json --reverse -r user '' -s s1
    [[ $(jq -r .content "$OUT") == $'from a\ncontinued on b' ]]
    as a
    run_expect 0 hist-sync folder
    stdout_is $'own\t4 received'
    equal a b c

    # Nothing is new: no file changes.
    find folder -type f -exec stat -c '%n %Y %s %i' {} + | sort >before
    for machine in a b c; do
        as "$machine"
        run_expect 0 hist-sync folder
        stdout_empty
        stderr_empty
    done
    find folder -type f -exec stat -c '%n %Y %s %i' {} + | sort >after
    cmp before after

    # A deletion reaches everyone, also the folder, and keeps what was added elsewhere meanwhile.
    as c
    ask s1 'added on c meanwhile'
    as b
    run_expect 0 hist-delete --force s1
    run_expect 0 hist-sync folder
    as c
    run_expect 0 hist-sync folder
    stdout_is $'own\t2 sent, 5 deleted'
    for machine in a b c a; do
        as "$machine"
        run_expect 0 hist-sync folder
    done
    equal a b c
    run_expect 0 hist-search --json -r user '' -s s1
    [[ $(jq -r .content "$OUT") == 'added on c meanwhile' ]]
    run_expect 1 grep -r 'continued on b' folder "$BATS_TEST_TMPDIR"/[abc]/.local
}

@test "hist-sync: files that are cut, late or gone lose nothing" {
    as a
    ask s1 one
    run_expect 0 hist-sync folder
    machine=$(ls folder)
    as b
    ask s2 two
    run_expect 0 hist-sync folder
    ask s1 'after one'
    run_expect 0 hist-sync folder
    # The file of a arrives in part on c, later than that of b.
    mkdir late
    cp -r folder/* late
    file=late/$machine/own/lines-000001.jsonl
    whole=$(cat "$file")
    head -c -20 "$file" >part
    cp part "$file"
    as c
    run_expect 0 hist-sync late
    stdout_is $'own\t1 received'
    stderr_matches "^hist-sync: the newest lines in 'late/[^']*' wait for files in 'late/$machine' that have not arrived yet\$"
    printf '%s\n' "$whole" >"$file"
    run_expect 0 hist-sync late
    stdout_is $'own\t5 received'
    stderr_empty
    run_expect 0 hist-search --json --reverse -r user '' -s s1
    [[ $(jq -r .content "$OUT") == $'one\nafter one' ]]
    # The files of a vanish: c writes what they had, and a new machine gets everything.
    rm -r "late/$machine"
    run_expect 0 hist-sync late
    stdout_is $'own\t2 sent'
    as d
    run_expect 0 hist-sync late
    stdout_is $'own\t6 received'
    equal b c d
}

@test "hist-sync: which histories are the same one" {
    local url name
    for url in https://user:secret@GitHub.com/some/project.git git@github.com:some/project 'ssh://git@github.com/some/project/'; do
        as "m${url//[!a-z]/}"
        rm -rf clone
        make_repo clone
        printf '[core]\n\tbare = false\n[remote "origin"]\n\turl = "%s" ; the one\n' "$url" >clone/.git/config
        cd clone
        ask s1 question
        run_expect 0 hist-sync --json ../folder
        [[ $(jq -r .name "$OUT") == github.com/some/project ]]
        cd "$WORK"
    done
    [[ $(wc -l <clone/.git/aicoder/history.jsonl) == 6 ]]
    run_expect 1 grep -r secret folder
    # Paths of one machine are no names of another one.
    for url in /srv/project.git ../project 'file:///srv/project.git'; do
        printf '[remote "origin"]\n\turl = %s\n' "$url" >clone/.git/config
        cd clone
        run_expect 2 hist-sync ../folder
        stderr_matches "^hist-sync: the repository of '.*' has no remote by which it could be known on other machines: give its history a name with --name\$"
        cd "$WORK"
    done
    cd clone
    run_expect 0 hist-sync --name mine ../folder
    stdout_is $'mine\t6 sent'
    cd "$WORK"
    # A name is never a path.
    for name in ../../x a//b /x 'a b' .; do
        run_expect 2 hist-sync --name "$name" folder
    done
    run_expect 1 hist-sync --name x absent
    stderr_is "hist-sync: cannot open directory 'absent': No such file or directory"
}
