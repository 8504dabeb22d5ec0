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

# titled TITLE MACHINE…: on all of them the session s1 has this title, wherever one is shown.
titled() {
    local machine title=$1

    shift
    for machine; do
        as "$machine"
        run_expect 0 hist-title s1
        stdout_is "$title"
        run_expect 0 hist-sessions --json
        [[ $(jq -r 'select(.session_id == "s1").title' "$OUT") == "$title" ]]
        run_expect 0 hist-search --json --query "title:\"$title\" one"
        stdout_has '"content":"one"'
        run_expect 0 hist-export -f md -s s1
        stdout_has "$title"
    done
}

@test "hist-sync: of the titles that machines gave meanwhile, the last one counts on all of them" {
    local from history lines

    for lines in 1 2000; do
        rm -rf folder/* "$BATS_TEST_TMPDIR"/[abc]
        as a
        ask s1 one
        # A large history has an index.
        seq -f "%.0f $(printf 'x%.0s' {1..150})" "$lines" | sed 's/.*/{"role":"user","content":"&","session_id":"s9"}/' >many
        run_expect 0 hist-append --json <many
        run_expect 0 hist-sync folder
        for from in b c; do
            as "$from"
            run_expect 0 hist-sync folder
            run_expect 0 hist-sessions
        done
        as b
        run_expect 0 hist-title s1 'from b'
        as c
        run_expect 0 hist-title s1 'from c'
        for from in c b a c b a; do
            as "$from"
            run_expect 0 hist-sync folder
        done
        titled 'from c' a b c
        # A clock that is ten years ahead gave one: the next title counts all the same.
        as b
        history=$HOME/.local/share/aicoder/history.jsonl
        printf '{"id":"%s-0000000b","session_id":"s1","timestamp":"2036-01-01T00:00:00.000000+00:00","role":"title","content":"ahead"}\n' \
            2082758400000 >>"$history"
        titled ahead b
        run_expect 0 hist-sync folder
        as a
        run_expect 0 hist-title s1 'older clock'
        run_expect 0 hist-sync folder
        titled ahead a b
        run_expect 0 hist-title s1 'after that'
        for from in b a c; do
            as "$from"
            run_expect 0 hist-sync folder
        done
        titled 'after that' a b c
    done
}

# name_of MACHINE: prints its name in the folder.
name_of() {
    head -n 1 "$BATS_TEST_TMPDIR/$1/.local/state/chathist/sync/machine"
}

# file_of MACHINE: prints the only file with its lines in the folder.
file_of() {
    echo folder/"$(name_of "$1")"/own/lines-*.jsonl
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
    # The file of b arrives in part on c, and then not at all.
    mkdir late
    cp -r folder/* late
    other=$(name_of b)
    file=$(echo late/"$other"/own/lines-*.jsonl)
    whole=$(cat "$file")
    head -c -20 "$file" >part
    cp part "$file"
    as c
    run_expect 0 hist-sync late
    stdout_is $'own\t2 received'
    stderr_is "hist-sync: the newest lines in 'late/$other' wait for files that have not arrived yet"
    rm "$file"
    run_expect 0 hist-sync late
    stdout_empty
    stderr_is "hist-sync: the newest lines in 'late/$other' wait for files that have not arrived yet"
    # The index arrives in part, too.
    printf '%s\n' "$whole" >"$file"
    cp "late/$other/own/index" index
    for bytes in 0 10 60; do
        head -c "$bytes" index >"late/$other/own/index"
        run_expect 0 hist-sync late
        stderr_has 'have not arrived yet'
    done
    cp index "late/$other/own/index"
    run_expect 0 hist-sync late
    stdout_is $'own\t4 received'
    stderr_empty
    run_expect 0 hist-search --json --reverse -r user '' -s s1
    [[ $(jq -r .content "$OUT") == $'one\nafter one' ]]
    # The files of a vanish, and all of c except its index: c writes them again, and a new machine gets everything.
    rm -r "late/$machine" "late/$(name_of c)"/own/lines-*
    run_expect 0 hist-sync late
    stdout_empty
    stderr_empty
    rm -r "late/$other"
    as d
    run_expect 0 hist-sync late
    stdout_is $'own\t6 received'
    equal b c d
}

@test "hist-sync: a large history is in several files, of which a change replaces few" {
    as a
    history=$HOME/.local/share/aicoder/history.jsonl
    ask s1 one
    hist_lines many 10000 >>"$history"
    ask s2 'the last one'
    run_expect 0 hist-sync folder
    machine=$(ls folder)
    find folder -type f -printf '%p %i\n' | sort >before
    (($(wc -l <before) > 3))
    run_expect 0 hist-delete --force s1
    ask s3 'a new one'
    run_expect 0 hist-sync folder
    find folder -type f -printf '%p %i\n' | sort >after
    # The first and the last file are others now, and so is the index; the deletions are new.
    comm -13 before after >new
    [[ $(wc -l <new) == 4 ]] || fail "$(<new)"
    run_expect 1 grep -r '"content":"one"' folder

    # A machine that lacks a file takes the lines before it, and other sessions. The session that may go on in the
    # file waits, so that its lines have their order.
    as b
    file=$(sed -n '/^lines-/s/ .*//p' "folder/$machine/own/index" | sed -n 3p)
    mv "folder/$machine/own/$file" away
    run_expect 0 hist-sync folder
    stderr_is "hist-sync: the newest lines in 'folder/$machine' wait for files that have not arrived yet"
    run_expect 0 hist-search 'the last one'
    run_expect 0 hist-sync folder
    mv away "folder/$machine/own/$file"
    run_expect 0 hist-sync folder
    stderr_empty
    cmp <(grep '"session_id":"many"' "$history") \
        <(grep '"session_id":"many"' "$HOME/.local/share/aicoder/history.jsonl")
    equal a b
}

@test "hist-sync: lines of this machine that were not read again stay in the folder" {
    as a
    ask s1 one
    run_expect 0 hist-sync folder
    first=$(ls folder)
    as b
    run_expect 0 hist-sync folder
    ask s1 two
    run_expect 0 hist-sync folder
    # The file of a is empty, and b has lost its history: only its file in the folder has its lines.
    file=$(file_of a)
    : >"$file"
    rm "$HOME"/.local/share/aicoder/history.jsonl*
    ask s2 three
    run_expect 0 hist-sync folder
    stderr_is "hist-sync: the newest lines in 'folder/$first' wait for files that have not arrived yet"
    run_expect 0 hist-search two
    # Its own machine writes it again.
    as a
    run_expect 0 hist-sync folder
    as b
    run_expect 0 hist-sync folder
    stderr_empty
    equal a b
}

