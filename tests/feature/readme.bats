#!/usr/bin/env bats
#
# README.md and docs/: the tour is run and compared, and the options, settings, goals and files that they name exist.

# shellcheck disable=SC2016

load ../helper

README=$ROOT/README.md TOUR=$ROOT/docs/tour.md CONFIGURATION=$ROOT/docs/configuration.md

# block LANGUAGE FILE: the lines of the first fenced block of that language.
block() {
    awk -v open="\`\`\`$1" '$0 == "```" && inside { exit } inside; $0 == open { inside = 1 }' "$2"
}

@test "tour: the commands print what it shows" {
    run_expect 0 "$TESTS/tools/tour" "$TOUR"
    stdout_empty
    stderr_empty
    # It ran in a repository of its own and left no more than that and an empty state.
    run_expect 0 ls -A project
    stdout_is .aicoder .git a.c error name.json
}

@test "tour: output is compared" {
    printf '%s\n' 'text' '```console' '$ export CHAT_PROVIDER=echo CHAT_HISTORY=$PWD/h.jsonl' '$ chat one' one '[1 message]' \
        '$ hist-sessions' $'sess_1719500000000_a1b2c3\t2024-06-27T15:00:00.000000+00:00\t2\tone' \
        '$ hist-show --limit 1 a1b2c3' '[assistant] 2024-06-27 15:00:00' one '[1 message]' '' \
        '$ false; true' '$ false' '$ echo $?' 1 '$ cat <<X' '> two' '> X' two '```' '```sh' '$ exit 9' '```' >doc.md
    cp doc.md good.md
    run_expect 0 "$TESTS/tools/tour" good.md
    stdout_empty
    rm h.jsonl*
    sed 's/2.one$/3\tone/' good.md >doc.md
    run_expect 1 "$TESTS/tools/tour" doc.md
    stdout_matches '^-<id 0>	<time>	3	one$' '^\+<id 0>	<time>	2	one$'
    echo nothing >doc.md
    run_expect 2 "$TESTS/tools/tour" doc.md
    stderr_is 'tour: there is nothing to run'
}

@test "configuration: the file that it shows is accepted" {
    mkdir -p "$HOME/.config/chathist"
    block ini "$CONFIGURATION" >"$HOME/.config/chathist/config"
    grep -q '^model = ' "$HOME/.config/chathist/config"
    run_expect 0 chat --dry-run hello
    stdout_json .model llama3.2
    stderr_empty
}

# named REGEX FILE...: writes the matches in these files, once each, to the file `named`.
named() {
    grep -ohE -e "$1" "${@:2}" | sort -u >named
    [[ -s named ]] || fail "nothing in ${*:2} matches $1"
}

@test "configuration: every setting of its table is one of chat" {
    local flag variable key count=0
    chat --help >help
    while IFS='|' read -r _ flag variable key _; do
        flag=$(tr -d ' `' <<<"$flag") variable=$(tr -d ' `' <<<"$variable") key=$(tr -d ' `' <<<"$key")
        grep -qF "\"$variable\"" "$ROOT/lib/cli/config.c" || fail "no variable $variable"
        [[ -z $key ]] || grep -qF "\"$key\"" "$ROOT/lib/cli/config.c" || fail "no key $key"
        [[ -z $flag ]] || grep -qE -- "(^| )${flag}[ ,=]" help || fail "no flag $flag"
        count=$((count + 1))
    done < <(grep '^| .*`CHAT_[A-Z_]*`' "$CONFIGURATION")
    [[ $count -eq $(grep -c '"CHAT_' "$ROOT/lib/cli/config.c") ]]
}

@test "documents: every program, option and variable that they name exists" {
    local name
    named '\bhist-[a-z]+' "$README" "$TOUR" "$CONFIGURATION"
    while read -r name; do
        [[ -x $BIN/$name ]] || fail "no program $name"
    done <named
    for name in "$BIN"/chat "$BIN"/hist-*; do "$name" --help; done >help
    # Some are options of git, journalctl, aichat and claude.
    named '(^|[ `(])--[a-z][a-z-]*' "$README" "$TOUR" "$CONFIGURATION"
    tr -d ' `(' <named | grep -vx -e --cached -e --git -e --info -e --save-session -e --scope >options
    while read -r name; do
        grep -qE -- "$name( |=|\$)" help || fail "no option $name"
    done <options
    named '\b(CHAT|OPENAI|ANTHROPIC|OLLAMA)_[A-Z_]+' "$README" "$TOUR" "$CONFIGURATION"
    while read -r name; do
        grep -rqF "\"$name\"" "$ROOT/lib" || fail "no variable $name"
    done <named
}

@test "readme: every goal of make that it names exists" {
    local goal
    # A variable may stand before the goals: `make prefix="$HOME/.local" install`.
    named '(^|sudo |`)make( [A-Za-z]+="[^"]*")?( [a-z-]+)+' "$README" "$ROOT/CONTRIBUTING.md"
    sed -E 's/.*make//; s/ [A-Za-z]+="[^"]*"//; s/ -j[0-9]*//' named | tr ' ' '\n' | grep . | sort -u >goals
    [[ $(wc -l <goals) -ge 6 ]]
    while read -r goal; do
        grep -qE "^$goal:" "$ROOT/Makefile" || fail "no goal $goal"
    done <goals
}

@test "documents: every file that they link to exists" {
    local page name
    for page in "$ROOT"/*.md "$ROOT"/docs/*.md; do
        while read -r name; do
            [[ -e ${page%/*}/$name ]] || fail "${page##*/}: no $name"
        done < <(grep -oE '\]\([^)#:]+(#[a-z-]+)?\)' "$page" | sed -E 's/^..//; s/(#.*)?\)$//')
    done
    named '\(`[a-z/.-]+`\)' <(awk '/^`examples.` has/ { on = 1 } /^$/ { on = 0 } on' "$TOUR")
    while read -r name; do
        [[ -e $ROOT/examples/$name ]] || fail "tour.md: no examples/$name"
    done < <(tr -d '()`' <named)
}

@test "readme: the histories are where it says, and its first search has something to show" {
    local place
    # shellcheck disable=SC2088 # as README has it
    for place in '.git/aicoder/history.jsonl' '~/.local/share/aicoder/history.jsonl'; do
        grep -qF "\`$place\`" "$README" || fail "README no longer names $place"
    done
    use_echo
    git init -q repository
    (cd repository && chat 'one question') >answer
    chat 'another question' >>answer
    [[ $(jq -r .role repository/.git/aicoder/history.jsonl) == $'user\nassistant' ]]
    [[ $(jq -r .role "$HOME/.local/share/aicoder/history.jsonl") == $'user\nassistant' ]]
    run_expect 0 hist-sessions --all
    lines_are 2
    run_expect 0 hist-search --all -c question
    stdout_is 4
    cd repository || return 1
    # As Start has it, but for the screen: also where no other program is installed.
    [[ $(block sh <(sed -n '/^The last two commands find/,$p' "$README")) == 'hist-import --scan && hist-browse' ]]
    run_expect 0 hist-import --scan
    stdout_is 0
    mkdir -p "$HOME/.claude"
    cp -r "$FIXTURES/import/claude-code/projects" "$HOME/.claude"
    # The last lines of the file are damaged.
    sed -i "s|/home/ada/shop|$PWD|g; 11,\$d" "$HOME"/.claude/projects/*/*.jsonl
    run_expect 0 hist-import --scan
    [[ $(<"$OUT") -gt 0 ]] || fail 'a scan finds nothing'
    run_expect 0 hist-search 'Why does the test fail'
}
