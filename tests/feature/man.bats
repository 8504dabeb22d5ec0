#!/usr/bin/env bats
#
# The manual: every page against the programs and sources that it describes, and its examples run.

# shellcheck disable=SC2016

load ../helper

MAN=$ROOT/man

programs() {
    find "$ROOT/cmd" -name '*.c' -exec basename {} .c \; | sort
}

table() {
    run_expect 0 "$1" --completion-table
    stderr_empty
}

# lines_same WHAT WANTED GOT: two files; the difference is what fails.
lines_same() {
    if ! diff "$2" "$3" >"$BATS_TEST_TMPDIR/difference"; then
        fail "$1: < wanted, > found:" "$(cat "$BATS_TEST_TMPDIR/difference")"
    fi
}

# The entries of an option in the page, as they follow from a table on standard input.
entries() {
    awk -F '\t' '$2 != "" {
        printf ".It Fl "
        if ($1 != "") printf "%s , Fl ", substr($1, 2)
        printf "%s", substr($2, 2)
        if ($4 != "") printf " Ns = Ns Ar %s", $3 == "word" ? "NAME" : $4
        print ""
    }'
}

# section PAGE NAME: its lines.
section() {
    awk -v name=".Sh $2" '/^\.Sh / { on = $0 == name; next } on' "$1"
}