@test "hist-sync: a deletion erases its lines in the folder, and what killed programs left goes" {
    as a
    ask s1 one
    ask s2 two
    run_expect 0 hist-sync folder
    as b
    run_expect 0 hist-sync folder
    as a
    run_expect 0 hist-delete --force s1
    file=$(file_of a)
    cp "$file" "$file.12.3.tmp"
    cache=$(echo "$HOME"/.local/state/chathist/sync/*.lines)
    cp "$cache" "$cache.12.3.tmp"
    run_expect 0 hist-sync folder
    [[ ! -e $file && ! -e $file.12.3.tmp && ! -e $cache.12.3.tmp ]]
    # In the directory of another machine, which may have no index, what is younger than a day may be in use.
    mkdir -p folder/gone/own
    touch folder/gone/own/{lines-0123456789abcdef.jsonl,index}.12.3.tmp folder/gone/own/other.tmp
    echo '"one"' >folder/gone/own/deleted-0123456789abcdef.jsonl.12.3.tmp
    touch -d '2 days ago' folder/gone/own/{deleted*,index*,other*}
    as b
    run_expect 0 hist-sync --dry-run folder
    [[ $(ls folder/gone/own) == *deleted*index*lines*other* ]]
    run_expect 0 hist-sync folder
    [[ $(ls folder/gone/own) == $'lines-0123456789abcdef.jsonl.12.3.tmp\nother.tmp' ]]
    run_expect 1 grep -r '"one"' folder
    equal a b
}

@test "hist-sync: a copy of a home directory waits for files that have not arrived" {
    as a
    ask s1 one
    run_expect 0 hist-sync folder
    first=$(ls folder)
    cp -a "$HOME" "$BATS_TEST_TMPDIR/b"
    as b
    ask s1 'from b'
    run_expect 0 hist-sync folder
    mkdir late
    mv folder/"$first"/own/lines-* late
    as a
    run_expect 0 hist-sync folder
    stderr_has "another home directory writes to 'folder/$first', too"
    stderr_has "the newest lines in 'folder/$first' wait for files that have not arrived yet"
    mv late/* folder/"$first"/own
    run_expect 0 hist-sync folder
    stderr_empty
    as b
    run_expect 0 hist-sync folder
    equal a b

    # A cut index of this machine is not that of another one.
    printf 'hist-sync 2 o' >folder/"$first"/own/index
    run_expect 0 hist-sync folder
    stderr_empty
    [[ $(name_of b) == "$first" ]]
    as a
    run_expect 0 hist-sync folder
    stderr_empty
    equal a b
}

@test "hist-sync: a copy of a home directory takes a name of its own, and nothing is lost" {
    as a
    ask s1 one
    run_expect 0 hist-sync folder
    first=$(ls folder)
    cp -a "$HOME" "$BATS_TEST_TMPDIR/b"
    # Both continue under the same name; the one that meets the other's lines takes a new one.
    ask s1 'from a'
    as b
    ask s1 'from b'
    run_expect 0 hist-sync folder
    stdout_is $'own\t2 sent'
    stderr_empty
    [[ $(ls folder) == "$first" ]]
    as a
    run_expect 0 hist-sync folder
    stdout_is $'own\t2 received, 2 sent'
    stderr_matches "^hist-sync: another home directory writes to 'folder/$first', too: the name of this machine is now '[^']*'\$"
    second=$(name_of a)
    [[ $second != "$first" && -d folder/$second ]]
    for machine in b a b a; do
        as "$machine"
        ask s1 "again from $machine"
        run_expect 0 hist-sync folder
        stderr_empty
    done
    as b
    run_expect 0 hist-sync folder
    as c
    run_expect 0 hist-sync folder
    equal a b c
    [[ $(find folder -mindepth 1 -maxdepth 1 | wc -l) == 3 ]]

    # Two histories of one home directory and a lost history are no such copies.
    as a
    ask s1 five
    run_expect 0 hist-sync folder
    for history in other "$HOME/.local/share/aicoder/history.jsonl" other; do
        run_expect 0 hist-append -q --history "$history" -s s1 "$RANDOM in $history"
        run_expect 0 hist-sync --name own --history "$history" folder
        stderr_empty
    done
    run_expect 0 hist-sync folder
    rm "$HOME"/.local/share/aicoder/history.jsonl*
    run_expect 0 hist-sync folder
    stderr_empty
    # Nor are many runs that only delete, and another path of the folder.
    for i in {1..10}; do ask "gone$i" text; done
    run_expect 0 hist-sync folder
    for i in {1..10}; do
        run_expect 0 hist-delete -q --force "gone$i"
        run_expect 0 hist-sync folder
        stderr_empty
    done
    mv folder moved
    ask s1 'in another place'
    run_expect 0 hist-sync moved
    mv moved folder
    ask s1 'and back'
    run_expect 0 hist-sync folder
    stderr_empty
    [[ $(name_of a) == "$second" ]]
    # A folder that was emptied may be filled again with files that nobody has read.
    rm -r folder/*
    ask s1 six
    run_expect 0 hist-sync folder
    stderr_is "hist-sync: the index that this machine wrote to 'folder/$second' has vanished: the name of this machine is now '$(name_of a)'"
    [[ $(name_of a) != "$second" ]]
    run_expect 0 hist-sync folder
    stderr_empty
}

@test "hist-sync: one machine's file that cannot be used is left out, and the others are synchronised" {
    local bad first

    as a
    ask s1 one
    run_expect 0 hist-sync folder
    first=$(ls folder)
    as b
    ask s2 two
    hist-sync --name other folder
    mv folder/*/other .
    # b writes only what it had before it met a.
    run_expect 0 hist-sync folder
    second=$(name_of b)
    rm -r "folder/$second/own"
    sed -i 's/^hist-sync 2 other/hist-sync 2 own/' other/index
    mv other "folder/$second/own"
    for bad in later link directory name damaged; do
        rm -rf with "$BATS_TEST_TMPDIR/c"
        cp -r folder with
        index=with/$first/own/index
        file=$(echo "with/$first"/own/lines-*.jsonl)
        saved=$file
        case $bad in
        later)
            sed -i 's/^hist-sync 2/hist-sync 3/' "$index"
            saved=$index
            reason="left out '$index': a later version of hist-sync wrote it"
            ;;
        name)
            sed -i 's/ own / other /' "$index"
            saved=$index
            reason="left out '$index': it is of another history than 'own'"
            ;;
        link)
            mv "$file" with/elsewhere
            ln -s "$PWD/with/elsewhere" "$file"
            reason="cannot open '$file': is a symbolic link"
            ;;
        directory)
            rm "$file"
            mkdir "$file"
            reason="cannot open '$file': is a directory"
            ;;
        damaged)
            sed -i 's/one/eno/' "$file"
            reason="left out '$file': it is damaged; when it is removed, its machine writes it again"
            ;;
        esac
        as c
        ask s3 three
        run_expect 1 hist-sync with
        stdout_is $'own\t2 received, 2 sent'
        stderr_is "hist-sync: $reason"
        run_expect 0 hist-search two
        run_expect 1 hist-search one
        # Nothing is new.
        run_expect 1 hist-sync -q with
        stdout_empty
        stderr_is "hist-sync: $reason"
        # Another machine gets what is left, and when the file is repaired, the rest.
        rm -rf "$BATS_TEST_TMPDIR/d"
        as d
        run_expect 1 hist-sync with
        stdout_is $'own\t4 received'
        rm -rf "$saved"
        cp "folder/${saved#with/}" "$saved"
        run_expect 0 hist-sync with
        stdout_is $'own\t2 received'
        stderr_empty
    done

    # A file of this machine that cannot be used: the others are read, and nothing is written.
    as b
    sed -i 's/^hist-sync 2/hist-sync 3/' "folder/$second/own/index"
    ask s2 'four'
    as a
    ask s1 'five'
    run_expect 1 hist-sync folder
    as b
    run_expect 1 hist-sync folder
    stdout_is $'own\t2 received'
    stderr_is "hist-sync: left out 'folder/$second/own/index': a later version of hist-sync wrote it"
    sed -i 's/^hist-sync 3/hist-sync 2/' "folder/$second/own/index"
    run_expect 0 hist-sync folder
    stdout_is $'own\t2 sent'
    as a
    run_expect 0 hist-sync folder
    equal a b
}

@test "hist-sync: --dry-run makes no file" {
    as a
    ask s1 one
    run_expect 0 hist-sync folder
    as b
    ask s2 two
    find folder "$HOME" | sort >before
    run_expect 0 hist-sync --dry-run folder
    stdout_is $'own\t2 received, 2 sent'
    find folder "$HOME" | sort >after
    cmp before after
    run_expect 0 hist-sync folder
    stdout_is $'own\t2 received, 2 sent'
}

@test "hist-sync: --dry-run does not count as sent what would be erased" {
    make_ssh
    as b
    as a
    ask s1 one
    ask s2 two
    run_expect 0 hist-sync ssh://b
    as b
    run_expect 0 hist-delete --force s1
    # The folder gets the deletion, but not the lines.
    run_expect 0 hist-sync folder
    as a
    local place
    for place in folder ssh://b; do
        run_expect 0 hist-sync --dry-run "$place"
        stdout_is $'own\t2 deleted'
    done
    run_expect 0 hist-sync folder
    stdout_is $'own\t2 deleted'
    equal a b
}