@test "man: every program has a page, and every page of section 1 a program" {
    programs >wanted
    [[ -s $MAN/chathist.7 ]]
    find "$MAN" -name '*.1' -exec basename {} .1 \; | sort >got
    lines_same pages wanted got
    [[ -s $MAN/chathist.5 ]]
    for page in "$MAN"/*; do
        name=$(basename "$page")
        grep -qix "\.Dt ${name%.*} ${name##*.}" "$page" || fail "$page: .Dt"
        grep -qx "\.Nm ${name%.*}" "$page" || fail "$page: .Nm"
    done
}

@test "man: mandoc has nothing to say about the pages" {
    need mandoc
    for page in "$MAN"/*; do
        mandoc -T lint -W style "$page" >found 2>errors || :
        # Whether other pages are installed here says nothing about ours; those of ours are looked for below.
        grep -v 'referenced manual not found' found >left || :
        [[ ! -s left ]] || fail "$page" "$(cat left)"
    done
}

# rendered PAGE WIDTH: by each program that is here.
rendered() {
    if command -v mandoc >/dev/null; then mandoc -T ascii -O "width=$2" "$1" | col -bx; fi
    if command -v groff >/dev/null; then groff -mdoc -Tascii -P-c -rLL="$2n" "$1" 2>/dev/null | col -bx; fi
}

@test "man: the pages can be read in 60 columns" {
    command -v mandoc >/dev/null || command -v groff >/dev/null || skip 'mandoc and groff are missing'
    for page in "$MAN"/*; do
        rendered "$page" 60 >text
        [[ -s text ]] || fail "$page: no text"
        # The last column of a table would begin far to the right. Commands may be longer than the screen.
        ! grep -nE '^ {40}' text >wrong || fail "$page" "$(cat wrong)"
    done
}

@test "man: every quotation is closed, and is no list" {
    command -v mandoc >/dev/null || skip 'mandoc is missing'
    for page in "$MAN"/*; do
        mandoc -T utf8 -O width=80 "$page" | col -bx | tr '\n' ' ' >text
        # shellcheck disable=SC1112
        ! grep -oE '‘[^’‘]*‘' text >wrong || fail "$page" "$(cat wrong)"
        # Each item of a list has its own.
        # shellcheck disable=SC1112
        ! grep -oE '‘[^’]*, [^’]*’|‘[^’]*[.,:] [_:/+~@] [^’]*’' text >wrong || fail "$page: one quotation of a list:" "$(cat wrong)"
    done
}

@test "man: references lead to pages, sections come in their order" {
    cat >order <<'END'
.Sh NAME
.Sh SYNOPSIS
.Sh DESCRIPTION
.Sh ENVIRONMENT
.Sh FILES
.Sh EXIT STATUS
.Sh EXAMPLES
.Sh SEE ALSO
.Sh STANDARDS
END
    for page in "$MAN"/*; do
        grep -h '^\.Sh' "$page" >got
        grep -xFf got order >wanted
        lines_same "$page" wanted got
        for need in NAME DESCRIPTION EXAMPLES 'SEE ALSO'; do
            grep -qx "\.Sh $need" got || fail "$page: no $need"
        done
        while read -r name number; do
            case $name in
            chat | chathist | hist-*) [[ -e $MAN/$name.$number ]] || fail "$page: $name($number) is no page" ;;
            esac
        done < <(sed -n 's/^\.Xr \([^ ]*\) \([0-9]\).*/\1 \2/p' "$page")
    done
    for page in "$MAN"/*.1; do
        for need in SYNOPSIS ENVIRONMENT 'EXIT STATUS'; do
            grep -qx "\.Sh $need" "$page" || fail "$page: no $need"
        done
    done
}

@test "man: a page documents the options of its program, all of them and no others, in their order" {
    for program in $(programs); do
        table "$program"
        entries <"$OUT" >wanted
        grep -E '^\.It Fl (. , Fl )?-' "$MAN/$program.1" >got || :
        lines_same "$program.1" wanted got
    done
}

@test "man: the synopsis names every option" {
    for program in $(programs); do
        table "$program"
        awk -F '\t' '$2 != "" && $1 != "-h" && $1 != "-V" { print $1 != "" ? $1 : $2 }' "$OUT" | sort >wanted
        section "$MAN/$program.1" SYNOPSIS | grep -o 'Fl [^ ]*' | sed 's/^Fl /-/' | sort -u >got
        lines_same "$program.1" wanted got
    done
}

@test "man: an option that is mentioned anywhere exists" {
    for program in $(programs); do
        table "$program"
        awk -F '\t' '$2 != "" { print $1; print $2 }' "$OUT" >"own.$program"
        cat "own.$program" >>all
    done
    for page in "$MAN"/*; do
        own=own.$(basename "$page" .1)
        [[ -e $own ]] || own=all
        while read -r option; do
            [[ $option == -- ]] || grep -qxF -e "$option" "$own" || fail "$page: $option is no option"
        done < <(grep '^\.' "$page" | grep -o '\<Fl [^ ]*' | sed 's/^Fl /-/')
        while read -r option; do
            grep -qxF -e "$option" all || fail "$page: $option is no option"
        done < <(grep -v '^\.\\"' "$page" | grep -oE '(^|[ (])--[a-z][a-z-]+' | tr -d ' (')
    done
}

@test "man: --help lists the same options" {
    for program in $(programs); do
        table "$program"
        awk -F '\t' '$2 != "" { print $1 "\t" $2 ($4 == "" ? "" : "=" ($3 == "word" ? "NAME" : $4)) "\t" $5 }' "$OUT" >wanted
        run_expect 0 "$program" --help
        stderr_empty
        stdout_has "usage: $program " "The manual is $program(1)" "'chathist' lists all programs"
        # The text of a long one is on the line below.
        sed -E '/^  .*--[^ ]+$/ { N; s/\n +/  /; }' "$OUT" |
            sed -nE 's/^  (-.|  )(, |  )(--[^ ]+) +(.*)$/\1\t\3\t\4/p' | sed 's/^ *//' >got
        lines_same "$program --help" wanted got
    done
}

@test "man: an option may be repeated in the page if its help says so" {
    for program in $(programs); do
        table "$program"
        awk -F '\t' '/may be repeated/ { print $2 }' "$OUT" | sort >wanted
        awk '/^\.It Fl/ { name = $0; sub(/.*Fl -/, "--", name); sub(/ .*/, "", name) } /^\.(Ss|Sh|El)/ { name = "" }
            name && /[Mm]ay be repeated/ { print name }' "$MAN/$program.1" | sort -u >got
        lines_same "$program.1" wanted got
    done
}