@test "hist-sync: deletions that were replaced by others are all written again" {
    as a
    ask s1 one
    ask s2 two
    run_expect 0 hist-sync folder
    as b
    run_expect 0 hist-sync folder
    as a
    cp "$HOME/.local/share/aicoder/history.jsonl.deleted" before
    run_expect 0 hist-delete --force s1
    run_expect 0 hist-sync folder
    # As after a restored backup: as many deletions, but others.
    cp before "$HOME/.local/share/aicoder/history.jsonl.deleted"
    run_expect 0 hist-delete --force s2
    run_expect 0 hist-sync folder
    as b
    run_expect 0 hist-sync folder
    run_expect 1 hist-search -s s2 two
    # The lines of the history do not show it.
    as a
    ask s3 three
    echo '{"session_id":"s8","id":"1719500000000-00000008"}' >>"$HOME/.local/share/aicoder/history.jsonl.deleted"
    run_expect 0 hist-sync folder
    sed -i 's/"s8"/"s9"/' "$HOME/.local/share/aicoder/history.jsonl.deleted"
    run_expect 0 hist-sync folder
    cat folder/*/own/deleted-*.jsonl >all
    grep -q '"s8"' all
    grep -q '"s9"' all
}

@test "hist-sync: more than 8 MiB of deletions" {
    as a
    ask s1 one
    run_expect 0 hist-sync folder
    long=$(printf 'x%.0s' {1..120})
    seq -f "{\"session_id\":\"$long\",\"id\":\"1719500000000-%08g\"}" 60000 \
        >>"$HOME/.local/share/aicoder/history.jsonl.deleted"
    run_expect 0 hist-sync folder
    ask s2 two
    run_expect 0 hist-delete --force s2
    run_expect 0 hist-sync folder
    run_expect 0 grep -qr '"session_id":"s2"' folder --include='deleted-*'
    run_expect 1 grep -r '"session_id":"s2"' folder --include='lines-*'
    as b
    run_expect 0 hist-sync folder
    cmp "$BATS_TEST_TMPDIR"/[ab]/.local/share/aicoder/history.jsonl.deleted
}

@test "hist-sync: files that are written again keep nobody waiting, and nothing unread is removed" {
    # The files of a vanish after b has read them; a writes them again in fewer lines.
    as a
    for text in one two three; do
        ask s1 "$text"
        run_expect 0 hist-sync folder
    done
    machine=$(ls folder)
    as b
    run_expect 0 hist-sync folder
    ask s2 'of b'
    run_expect 0 hist-sync folder
    rm -r "folder/$machine"
    as a
    run_expect 0 hist-sync folder
    as c
    run_expect 0 hist-sync folder
    stdout_is $'own\t8 received'
    stderr_empty
    equal a b c

    # a is restored from a backup, and the files of b have not arrived again.
    as a
    machine=$(name_of a)
    cp -a "$HOME" backup
    ask s1 'after the backup'
    run_expect 0 hist-sync folder
    rm -r "$HOME"
    cp -a backup "$HOME"
    rm "$HOME"/.local/state/chathist/sync/*.dir
    for other in folder/*/own/lines-*.jsonl; do
        [[ $other == *"$machine"* ]] || truncate -s 0 "$other"
    done
    ask s3 'on the restored machine'
    run_expect 0 hist-sync folder
    run_expect 0 grep -rq 'after the backup' folder
    run_expect 0 hist-search 'after the backup'
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
    # The place comes first, where the name is missing, too.
    make_repo nameless
    : >nameless/.git/config
    (cd nameless && CHAT_PROVIDER='echo' chat -q hello >"$OUT")
    for place in ftp://x https://example.org/x sftp://host/x; do
        run_expect 2 env -C nameless hist-sync "$place"
        stderr_matches "^hist-sync: bad place '$place': a directory, ssh://HOST or postgresql://\.\.\. is expected"
    done
    for place in ssh:// ssh:///x ssh://host:port; do
        run_expect 2 env -C nameless hist-sync "$place"
        stderr_is "hist-sync: bad place '$place': ssh://[user@]host[:port][/path] is expected"
    done
    run_expect 1 env -C nameless hist-sync absent
    stderr_is "hist-sync: cannot open directory 'absent': No such file or directory"
    run_expect 1 env -C nameless hist-sync .git/aicoder/history.jsonl
    stderr_is "hist-sync: cannot open directory '.git/aicoder/history.jsonl': Not a directory"
    run_expect 2 env -C nameless hist-sync ..
    stderr_has 'has no remote by which it could be known'
    run_expect 1 hist-sync --name x absent
    stderr_is "hist-sync: cannot open directory 'absent': No such file or directory"
}

# Makes the ssh command: it runs the command in the home directory of the machine that has the host's name, and
# writes what travels to the file wire. With the file `limit`, the connection ends after that many bytes.
make_ssh() {
    cat >ssh <<'SCRIPT'
#!/bin/bash
while [[ $1 != -- ]]; do shift; done
printf '%s\n' "$2" "$3" >"$WORK/asked"
cd "$BATS_TEST_TMPDIR/${2#*@}" || exit 255
export HOME=$PWD
# This shell, too, holds the connection open.
[[ -e $WORK/limit ]] && cut=(dd bs=1 status=none count="$(cat "$WORK/limit")") || cut=(cat)
tee -a "$WORK/wire" | sh -c "$3" | "${cut[@]}" | { tee -a "$WORK/wire"; [[ ! -e $WORK/limit ]] || kill $$; }
SCRIPT
    chmod +x ssh
    export CHAT_SSH=$PWD/ssh WORK
}

@test "hist-sync: two machines become equal over ssh, also after cut connections" {
    make_ssh
    as b
    ask s2 'from b'
    as a
    ask s1 'from a'
    run_expect 0 hist-sync --dry-run ssh://b
    stdout_is $'own\t2 received, 2 sent'
    [[ $(wc -l <"$HOME/.local/share/aicoder/history.jsonl") == 2 ]]
    run_expect 0 hist-sync ssh://me@b:22
    stdout_is $'own\t2 received, 2 sent'
    lines_of_asked=("me@b" "hist-sync --serve --name own")
    [[ $(cat asked) == "$(printf '%s\n' "${lines_of_asked[@]}")" ]]
    equal a b
    # Both are equal: only the two greetings travel.
    : >wire
    run_expect 0 hist-sync ssh://b
    stdout_empty
    [[ $(wc -c <wire) -lt 200 ]]

    # Deletions go both ways, and what is deleted is not sent.
    run_expect 0 hist-delete --force s1
    as b
    run_expect 0 hist-delete --force s2
    ask s3 'a third one'
    : >wire
    run_expect 0 hist-sync ssh://a
    stdout_is $'own\t2 sent, 2 deleted'
    run_expect 1 grep -a 'from [ab]' wire
    equal a b

    # Whatever part arrives, the next run completes it.
    for i in {1..30}; do hist-append -q -s many "line $i $RANDOM" >/dev/null; done
    as a
    for i in {1..30}; do hist-append -q -s more "line $i $RANDOM" >/dev/null; done
    for cut in 0 1 30 60 100 300 600 900; do
        echo "$cut" >limit
        run_expect 4 hist-sync ssh://b
        stderr_has "the connection to 'ssh://b' ended too early"
    done
    rm limit
    run_expect 0 hist-sync ssh://b
    equal a b
    run_expect 0 hist-sync --json ssh://b
    [[ $(jq -c '[.received, .sent, .deleted, .conflicts]' "$OUT") == '[0,0,0,0]' ]]
}