@test "man: chathist.7 names the programs in which a common option does something else" {
    awk '/^\.Ss Options that all/ { on = 1; next } /^\.Ss/ { on = 0 } on' "$MAN/chathist.7" >paragraph
    for program in $(programs); do
        run_expect 0 "$program" --completion-table
        while IFS=$'\t' read -r option help; do
            [[ $option != --json || $program == @(hist-append|hist-browse) ]] || continue
            grep -qx "\.Xr $program 1\( .\)\?" paragraph || fail "chathist.7: $option of $program: $help"
        done < <(cut -f 2,5 "$OUT" | grep -E '^--(history|json|quiet|color|help|version)\b' | grep -vxF \
            -e $'--history\tuse this history file' -e $'--json\tprint the stored lines' -e $'--quiet\tleave out notices and hints' \
            -e $'--color\tcolour: auto, always or never' -e $'--help\tprint this help' -e $'--version\tprint the version')
    done
}

@test "man: chat.1 has the commands of a conversation, with their arguments" {
    sed -nE 's,^        \{"([a-z]+)"\, "([^"]*)"\,.*,/\1 \2,p' "$ROOT/lib/repl/commands.c" | sed 's/ $//' | sort >wanted
    [[ $(wc -l <wanted) -gt 15 ]]
    # The macros, as they are read on the screen: Op encloses the rest of a line.
    sed -n 's,^\.It Cm /,/,p' "$MAN/chat.1" | sed -E -e 's/\\-/-/g; s/ (Ar|Cm) / /g; s/ Oo / [/; s/ Oc /] /' \
        -e 's/ \| /|/g; s, \, /,\n/,' -e ':op' -e 's/ Op (Ar )?(.*)$/ [\2]/; t op' | sed -E 's/ (Ar|Cm) / /g; s/\[ ?(Ar|Cm) /[/g' | sort >got
    lines_same 'the commands' wanted got
}

@test "man: chathist.5 has every environment variable that the programs read" {
    {
        grep -ohE '"CHAT_[A-Z_]+"' "$ROOT"/lib/*/*.c "$ROOT"/cmd/*.c
        grep -ohE '(config_env|getenv|xdg_dir)\([^"()]*"[A-Z_]+"' "$ROOT"/lib/*/*.c
        grep -ohE '_variable = "[A-Z_]+"' "$ROOT"/lib/*/*.c
        grep -ohE '\{[A-Z_]+:' "$ROOT"/importers/*.lua | tr '{:' '""'
    } | grep -oE '"[^"]*"' | tr -d '"' | sort -u >wanted
    grep -q '^CHAT_MODEL$' wanted
    grep -q '^XDG_STATE_HOME$' wanted
    section "$MAN/chathist.5" ENVIRONMENT | sed -n 's/^\.It Ev //p' | tr -s ' ,' '\n' |
        grep -v _proxy | sort -u >got
    lines_same chathist.5 wanted got
    # And no page knows another one.
    for page in "$MAN"/*.1; do
        while read -r name; do
            case $name in TZ | *_proxy) continue ;; esac
            grep -qx "$name" wanted || fail "$page: nothing reads $name"
        done < <(grep -oE '\<Ev [A-Za-z_]+( , [A-Za-z_]+)*' "$page" | sed 's/^Ev //' | tr -s ' ,' '\n')
    done
}

@test "man: chathist.5 has every key of the configuration" {
    grep -oE '\{"[a-z_.]+", ("CHAT_|NULL)' "$ROOT/lib/cli/config.c" | grep -oE '[a-z_.]{3,}' | sort >wanted
    grep -q '^max_bytes$' wanted
    awk '/^\.Ss/ { on = /User configuration/ } on' "$MAN/chathist.5" | sed -n 's/^\.It Cm //p' | sort >got
    lines_same chathist.5 wanted got
    section "$MAN/chat.1" FILES | sed -n 's/^\.Cm \([a-z_.]*\).*/\1/p' | sort >got
    lines_same chat.1 wanted got
}

@test "man: chathist.5 has every field of a line, in the order in which they are written" {
    sed -nE 's/^    \[FIELD_.*ENTRY\("([a-z_]+)".*/\1/p' "$ROOT/lib/history/message.c" >wanted
    grep -q '^finish_reason$' wanted
    sed -n 's/^\.It Va \([a-z_]*\) Pq .*/\1/p' "$MAN/chathist.5" >got
    lines_same chathist.5 wanted got
}

@test "man: chat.1 has the providers, the events and the exit codes" {
    run_expect 2 chat -p none-such hello
    sed 's/.*known are //; s/, /\n/g' "$ERR" | sort >wanted
    awk '/^\.Ss/ { on = /Providers/ } on' "$MAN/chat.1" | sed -n 's/^\.It Cm //p' | sort >got
    lines_same providers wanted got

    grep -ohE '(begin_event\(&b|add_event\(ev), "[a-z_]+"' "$ROOT/lib/chat/events.c" | grep -oE '[a-z_]{3,}"' | tr -d '"' | sort -u >wanted
    awk '/^\.S[sh]/ { on = /Events/ } on' "$MAN/chat.1" | sed -nE 's/^\.It Cm ([a-z_]+)$/\1/p' | sort >got
    lines_same events wanted got

    sed -n '/^static int code_of_many/,/^}/p' "$ROOT/lib/cli/diagnostics.c" | sed -n 's/^ *return \([0-9]*\);/\1/p' |
        sort -nu >wanted
    section "$MAN/chat.1" 'EXIT STATUS' | sed -nE 's/^\.It ([0-9]+)$/\1/p' >got
    lines_same 'exit codes' wanted got
}

# Something for every example to find.
make_examples_work() {
    use_echo
    git init -q .
    echo 'all: ; @echo made' >Makefile
    printf 'int parse(void);\n' | tee parse.c >parse.h
    printf 'one\ntwo\n' >words
    echo 'an end of a connection' >answer.txt
    echo 'tea 2.50' >receipt.txt
    echo '{"type":"object"}' >item.json
    mkdir -m 700 bin .git/aicoder
    printf '#!/bin/sh\nhead -n 1\n' >bin/fzf
    printf '#!/bin/sh\ncat\n' >bin/less
    printf '#!/bin/sh\nprintf "{\\042name\\042:\\042disk_space\\042}"\n' >disk_space
    printf '#!/bin/sh\nexec "%s/tools/fake-mcp" --many 1\n' "$TESTS" >bin/npx
    # The real one, on a terminal where Ctrl-O is pressed.
    printf '#!/bin/sh\nexec 3>&1\n"%s/tools/on-tty" --fds 2 --wait "Esc (close|back)" --type "\\x0f" sh -c '\''exec "$0" "$@" >&3'\'' "%s/hist-browse" "$@" >/dev/null\n' \
        "$TESTS" "$BIN" >bin/hist-browse
    chmod +x bin/* disk_space
    export PATH=$PWD/bin:$PATH
    {
        hist_line older user 'an older question'
        hist_line sess_1719500000000_f0e1d2 user 'which regex matches a connection reset?'
        hist_line sess_1719500000000_f0e1d2 assistant 'any regex' '' '{"model":"gpt-4o"}'
        hist_line older assistant '' '' '{"tool_calls":[{"id":"c","name":"run","args":{"command":"git rebase main"}}]}'
    } >.git/aicoder/history.jsonl
    hist-load -q f0e1d2 >/dev/null 2>&1
    cp .git/aicoder/history.jsonl history.jsonl
}

# A renderer that is missing compares nothing; without any, the examples are run as they were written.
@test "man: what is displayed can be copied from 80 columns as it was written, and the examples work" {
    count=0
    for page in "$MAN"/*; do
        mkdir "$WORK/$(basename "$page")"
        cd "$WORK/$(basename "$page")"
        make_examples_work
        run_expect 0 "$TESTS/tools/man-examples" "$page" .
        stdout_empty
        for example in example.*; do
            count=$((count + 1))
            if grep -q '^# ~/.config/chathist/config' "$example"; then
                mkdir -p "$HOME/.config/chathist"
                cp "$example" "$HOME/.config/chathist/config"
                run_expect 0 hist-sessions
                stderr_empty
                rm "$HOME/.config/chathist/config"
                continue
            fi
            run_expect 0 bash -n "$example"
            # Nothing answers there.
            ! grep -q 'example\.org' "$example" || continue
            run_expect 0 bash -euo pipefail "$example"
            [[ -s $OUT ]] || grep -qE '^export CHAT_HISTORY|^hist-sync -q' "$example" ||
                fail "$page: prints nothing:" "$(cat "$example")"
        done
    done
    [[ $count -ge 35 ]] || fail "only $count examples were found"
}