@test "hist-sync: the other end of ssh is checked" {
    make_ssh
    as b
    ask s1 'from b'
    as a
    ask s2 'from a'
    run_expect 4 hist-sync ssh://absent
    stderr_has "cannot reach 'ssh://absent': the ssh command ended with status 255"
    run_expect 1 hist-sync --name other ssh://b
    stderr_is "hist-sync: ssh://b: no history is called 'other': use chat in a clone there first, or name a file"
    for place in ssh:// ssh://-oProxyCommand=x ssh://b:x ssh://b: 'ssh://a b' 'ssh://[-oProxyCommand=x]:22/' \
        'ssh://a@-oX' 'ssh://a@[-oX]' ssh://-oX@b ssh://@b 'ssh://a@[]' 'ssh://a[b]' 'ssh://[[::1]' 'ssh://[::1' \
        ssh://b:0 ssh://b:65536 ssh://b:99999 ssh://b:00000000000000000000001x ssh://b:-1; do
        run_expect 2 hist-sync "$place"
        stderr_has 'ssh://[user@]host[:port][/path] is expected'
    done
    run_expect 4 hist-sync 'ssh://me@[::1]:65535'
    [[ $(head -n 1 asked) == me@::1 ]]
    # A file of the other machine, with a name that its shell must not interpret.
    # shellcheck disable=SC2016
    run_expect 0 hist-sync "ssh://b/~/it's \$(touch x).jsonl"
    stdout_is $'own\t2 sent'
    [[ -s "$BATS_TEST_TMPDIR/b/it's \$(touch x).jsonl" ]]
    ln -s elsewhere "$BATS_TEST_TMPDIR/b/link"
    run_expect 1 hist-sync ssh://b/~/link
    stderr_has "ssh://b/~/link: cannot open 'link': is a symbolic link"

    # The same id with another text: both are kept on both sides, and shown.
    cp "$HOME/.local/share/aicoder/history.jsonl" x.jsonl
    sed 's/from a/from elsewhere/' x.jsonl >y.jsonl
    run_expect 0 hist-sync --history x.jsonl --name x "ssh://b$PWD/y.jsonl"
    stdout_is $'x\t2 received, 2 sent'
    stderr_has "have the id '" "and both are kept: 'from a' here, 'from elsewhere' in ssh://b"
    cmp <(sort x.jsonl) <(sort y.jsonl)

}

@test "hist-sync: what a hostile end of ssh sends is not stored, printed as it is, or taken without bound" {
    local zero=0000000000000000 one good hello gone wrong more fact
    make_ssh
    as a
    ask s2 'from a'
    history=$HOME/.local/share/aicoder/history.jsonl
    cp "$history" before
    good='{"id":"1-a","session_id":"s","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"user","content":"x"}'
    one=${zero%0}1
    hello="hist-sync 3 $zero $zero $one $one"
    # The command answers at once, whatever it is asked, and then floods the pipe.
    cat >hostile <<'SCRIPT'
#!/bin/sh
cat answer
[ ! -s flood ] || yes "$(cat flood)"
exec >&-
cat >/dev/null
SCRIPT
    chmod +x hostile
    export CHAT_SSH=$PWD/hostile
    # refused ANSWER STATUS MESSAGE [FLOOD [COUNT]]
    refused() {
        printf '%b' "$1" >answer
        printf '%s' "${4-}" >flood
        run_expect "$2" hist-sync ssh://b
        stderr_is "hist-sync: $3"
        if [[ -n ${5-} ]]; then stdout_is "$5"; else stdout_empty; fi
        cmp before "$history"
    }
    gone="the connection to 'ssh://b' ended too early"
    wrong="'ssh://b' does not follow the protocol of hist-sync"
    more="'ssh://b' sent more than it had announced"
    refused 'X \033[31mred\n' 1 'ssh://b: ^[[31mred'
    refused 'welcome to b\n' 1 "'ssh://b' does not answer as hist-sync does: 'welcome to b'"
    refused "hist-sync 2 $zero $zero\n" 1 \
        "'ssh://b' has another version of hist-sync: it speaks version '2' of the protocol, and this one 3"
    refused 'hist-sync 3 x y\n' 1 "$wrong"
    refused "hist-sync 3 $zero $zero $one ffffffffffffffff\n" 1 "$wrong"
    refused 'hist-sync 3' 4 "$gone"
    refused "$hello\n$one" 4 "$gone"
    refused "$hello\n\005\005\n" 1 "$wrong"
    refused "$hello\n\n" 1 "$wrong"
    refused "$hello\n../x\n" 1 "$wrong"
    refused "$hello\n$good\nE\n" 1 "$wrong"
    refused "$hello\n$one\n$one\nE\n" 1 "$more"
    refused "$hello\nE\n$good\nE\n" 1 "$more"
    refused "$hello\nE\nX no space\n" 1 'ssh://b: no space'
    # Endless lines, lists and facts.
    refused '' 1 "'ssh://b' sent a line that is too long" "$(printf '%05000d' 0)"
    refused "$hello\n" 1 "$more" "$one"
    refused "$hello\nE\n" 1 "$more" "$good"
    # Facts that were announced, and are none.
    for fact in '{}' x "${good/1-a/1 a}" "${good/\"s\"/\"..\/x\"}" '[]'; do
        refused "$hello\n$one\nE\n${fact//\\/\\\\}\nE\n" 0 \
            "1 line for 'own' in ssh://b is left out: damaged, or no message" '' $'own\t2 sent'
    done
    # What was announced is stored, and nothing after it.
    printf '%s\n' "$hello" "$one" E >answer
    printf '%s' "$good" >flood
    run_expect 1 hist-sync ssh://b
    stderr_is "hist-sync: $more"
    [[ $(wc -l <"$history") == 3 ]]
    # In a history of more than a segment, there are lists of their sums.
    many large 40
    cp "$history" before
    refused "$hello\n$one\nE\n" 1 "$wrong"
    refused "$hello\n" 1 "$more" "$one"
}

@test "hist-sync: a file that is no history is refused, and nothing is left beside it" {
    mkdir place
    mkfifo place/pipe
    ln -s nothing place/link
    mkdir place/dir
    for file in pipe link dir; do
        run_expect 1 hist-sync --name x --history "place/$file" folder
        stdout_empty
        stderr_matches "^hist-sync: cannot open 'place/$file': is a "
    done
    [[ $(cd place && echo *) == 'dir link pipe' ]] || fail "$(ls place)"
}

@test "hist-sync: ssh://HOST/~NAME is refused, for it would be a file below the root" {
    # shellcheck disable=SC2088 # a part of an address
    for path in '~' '~/' '~root' '~root/x.jsonl'; do
        run_expect 2 hist-sync "ssh://b/$path"
        stderr_is "hist-sync: bad place 'ssh://b/$path': /~ and a name is no directory here: /~/PATH is below the home directory"
    done
}

@test "hist-sync: a server that ends while lines are sent says why, and nothing counts as sent" {
    as b
    # A first line makes the directories.
    ask s0 zero
    as a
    many large 4000
    # The other side can store a part of it.
    # shellcheck disable=SC2016
    printf '%s\n' '#!/bin/bash' 'ulimit -f 100' 'export HOME=$BATS_TEST_TMPDIR/$2' 'trap "" XFSZ' 'exec sh -c "$3"' >small
    chmod +x small
    CHAT_SSH=$PWD/small run_expect 1 hist-sync ssh://b
    stdout_empty
    stderr_matches "^hist-sync: ssh://b: cannot write '.*': File too large$"
}

@test "hist-sync: a system that cannot write without waiting synchronises over ssh, too" {
    need_strace
    make_ssh
    as b
    as a
    many large 400
    traced -f -o /dev/null -e trace=pwritev2 -e inject=pwritev2:error=EOPNOTSUPP hist-sync ssh://b >"$OUT" 2>"$ERR"
    stdout_is $'own\t400 sent'
    stderr_empty
    as b
    [[ $(hist-search -c '') == 400 ]]
}

@test "hist-sync: what a hostile client sends to the other end of ssh has bounds" {
    local zero=0000000000000000
    as a
    ask s1 one
    cp "$HOME/.local/share/aicoder/history.jsonl" before
    # refuses FLOOD MESSAGE: after the greeting the client repeats a line without end.
    refuses() {
        # shellcheck disable=SC2016
        run_expect 1 bash -c 'set -o pipefail; { printf "%s\n" "$1"; yes "$2" 2>/dev/null || :; } | hist-sync --serve --name own | tail -n 1' \
            - "hist-sync 3 $zero $zero $zero ${zero%0}9" "$1"
        stdout_is "X 'the other side' $2"
        cmp before "$HOME/.local/share/aicoder/history.jsonl"
    }
    refuses "${zero%0}1" 'sent more than it had announced'
    refuses "$(printf '%05000d' 0)" 'sent a line that is too long'
    refuses '../x' 'does not follow the protocol of hist-sync'
}

@test "hist-sync: lines of the history that cannot be synchronised are reported" {
    as a
    ask s1 one
    history=$HOME/.local/share/aicoder/history.jsonl
    line='{"id":"m1","session_id":"s2","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"user","content":"x"}'
    printf '%s\n' "${line/s2/a name}" "${line/m1/m 1}" "${line/2024/}" "$line" >>"$history"
    for sent in $'own\t3 sent' ''; do
        run_expect 0 hist-sync folder
        printf '%s' "${sent:+$sent$'\n'}" >wanted
        cmp wanted "$OUT"
        stderr_is "hist-sync: 3 lines of '$history' are not synchronised: the id, the session id or the time is not valid"
    done
    run_expect 0 hist-sync -q folder
    stderr_empty
    run_expect 0 hist-delete --force 'a name'
    run_expect 0 hist-sync folder
    stderr_is "hist-sync: 2 lines of '$history' are not synchronised: the id, the session id or the time is not valid"
}

@test "hist-sync: lines that the other end cannot take are reported" {
    printf "hist-sync 3 %016d %016d %016d %016d\n%016d\n%016d\nE\n{}\n[]\nE\n" 0 0 1 2 1 2 >asked
    run_expect 0 bash -c 'set -o pipefail; hist-sync --serve --name own <asked | cat'
    stderr_is "hist-sync: 2 lines for 'own' in the other copy are left out: damaged, or no message"
    run_expect 0 bash -c 'set -o pipefail; hist-sync --serve --quiet --name own <asked | cat'
    stderr_empty
    make_ssh
    as b
    ask s1 one
    as a
    run_expect 0 hist-sync -q ssh://b
    [[ $(tail -n 1 asked) == "hist-sync --serve --quiet --name own" ]]
}

@test "hist-sync: a database server that answers with something else" {
    as a
    ask s1 one
    # The answers have fewer columns than were asked for, or are no results.
    for how in narrow copy error; do
        mkdir "$how"
        exec {server}< <(exec "$BATS_TEST_DIRNAME/../tools/wrong-postgres" "$how" "$how" 3>&- 4>&-)
        pid=$!
        BACKGROUND+=("$pid")
        read -r -t 30 -u "$server" line
        [[ $line == ready ]]
        if [[ $how == error ]]; then
            # 1 would mean that no session has the name.
            run_expect 2 hist-sync --show s1 "postgresql:///x?host=$PWD/$how&user=u"
            stderr_is 'hist-sync: PostgreSQL: wrong'
        else
            run_expect 4 hist-sync "postgresql:///x?host=$PWD/$how&user=u"
        fi
        kill "$pid"
        exec {server}<&-
    done
    run_expect 0 hist-show --json s1
    stdout_has one
}

# history_of MACHINE: prints the path of its own history.
history_of() {
    echo "$BATS_TEST_TMPDIR/$1/.local/share/aicoder/history.jsonl"
}

# git_remote CLONE URL: gives a repository a remote.
git_remote() {
    printf '[remote "origin"]\n\turl = %s\n' "$2" >"$1/.git/config"
}

# has_text FILE|FOLDER TEXT: the text is in it.
has_text() {
    run_expect 0 grep -rqF "$2" "$1"
}

@test "hist-sync: after a restored disk, files that arrive late are never removed unread" {
    local how first history

    for how in history home lost; do
        rm -rf folder/* cloud backup home_backup "$BATS_TEST_TMPDIR"/[ab]
        as a
        history=$(history_of a)
        run_expect 0 hist-append -s s1 one
        run_expect 0 hist-sync folder
        first=$(name_of a)
        cp "$history" backup
        cp -a "$HOME" home_backup
        run_expect 0 hist-append -s s1 two
        run_expect 0 hist-append -s s1 three
        run_expect 0 hist-sync folder
        cp -a folder cloud
        case $how in
        history) # The history is restored. The index has arrived, its segment has not.
            cp backup "$history"
            rm folder/*/own/lines-*
            run_expect 0 hist-sync folder
            stderr_has "hist-sync: 'folder/$first' lacks files with lines that are not here: the name of this machine is now '$(name_of a)'"
            ;;
        home) # The home directory is restored, and the folder is still empty.
            rm -r "$HOME" folder/*
            cp -a home_backup "$HOME"
            run_expect 0 hist-sync folder
            stderr_is "hist-sync: the index that this machine wrote to 'folder/$first' has vanished: the name of this machine is now '$(name_of a)'"
            ;;
        lost) # The directory of the history is lost.
            rm -r "${history%/*}"
            rm folder/*/own/lines-*
            run_expect 0 hist-sync folder
            stderr_has "the name of this machine is now '$(name_of a)'"
            ;;
        esac
        [[ $(name_of a) != "$first" ]]
        run_expect 0 hist-append -s s1 four
        run_expect 0 hist-sync folder
        # Now the rest arrives.
        cp -a cloud/. folder
        run_expect 0 hist-append -s s1 five
        run_expect 0 hist-sync folder
        for text in two three four five; do
            has_text folder "\"$text\""
            has_text "$history" "\"$text\""
        done
        as b
        run_expect 0 hist-sync folder
        equal a b
    done
}

@test "hist-sync: segments that no index names are read before they are removed" {
    as a
    history=$(history_of a)
    run_expect 0 hist-append -s s1 one
    run_expect 0 hist-sync folder
    cp -a folder older
    cp "$history" backup
    run_expect 0 hist-append -s s1 two
    run_expect 0 hist-sync folder
    cp -a folder cloud
    own=$(name_of a)
    # The history, the index and its segments are older ones, and the newer segment arrives alone.
    cp backup "$history"
    rm -r folder/*
    cp -a older/. folder
    run_expect 0 hist-append -s s1 three
    run_expect 0 hist-sync folder
    [[ $(name_of a) == "$own" ]]
    cp -n cloud/"$own"/own/lines-* folder/"$own"/own
    run_expect 0 hist-append -s s1 four
    run_expect 0 hist-sync folder
    stderr_empty
    has_text "$history" '"two"'
    diff <(sed -n 's/^\(lines-[^ ]*\) .*/\1/p' folder/"$own"/own/index | sort) \
        <(find folder -name 'lines-*' -printf '%f\n' | sort)
    has_text folder '"two"'

    # One that cannot be used stays, and is named each time; the rest is synchronised.
    cat folder/"$own"/own/lines-* >bad
    sed -i 's/"session_id":"s1"/"session_id":"s2"/' bad
    cp bad folder/"$own"/own/lines-0123456789abcdef.jsonl
    for i in 1 2; do
        run_expect 0 hist-append -s s1 "five $i"
        run_expect 1 hist-sync folder
        stdout_is $'own\t1 sent'
        stderr_is "hist-sync: left out 'folder/$own/own/lines-0123456789abcdef.jsonl': it is damaged, and the index of its machine does not name it"
    done
    cmp bad folder/"$own"/own/lines-0123456789abcdef.jsonl
}

@test "hist-sync: two machines with one home directory keep two names, side by side" {
    ((EUID == 0)) || skip 'only root can give a machine another id'
    unshare -m true 2>/dev/null || skip 'no mount namespaces'
    as a
    printf '%032d\n' 1 >id1
    printf '%032d\n' 2 >id2
    run_expect 0 hist-append -s s1 SECRET
    run_expect 0 hist-append -s s2 text
    for id in 1 2 1 2 1 2; do
        run_expect 0 unshare -m sh -c "mount --bind id$id /etc/machine-id && hist-sync folder"
        stderr_empty
    done
    [[ $(find folder -mindepth 1 -maxdepth 1 | wc -l) == 2 ]]
    run_expect 0 hist-delete -q --force s1
    for id in 1 2; do
        run_expect 0 unshare -m sh -c "mount --bind id$id /etc/machine-id && hist-sync folder"
        stderr_empty
    done
    run_expect 1 grep -r SECRET folder
    [[ $(find folder -mindepth 1 -maxdepth 1 | wc -l) == 2 ]]
}

# faulty CALL ERROR TEXT PROGRAM…: runs it; the first of these calls whose arguments have the text fails. Where that
# call comes is seen in a run with copies of the home directory and of this one.
faulty() {
    local number

    rm -rf ../again
    cp -a . ../again
    cp -a "$HOME" ../again/home
    (cd ../again && HOME=$PWD/home strace -qq -o "$BATS_TEST_TMPDIR/trace" -e "trace=$1" "${@:4}") >/dev/null 2>&1
    number=$(grep -nm1 -F -- "$3" "$BATS_TEST_TMPDIR/trace") || fail "no $1 of $3"
    strace -qq -o /dev/null -e "trace=$1" -e "inject=$1:error=$2:when=${number%%:*}" "${@:4}"
}

@test "hist-sync: a file that its machine removes while another reads is waited for" {
    as a
    run_expect 0 hist-append -s s1 text
    run_expect 0 hist-sync folder
    as b
    run_expect 0 faulty openat ENOENT '"lines-' hist-sync folder
    stdout_empty
    stderr_is "hist-sync: the newest lines in 'folder/$(name_of a)' wait for files that have not arrived yet"
    run_expect 0 hist-sync folder
    stdout_is $'own\t1 received'
    stderr_empty
}

@test "hist-sync: an id of the machine that cannot be read is an error, not another machine" {
    [[ -e /etc/machine-id ]] || skip 'this system has no /etc/machine-id'
    as a
    run_expect 0 hist-append -s s1 one
    run_expect 0 hist-sync folder
    run_expect 0 hist-append -s s1 two
    for error in EIO EACCES EMFILE; do
        run_expect 1 faulty openat $error '"/etc/machine-id"' hist-sync folder
        stderr_matches "^hist-sync: cannot open '/etc/machine-id': "
    done
    [[ $(find folder -mindepth 1 -maxdepth 1 | wc -l) == 1 ]]
    # A system without one.
    run_expect 0 faulty newfstatat ENOENT '"/etc/machine-id"' hist-sync folder
}

@test "hist-sync: erased text goes also after a kill, and if it cannot be removed that is said" {
    as a
    run_expect 0 hist-append -s s1 SECRET
    run_expect 0 hist-append -s s2 text
    run_expect 0 hist-sync folder
    run_expect 0 hist-delete -q --force s1
    run_expect 137 strace -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=1 hist-sync folder
    has_text folder SECRET
    run_expect 0 hist-sync folder
    run_expect 1 grep -r SECRET folder
    run_expect 0 hist-append -s s1 SECRET
    run_expect 0 hist-sync folder
    run_expect 0 hist-delete -q --force s1
    run_expect 1 strace -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:error=EACCES hist-sync folder
    stderr_matches "^hist-sync: cannot remove 'folder/$(name_of a)/own/lines-[0-9a-f]*.jsonl': Permission denied\$"
    has_text folder SECRET
    run_expect 0 hist-sync folder
    run_expect 1 grep -r SECRET folder
}

@test "hist-sync: a lost file holds back only the lines that depend on it" {
    as a
    history=$(history_of a)
    run_expect 0 hist-append -s s1 one
    hist_lines many 12000 >>"$history"
    prompt=$(sed -n '/"message 2001"/s/.*"id":"\([^"]*\)".*/\1/p' "$history")
    run_expect 0 hist-append -s s2 --json <<<"{\"role\":\"assistant\",\"content\":\"reply\",\"session_id\":\"many\",\"reply_to\":\"$prompt\"}"
    run_expect 0 hist-append -s s3 'another session'
    run_expect 0 hist-sync folder
    machine=$(name_of a)
    lost=$(grep -l '"message 2001"' folder/"$machine"/own/lines-*)
    mv "$lost" lost
    as b
    run_expect 0 hist-sync folder
    stderr_is "hist-sync: the newest lines in 'folder/$machine' wait for files that have not arrived yet"
    run_expect 0 hist-search 'another session'
    run_expect 1 hist-search reply
    run_expect 1 hist-search 'message 11999'
    # After a day only what names a lost line waits.
    touch -d '2 days ago' folder/"$machine"/own/index
    run_expect 0 hist-sync folder
    stderr_is "hist-sync: lines in 'folder/$machine' have been waiting for a day for files that have not arrived: if that machine is gone, remove it with --retire"
    run_expect 0 hist-search 'message 11999'
    run_expect 1 hist-search reply
    # The machine is gone. What it left is read, and then its directory is not waited for any more.
    run_expect 2 hist-sync --retire "$machine" folder
    stderr_has 'there is no terminal to ask on: nothing is removed without --force'
    run_expect 0 hist-sync --force --retire "$machine" folder
    stdout_is $'own\t1 received'
    stderr_empty
    run_expect 0 hist-search reply
    [[ ! -e folder/$machine ]]
    run_expect 0 hist-sync folder
    stderr_empty
}

@test "hist-sync: a prompt and its reply have their order, whichever file arrives first" {
    as a
    history=$(history_of a)
    hist_lines many 3000 >"$BATS_TEST_TMPDIR/lines"
    mkdir -p "${history%/*}"
    # Each reply is in another session than the lines beside it. The ids decide where the files are cut: with these,
    # no file begins with a line of such a session, after which it would be unknown that the others wait.
    awk '{ sub(/-[0-9a-f]+","session_id/, sprintf("-%08d\",\"session_id", NR)); print; if (NR % 100 == 0) { sub(/"session_id":"many"/, "\"session_id\":\"p" NR "\""); print } }' \
        "$BATS_TEST_TMPDIR/lines" >"$history"
    run_expect 0 hist-sync folder
    machine=$(name_of a)
    sed -n 's/^\(lines-[^ ]*\) .*/\1/p' "folder/$machine/own/index" >names
    for first in $(<names); do
        rm -rf "$BATS_TEST_TMPDIR/b"
        mkdir -p late/"$machine"/own
        cp folder/"$machine"/own/{index,"$first"} late/"$machine"/own
        as b
        run_expect 0 hist-sync late
        cp -a folder/. late
        run_expect 0 hist-sync late
        equal a b
        cmp <(grep '"session_id":"many"' "$history") <(grep '"session_id":"many"' "$(history_of b)")
        rm -r late
    done
}

@test "hist-sync: a machine's directory that cannot be opened is named, and the rest is synchronised" {
    local bad error machine

    for machine in a c; do
        as $machine
        run_expect 0 hist-append -s "s$machine" "from $machine"
        run_expect 0 hist-sync folder
    done
    bad=folder/$(name_of a)
    for error in EACCES EIO EMFILE ENOMEM ENOSPC; do
        for path in "" /own /own/index; do
            rm -rf "$BATS_TEST_TMPDIR/b" with
            cp -a folder with
            # The order in which a directory is listed is not known: the fault is in the only one.
            mv with/"$(name_of c)" .
            as b
            run_expect 0 hist-append -s sb 'from b'
            [[ -n $path ]] && text=\"${path##*/}\" || text=\"${bad#folder/}\"
            run_expect 1 faulty openat $error "$text" hist-sync with
            stderr_matches "^hist-sync: cannot open (directory )?'with/${bad#folder/}$path': "
            stdout_is $'own\t1 sent'
            mv "$(name_of c)" with
            run_expect 0 hist-sync with
            stdout_is $'own\t2 received'
        done
        # A file that cannot be looked at is not one that has not arrived.
        rm -rf "$BATS_TEST_TMPDIR/b" with
        mkdir with
        cp -a "$bad" with
        file=$(echo "with/${bad#folder/}"/own/lines-*)
        as b
        run_expect 1 faulty newfstatat $error "\"${file##*/}\"" hist-sync with
        stderr_matches "^hist-sync: cannot read '$file': "
    done
}

@test "hist-sync: each file that cannot be opened, looked at or listed is reported, or changes nothing" {
    local call error n status own

    for machine in a c; do
        as $machine
        run_expect 0 hist-append -s "s$machine" "from $machine"
        run_expect 0 hist-sync folder
    done
    run_expect 0 hist-append -s sc 'more of c'
    own=$(name_of c)
    mv "$HOME" ../c.saved
    mv folder ../folder.saved
    for call in openat:EACCES newfstatat:EIO getdents64:EIO; do
        error=${call#*:} call=${call%:*}
        for ((n = 1; n < 200; n++)); do
            rm -rf "$HOME" folder
            cp -a ../c.saved "$HOME"
            cp -a ../folder.saved folder
            status=0
            strace -qq -o trace -e "trace=$call" -e "inject=$call:error=$error:when=$n" hist-sync folder >"$OUT" 2>"$ERR" || status=$?
            grep -q INJECTED trace || break
            # The loader of programs and the C library read files, too.
            grep -q 'INJECTED' <(grep -E '"/(etc/ld|lib|usr|proc|sys)' trace) && continue
            [[ $(name_of c) == "$own" ]] || fail "$call $error $n: another name: $(<"$ERR")"
            [[ $status != 0 && -s $ERR ]] || { [[ $status == 0 ]] && grep -q 'from a' "$(history_of c)" &&
                grep -qr 'more of c' folder/"$own"; } || fail "$call $error $n: status $status: $(<"$ERR") $(grep INJECTED trace)"
            hist-sync folder >"$OUT" 2>"$ERR" || fail "$call $error $n: then $(<"$ERR")"
            grep -q 'from a' "$(history_of c)" || fail "$call $error $n: not received"
            grep -qr 'more of c' folder/"$own" || fail "$call $error $n: not sent"
        done
        ((n > 3 && n < 200)) || fail "$call: $n"
    done
}

@test "hist-sync: the machines of a directory are listed, and one that is gone is removed" {
    as a
    run_expect 0 hist-append -s s1 'from a'
    run_expect 0 hist-sync folder
    gone=$(name_of a)
    make_repo clone
    git_remote clone https://example.org/x/y.git
    cd clone
    run_expect 0 hist-append -s s9 'in the clone of a'
    run_expect 0 hist-sync ../folder
    cd "$WORK"
    as b
    run_expect 0 hist-append -s s2 'from b'
    run_expect 0 hist-sync folder
    mkdir folder/other folder/.stfolder folder/lost+found
    run_expect 0 hist-sync --machines folder
    [[ $(wc -l <"$OUT") == 2 ]]
    bytes=$(cat folder/"$gone"/*/* | wc -c)
    stdout_matches "^$gone"$'\t'"[^ ]*"$'\t'"20[0-9-]*T[0-9:.]*\+00:00"$'\t'"$bytes\$"
    run_expect 0 grep -c "^$(name_of b)"$'\t.*\tthis machine$' "$OUT"
    run_expect 0 hist-sync --json --machines folder
    [[ $(jq -r 'select(.this | not) | "\(.machine) \(.bytes) \(.histories | sort | join(" "))"' "$OUT") == "$gone $bytes example.org/x/y own" ]]
    [[ $(jq -r 'select(.this).machine' "$OUT") == "$(name_of b)" ]]
    [[ $(jq -r 'select(.this).host' "$OUT") == "$(uname -n)" ]]

    # What is not in any history here stays.
    run_expect 1 hist-sync --force --retire "$gone" folder
    stderr_is "hist-sync: 'folder/$gone' still has 2 files of 'example.org/x/y': no history with this name is here"
    [[ ! -e folder/$gone/own ]]
    run_expect 0 hist-sync --force --name example.org/x/y --history clone.jsonl --retire "$gone" folder
    stdout_is $'example.org/x/y\t1 received'
    [[ ! -e folder/$gone ]]
    has_text clone.jsonl 'in the clone of a'
    has_text folder 'from a'

    # A damaged file stays, too.
    as a
    run_expect 0 hist-sync folder
    gone=$(name_of a)
    as b
    run_expect 0 hist-append -s s2 'more'
    as a
    run_expect 0 hist-append -s s1 'more of a'
    run_expect 0 hist-sync folder
    sed -i 's/more of a/MORE OF A/' folder/"$gone"/own/lines-*
    as b
    run_expect 1 hist-sync --force --retire "$gone" folder
    stderr_has "'folder/$gone' stays: 1 file with lines that are not here cannot be read"
    has_text folder 'MORE OF A'
    # So does one that no index names, and an index of a later version.
    as a
    run_expect 0 hist-sync folder
    sed 's/more of a/MORE OF A/' folder/"$gone"/own/lines-* >folder/"$gone"/own/lines-0123456789abcdef.jsonl
    as b
    run_expect 1 hist-sync --force --retire "$gone" folder
    stderr_has "'folder/$gone' stays: 1 file with lines that are not here cannot be read"
    has_text folder 'MORE OF A'
    rm folder/"$gone"/own/lines-0123456789abcdef.jsonl
    sed -i 's/^hist-sync 2/hist-sync 3/' folder/"$gone"/own/index
    find folder/"$gone" -type f -exec sha256sum {} + >before
    run_expect 1 hist-sync --force --retire "$gone" folder
    stderr_has "left out 'folder/$gone/own/index': a later version of hist-sync wrote it"
    stderr_has "'folder/$gone' stays: 1 file with lines that are not here cannot be read"
    run_expect 0 sha256sum --quiet -c before

    # Wrong usage.
    run_expect 2 hist-sync --force --retire "$(name_of b)" folder
    stderr_has "'$(name_of b)' is the name of this machine"
    run_expect 1 hist-sync --force --retire absent folder
    stderr_is "hist-sync: no machine is called 'absent' in 'folder'"
    for place in ssh://host postgresql://host/db; do
        run_expect 2 hist-sync --machines "$place"
        stderr_has "--machines and --retire are for a directory, not for '$place'"
        run_expect 2 hist-sync --force --retire x "$place"
    done
    run_expect 1 hist-sync --machines absent
    stderr_is "hist-sync: cannot open directory 'absent': No such file or directory"
}

@test "hist-sync: the directory of a former name is removed when everything in it was read" {
    as a
    run_expect 0 hist-append -s s1 SECRET
    run_expect 0 hist-sync folder
    first=$(name_of a)
    mv folder/"$first" away
    run_expect 0 hist-append -s s1 two
    run_expect 0 hist-sync folder
    stderr_has 'has vanished'
    mv away folder/"$first"
    run_expect 0 hist-delete -q --force s1
    run_expect 0 hist-sync folder
    stderr_empty
    [[ ! -e folder/$first ]]
    run_expect 1 grep -r SECRET folder
}

@test "hist-sync: is the first program in a fresh clone, and on an empty machine" {
    make_ssh
    as a
    make_repo clone
    git_remote clone https://example.org/x/y.git
    cd clone
    run_expect 0 hist-append -s s1 'in a clone'
    run_expect 0 hist-sync ../folder
    cd "$WORK"
    run_expect 0 hist-append -s s2 'outside'
    run_expect 0 hist-sync folder
    for all in '' --all; do
        rm -rf clone "$BATS_TEST_TMPDIR/b"
        as b
        make_repo clone
        git_remote clone https://example.org/x/y.git
        cd clone
        # shellcheck disable=SC2086
        run_expect 0 hist-sync $all ../folder
        stdout_has $'example.org/x/y\t1 received'
        run_expect 0 hist-search 'in a clone'
        cd "$WORK"
    done
    run_expect 0 hist-search outside

    # Directories that do not exist are made.
    as c
    run_expect 0 hist-sync --name own --history deep/er/new.jsonl folder
    stdout_is $'own\t1 received'
    mkdir "$BATS_TEST_TMPDIR/d"
    as b
    run_expect 0 hist-sync ssh://d/~/.local/share/aicoder/history.jsonl
    stdout_is $'own\t1 sent'
    cmp "$(history_of b)" "$(history_of d)"
}

# many SESSION COUNT: messages of this machine.
many() {
    jq -cn --arg s "$1" --argjson n "$2" 'range($n) | {role: "user", content: "\($s) \(.)", session_id: $s}' >new.jsonl
    run_expect 0 hist-append --json <new.jsonl
}

# lines_here SESSION: prints how many lines of the session this machine has.
lines_here() {
    jq -r --arg s "$1" 'select(.session_id == $s).id' "$HOME/.local/share/aicoder/history.jsonl" | wc -l
}

# in_folder SESSION: prints how many lines of the session are in the folder.
in_folder() {
    cat folder/*/own/lines-*.jsonl | jq -r --arg s "$1" 'select(.session_id == $s).id' | wc -l
}

@test "hist-sync: deletions of much of a history wait until they are accepted, and nothing comes back meanwhile" {
    local machine
    as a
    many big 60
    many small 15
    many kept 40
    for machine in a b c; do
        as "$machine"
        run_expect 0 hist-sync folder
    done
    as a
    run_expect 0 hist-delete --force -q big
    run_expect 0 hist-sync folder
    as b
    ask new 'from b'
    run_expect 1 hist-sync folder
    stdout_is $'own\t2 sent'
    stderr_is "hist-sync: 60 lines of 1 session of 'own' that another copy deleted wait: --accept-deletions erases them"
    [[ $(lines_here big) == 60 ]]
    # What waits is not in the folder any more; c still has it there.
    [[ $(in_folder big) == 60 ]]
    # The rest goes on, over several runs, also with a smaller deletion.
    as a
    run_expect 0 hist-sync folder
    stdout_is $'own\t2 received'
    run_expect 0 hist-delete --force -q small
    run_expect 0 hist-sync folder
    as b
    rm -rf "$HOME/.local/state/chathist/sync/"*.lines "$HOME/.local/state/chathist/sync/"*.dir
    run_expect 1 hist-sync --json folder
    json_is "$OUT" '[.deleted, .waiting, .received, .sent] | tostring' '[15,60,0,0]'
    run_expect 1 hist-sync -q folder
    stdout_empty
    stderr_has '60 lines of 1 session'
    as c
    run_expect 1 hist-sync --json --dry-run folder
    json_is "$OUT" '[.deleted, .waiting, .received] | tostring' '[0,75,2]'
    run_expect 1 hist-sync folder
    [[ $(lines_here small)-$(lines_here big) == 15-60 ]]
    [[ $(in_folder big)$(in_folder small) == 00 ]]
    # Nothing comes back on the machine that deleted it, and not on a new one.
    as a
    run_expect 0 hist-sync folder
    stdout_empty
    as d
    run_expect 0 hist-sync folder
    [[ $(lines_here big)$(lines_here small) == 00 ]]
    # One machine accepts with the option, one with its setting.
    as b
    run_expect 0 hist-sync --accept-deletions folder
    stdout_is $'own\t60 deleted'
    run_expect 0 hist-sync folder
    stdout_empty
    as c
    mkdir -p "$HOME/.config/chathist"
    echo 'accept_deletions = on' >"$HOME/.config/chathist/config"
    run_expect 0 hist-sync folder
    stdout_is $'own\t75 deleted'
    for machine in a b c d; do
        as "$machine"
        run_expect 0 hist-sync folder
        stdout_empty
        stderr_empty
    done
    equal a b c d
    grep -rlE 'content":"(big|small) ' folder "$BATS_TEST_TMPDIR"/[abcd]/.local --include='*.jsonl' --include='*idx*' --include='*lines*' >found || true
    [[ ! -s found ]] || fail "$(cat found)"
}

@test "hist-sync: deletions of the current session wait, and the others do not" {
    as a
    many one 3
    many two 3
    run_expect 0 hist-sync folder
    as b
    run_expect 0 hist-sync folder
    run_expect 0 hist-load -q one
    as a
    run_expect 0 hist-delete --force -q one two
    run_expect 0 hist-sync folder
    as b
    run_expect 1 hist-sync folder
    stdout_is $'own\t3 deleted'
    stderr_has "3 lines of 1 session of 'own'"
    [[ $(lines_here one)-$(lines_here two) == 3-0 ]]
    # It stays so when another session is current, and if the machine deletes it, too, it is gone.
    run_expect 0 hist-new -q
    run_expect 1 hist-sync folder
    run_expect 0 hist-delete --force -q one
    run_expect 0 hist-sync folder
    stderr_empty
    [[ $(lines_here one) == 0 ]]
}

@test "hist-sync: a terminal is asked before much is erased" {
    as a
    many big 30
    many kept 10
    run_expect 0 hist-sync folder
    as b
    run_expect 0 hist-sync folder
    as a
    run_expect 0 hist-delete --force -q big
    run_expect 0 hist-sync folder
    as b
    run_expect 1 "$TESTS/tools/on-tty" --wait '\[y/N\]' --type 'n\n' hist-sync folder
    stdout_has "another copy of 'own' deleted 30 lines of 1 session: erase them here, too? [y/N]"
    [[ $(lines_here big) == 30 ]]
    run_expect 0 "$TESTS/tools/on-tty" --wait '\[y/N\]' --type 'y\n' hist-sync folder
    [[ $(lines_here big) == 0 ]]
}

@test "hist-sync: over ssh deletions wait on both sides" {
    cat >ssh <<'SCRIPT'
#!/bin/bash
set -o pipefail
export HOME=$BATS_TEST_TMPDIR/$2
sh -c "$3" | tee -a "$WORK/wire"
SCRIPT
    chmod +x ssh
    export WORK
    export CHAT_SSH=$PWD/ssh
    as a
    many big 30
    many kept 10
    as b
    many other 10
    as a
    run_expect 0 hist-sync ssh://b
    run_expect 0 hist-delete --force -q big
    run_expect 1 hist-sync ssh://b
    stderr_has "30 lines of 1 session of 'own' on " "hist-sync failed on 'ssh://b'"
    # Not one of the lines travels again.
    : >wire
    run_expect 1 hist-sync ssh://b
    stdout_empty
    [[ $(wc -c <wire) -lt 200 ]]
    [[ $(lines_here big) == 0 ]]
    as b
    [[ $(lines_here big) == 30 ]]
    run_expect 0 hist-sync --accept-deletions ssh://a
    stdout_is $'own\t30 deleted'
    equal a b
}

# planted MACHINE TEXT [BYTES]: another machine with an index, and a segment of its own with this text.
planted() {
    mkdir -p "folder/$1/own"
    printf 'hist-sync 2 own 0123456789abcdef\nlines-%s.jsonl %s\n' "${4-0123456789abcdef}" "${3-${#2}}" >"folder/$1/own/index"
    printf '%s' "$2" >"folder/$1/own/lines-${4-0123456789abcdef}.jsonl"
}

@test "hist-sync: what a folder may hold is bounded, and the other machines are synchronised" {
    local n
    as good
    ask s1 one
    run_expect 0 hist-sync folder
    planted evil x
    truncate -s 100G folder/evil/own/index
    as b
    # The address sanitizer reserves more than the limit.
    ([[ $VARIANT == asan ]] || ulimit -v 1000000; run_expect 1 hist-sync folder)
    cp "$OUT" out
    cp "$ERR" err
    is stdout out $'own\t2 received'
    is stderr err "hist-sync: left out 'folder/evil/own/index': it is larger than 64 MiB"
    # Holes, in an index and in a segment.
    planted evil x
    truncate -s 60M folder/evil/own/index
    run_expect 1 hist-sync folder
    stderr_is "hist-sync: left out 'folder/evil/own/index': it has holes"
    planted evil x $((1 << 40))
    truncate -s $((1 << 40)) folder/evil/own/lines-0123456789abcdef.jsonl
    run_expect 1 hist-sync folder
    stderr_is "hist-sync: 'folder/evil/own/lines-0123456789abcdef.jsonl' has holes, which none of these programs makes: 'cp --sparse=never' makes a copy without them"
    # More lines than a segment has, and negative sizes.
    planted evil "$(yes '{}' | head -n 70000)"
    run_expect 1 hist-sync folder
    stderr_has "left out 'folder/evil/own/lines-0123456789abcdef.jsonl': it is damaged"
    planted evil x -1
    run_expect 1 hist-sync folder
    stderr_is "hist-sync: left out 'folder/evil/own/index': it is damaged"
    # 210 machines and b; this one is never left out.
    rm -r folder/evil
    for n in {1..210}; do planted "evil-$n" '' 1; done
    as good
    ask s1 two
    run_expect 1 hist-sync -q folder
    stderr_is "hist-sync: left out 11 of the machines in 'folder': more than 200"
    rm -r folder/evil*
    as b
    run_expect 0 hist-sync folder
    equal good b
}
