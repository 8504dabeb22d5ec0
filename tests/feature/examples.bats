#!/usr/bin/env bats
#
# The scripts of examples/, run as their users would, against the echo model and the scripted server.

# shellcheck disable=SC2016

load ../helper
load ../history

EXAMPLES=$ROOT/examples

# bin_with COMMAND...: a directory $SOME with these alone, for scripts that look what is there.
bin_with() {
    local name
    SOME=$BATS_TEST_TMPDIR/some
    mkdir -p "$SOME"
    for name; do ln -s "$(type -P "$name")" "$SOME/$name"; done
}

# steady: stdout with the ids of sessions and messages and the times made the same.
steady() {
    sed -E -i -e 's/sess_[0-9]{13}_[0-9a-f]{6}/SESSION/g; s/[0-9]{13}-[0-9a-f]{8}/MESSAGE/g' \
        -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8}(\.[0-9]{6}\+00:00)?/TIME/g' "$OUT"
}

# ---- demo.sh

# Nothing is to be left behind in HOME, TMPDIR and the working directory.
remember_home() {
    touch "$WORK/mine"
    (cd "$BATS_TEST_TMPDIR" && find home tmp work | sort >before)
}

home_unchanged() {
    (cd "$BATS_TEST_TMPDIR" && find home tmp work | sort >after)
    same 'files left' "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after"
}

@test "demo: recorded conversations are found again and continued" {
    remember_home
    run_expect 0 "$EXAMPLES/demo.sh"
    stderr_empty
    stdout_line 1 'demo: no model is asked: these conversations were recorded, and hist-import reads them'
    [[ $(grep -c '^sess_1764.*git bisect' "$OUT") -eq 1 ]]
    stdout_has $'user\tWhy does the connection pool hang under load?' 'pthread_cond_signal(&p->changed);' \
        "\$ hist-search 'connection pool'" 'How do I test that?' '[5 messages]' 'your own history was not touched'
    home_unchanged
}

@test "demo: no model is asked, whatever is set, configured or listening" {
    start_llm --models small,large --reply Hello.
    local url=$OPENAI_BASE_URL
    put_tool list_dir 'echo >>"$HOME/tool-ran"'
    install -D -m 700 list_dir "$HOME/.config/chathist/tools/list_dir"
    remember_home
    demo_asks_nobody env
    demo_asks_nobody env CHAT_BASE_URL="$url" CHAT_API_KEY=k
    demo_asks_nobody env CHAT_PROVIDER=openai CHAT_MODEL=openai:gpt-4o CHAT_MAX_MESSAGES=1 CHAT_SESSION=mine
    demo_asks_nobody env -u OPENAI_BASE_URL -u OPENAI_API_KEY -u CHAT_MODEL OLLAMA_HOST="127.0.0.1:$LLM_PORT"
    demo_asks_nobody env CHAT_PROVIDER=none
    configure "base_url = $url" 'model = openai:small' 'provider = openai' 'tools = list_dir' 'allow_tools = all' \
        'mcp = files' "mcp.files = touch $HOME/mcp-ran"
    remember_home
    demo_asks_nobody env -u OPENAI_BASE_URL -u OPENAI_API_KEY -u CHAT_MODEL
}

demo_asks_nobody() {
    run_expect 0 "$@" "$EXAMPLES/demo.sh"
    stdout_has '[5 messages]' 'your own history was not touched'
    stderr_empty
    run_expect 0 find "$RECORD" -name '*.headers'
    stdout_empty
    home_unchanged
}

@test "demo: on a terminal the history is browsed" {
    run_expect 0 on_tty --wait 'Ctrl-C closes' --type '\r' --wait 'F1 help' --type '\x03' --wait 'not touched' "$EXAMPLES/demo.sh"
}

@test "demo: a step that fails ends it, with its status, and leaves nothing" {
    mkdir bin
    printf '#!/bin/sh\nexit 5\n' >bin/hist-search
    chmod +x bin/hist-search
    remember_home
    PATH=$PWD/bin:$PATH run_expect 5 "$EXAMPLES/demo.sh"
    stdout_has '$ hist-sessions'
    stdout_lacks hist-show
    stderr_is "demo: 'hist-search 'connection pool'' ended with status 5"
    home_unchanged
}

# ---- basic.sh, streaming.sh

@test "basic: one question, one answer, a session of its own" {
    start_llm --echo-context
    run_expect 0 "$EXAMPLES/basic.sh" what is a pipe
    stdout_is 'user:what is a pipe'
    run_expect 0 "$EXAMPLES/basic.sh"
    stdout_is 'user:In one sentence: what is a pipe in Unix?'
    run_expect 0 "$EXAMPLES/basic.sh" -n
    stdout_is 'user:-n'
    stderr_empty
    [[ $(jq -r .session_id "$HISTORY" | sort -u | wc -l) -eq 3 ]]
}

@test "basic: chat's status is its own, with a word about it" {
    start_llm openai/http-401 openai/http-429-no-retry openai/cut openai/http-400
    run_expect 3 "$EXAMPLES/basic.sh" hello
    stderr_has 'basic.sh: is the key right?'
    run_expect 5 "$EXAMPLES/basic.sh" hello
    stderr_has 'basic.sh: the server cannot be reached or is busy'
    run_expect 7 "$EXAMPLES/basic.sh" hello
    stdout_is 'Hello, world.'
    stderr_has 'basic.sh: the answer is incomplete'
    run_expect 1 "$EXAMPLES/basic.sh" hello
    stderr_lacks basic.sh
    unset OPENAI_BASE_URL OPENAI_API_KEY CHAT_MODEL
    use_nothing
    run_expect 2 "$EXAMPLES/basic.sh" hello
    use_echo
    CHAT_HISTORY=/proc/absent/history.jsonl run_expect 8 "$EXAMPLES/basic.sh" hello
    stdout_is hello '[1 message]'
    stderr_has 'basic.sh: the answer is complete, but it is not in the history'
}

@test "streaming: the events of an answer, as they come" {
    start_llm --set 'chunk: 5' openai/usage-last-chunk
    run_expect 0 "$EXAMPLES/streaming.sh" hello
    local id answer
    id=$(jq -r .session_id "$HISTORY" | head -n 1)
    answer=$(jq -r 'select(.role == "assistant").content' "$HISTORY")
    stdout_is "[session $id]" "$answer" \
        "[stop; $(jq -r 'select(.usage).usage | "\(.input_tokens) tokens in, \(.output_tokens) out"' "$HISTORY")]"
    stderr_empty
    start_llm --set 'gate: 3 go' --reply 'one two three four'
    rm "$HISTORY"
    background "$EXAMPLES/streaming.sh"
    wait_for grep -q one "$OUT.bg"
    [[ ! -e $RECORD/1.end ]]
    : >go
    finish 0
    stdout_has 'one two three four' '[stop; '
    request_messages_are 1 'user:Count from one to ten in words.'
}

@test "streaming: an error comes out as chat's status" {
    start_llm openai/http-429-no-retry openai/cut
    run_expect 5 "$EXAMPLES/streaming.sh" hello
    stderr_matches '^chat: HTTP 429'
    run_expect 7 "$EXAMPLES/streaming.sh" hello
    stdout_has 'Hello, world.'
}

# ---- conversation.sh

@test "conversation: turns, isolation, restart under the same id, and a later run goes on" {
    start_llm --reply 'Hello Ada.' --reply 36. --reply 'None, Bob.' --reply Ada. --reply No. --reply Bob. \
        --reply 'That you are Bob.'
    run_expect 0 "$EXAMPLES/conversation.sh"
    stderr_empty
    local ids ada bob
    mapfile -t ids < <(jq -r .session_id "$HISTORY" | awk '!seen[$0]++')
    ada=${ids[0]} bob=${ids[1]}
    [[ ${#ids[@]} -eq 2 && $ada =~ ^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$ ]]
    sed -i -e "s/$ada/ADA/g; s/$bob/BOB/g; s/^${ada%%-*}>/ada>/; s/^${bob%%-*}>/bob>/" "$OUT"
    steady
    stdout_is '== several turns' \
        '' 'ada> My name is Ada. Remember the number 36.' 'Hello Ada.' \
        '' 'ada> Which number did I give you?' 36. \
        '' '== isolation: another id knows nothing of it' \
        '' 'bob> My name is Bob. Which number did I give you?' 'None, Bob.' \
        '' 'ada> What is my name?' Ada. \
        '' '== restart: the same id, an empty context' ADA \
        '' 'ada> Do you know my name?' No. \
        '' 'bob> And mine?' Bob. \
        '' '== what was said before the restart is no longer sent, but still found' \
        $'ADA\tMESSAGE\tTIME\tuser\tMy name is Ada. Remember the number 36.' \
        '' 'go on at any time with:' "  $EXAMPLES/conversation.sh ADA" "  $EXAMPLES/conversation.sh BOB"
    request_messages_are 2 'user:My name is Ada. Remember the number 36.' 'assistant:Hello Ada.' \
        'user:Which number did I give you?'
    request_messages_are 3 'user:My name is Bob. Which number did I give you?'
    json_is "$RECORD/4.json" '.messages | length' 5
    request_messages_are 5 'user:Do you know my name?'
    request_messages_are 6 'user:My name is Bob. Which number did I give you?' 'assistant:None, Bob.' 'user:And mine?'
    run_expect 0 "$EXAMPLES/conversation.sh" "$bob"
    stdout_is '' "${bob%%-*}> What was my first message to you?" 'That you are Bob.'
    json_is "$RECORD/7.json" '.messages[0].content, (.messages | length)' \
        'My name is Bob. Which number did I give you?' 5
}

@test "conversation: ends at the first turn that fails" {
    start_llm --reply Hello. openai/http-429-no-retry
    run_expect 5 "$EXAMPLES/conversation.sh"
    stdout_lacks isolation
}

# ---- pinned-session.sh

@test "pinned session: a script's turns stay together and apart from everything else" {
    start_llm --echo-context
    run_expect 0 chat 'mine before'
    echo 'int a;' >a.c
    echo 'int b;' >b.c
    # What another terminal says in between does not come into it.
    start_llm --hook "chat -p echo 'mine meanwhile' >/dev/null" --reply one --reply two --reply three
    run_expect 0 "$EXAMPLES/pinned-session.sh" a.c b.c
    stderr_empty
    steady
    stdout_is '== a.c' one '== b.c' two '== all of them' three '' 'the whole conversation: hist-show SESSION'
    json_is "$RECORD/3.json" '.messages[] | .content | split("\n")[0]' 'Summarise this file in one sentence.' one \
        'Summarise this file in one sentence.' two 'What do these files have in common? One sentence.'
    json_is "$HISTORY" 'select(.files).files[]' a.c b.c
    run_expect 0 hist-show current
    stdout_has 'mine before' 'mine meanwhile'
    stdout_lacks Summarise
    run_expect 2 "$EXAMPLES/pinned-session.sh"
    stderr_is 'usage: pinned-session.sh FILE...'
    run_expect 2 "$EXAMPLES/pinned-session.sh" absent.c
    stderr_matches "^chat: .*'absent.c'"
}

# ---- fzf.sh

# three sessions, the last used is "codecs"
three_sessions() {
    local topic
    use_echo
    for topic in parsers lexers codecs; do chat -s "$topic" "about $topic" >/dev/null; done
}

@test "fzf: what is picked becomes current" {
    three_sessions
    mkdir bin
    printf '#!/bin/sh\nprintf "%%s\\n" "$@" >"$HOME/arguments"\ncat >"$HOME/offered"\nsed -n 2p "$HOME/offered"\n' >bin/fzf
    chmod +x bin/fzf
    PATH=$PWD/bin:$PATH run_expect 0 "$EXAMPLES/fzf.sh"
    stdout_has 'about lexers'
    [[ $(head -n 1 "$HISTORY.session") == lexers ]]
    run_expect 0 cut -f 1 "$HOME/offered"
    stdout_is codecs lexers parsers
    run_expect 0 cat "$HOME/arguments"
    stdout_is '--delimiter=\t' --with-nth=2,4 '--preview=hist-show -- {1}'
    printf '#!/bin/sh\ncat >/dev/null\nexit 130\n' >bin/fzf
    PATH=$PWD/bin:$PATH run_expect 130 "$EXAMPLES/fzf.sh"
    [[ $(head -n 1 "$HISTORY.session") == lexers ]]
}

@test "fzf: without it a numbered menu, without a terminal the last used session" {
    three_sessions
    bin_with chat hist-sessions hist-search hist-load awk head cat sh
    run_expect 0 env PATH="$SOME" "$EXAMPLES/fzf.sh"
    stdout_has 'about codecs'
    [[ $(head -n 1 "$HISTORY.session") == codecs ]]
    run_expect 0 env PATH="$SOME" "$EXAMPLES/fzf.sh" ABOUT
    stdout_has 'about codecs'
    run_expect 0 env PATH="$SOME" "$EXAMPLES/fzf.sh" pars
    [[ $(head -n 1 "$HISTORY.session") == parsers ]]
    run_expect 0 on_tty --wait 'number: ' --type '2\n' env PATH="$SOME" "$EXAMPLES/fzf.sh"
    stdout_matches '^  1  [-0-9]{10}  about codecs' '^  2  [-0-9]{10}  about lexers' '^  3  [-0-9]{10}  about parsers'
    [[ $(head -n 1 "$HISTORY.session") == lexers ]]
    run_expect 1 on_tty --wait 'number: ' --type '9\n' env PATH="$SOME" "$EXAMPLES/fzf.sh"
    run_expect 1 env PATH="$SOME" "$EXAMPLES/fzf.sh" nothing
    stderr_is "fzf.sh: there is no session that speaks of 'nothing'"
    rm "$HISTORY"
    run_expect 2 env PATH="$SOME" "$EXAMPLES/fzf.sh"
    stderr_is "hist-sessions: no history '$HISTORY'"
}

# ---- the git hook

# A repository with the hook and something staged; the editor takes what it is given.
hooked() {
    git init -q .
    git config user.name Ada
    git config user.email ada@example.org
    cp "$EXAMPLES/git/prepare-commit-msg" .git/hooks/
    export GIT_EDITOR=true
    unset CHAT_HISTORY
    stage 'int main(void);'
}

stage() {
    echo "$1" >>a.c
    git add a.c
}

@test "git hook: suggests a message from what is staged" {
    hooked
    start_llm --reply $'```\nDeclare main\n\nThe linker needs it.\n```'
    run_expect 0 git commit -q
    stderr_empty
    run_expect 0 git log -1 --format=%B
    stdout_is 'Declare main' '' 'The linker needs it.' ''
    requests_are 1
    run_expect 0 jq -r '.messages[0].content' "$RECORD/1.json"
    stdout_has 'diff --git a/a.c b/a.c' '+int main(void);' 'Write a git commit message'
    # What the editor showed: the suggestion above git's own comment.
    stage 'int b;'
    GIT_EDITOR='cp "$1" seen #' run_expect 0 git -c core.editor='sh -c "cp \"\$0\" seen"' commit -q
    [[ $(head -n 1 seen) == 'Declare main' ]]
    grep -q '^# Please enter the commit message' seen
    [[ ! -e .aicoder && ! -e .git/COMMIT_EDITMSG.chat ]]
}

@test "git hook: has nothing to say where there is a message, and when it is turned off" {
    hooked
    start_llm --reply wrong
    run_expect 0 git commit -q -m mine
    run_expect 0 git commit -q --amend --no-edit
    stage 'int b;'
    echo 'from a file' >message
    run_expect 0 git commit -q -F message
    run_expect 0 git commit -q --allow-empty -m empty
    stage 'int c;'
    CHAT_COMMIT=off run_expect 1 git commit -q
    stderr_is 'Aborting commit due to empty commit message.'
    run_expect 0 git log --format=%s
    stdout_is empty 'from a file' mine
    requests_are 0
}

@test "git hook: never blocks a commit, whatever happens to chat" {
    hooked
    export GIT_EDITOR='echo by hand >'
    start_llm openai/http-429-no-retry openai/cut openai/empty-answer
    run_expect 0 git commit -q
    stderr_has 'prepare-commit-msg: no message suggested (chat ended with status 5)'
    stage 'int b;'
    run_expect 0 git commit -q
    stderr_has 'chat ended with status 7'
    stage 'int c;'
    run_expect 0 git commit -q
    stderr_has 'chat ended with status 0'
    stage 'int d;'
    use_nothing
    unset OPENAI_BASE_URL OPENAI_API_KEY CHAT_MODEL
    run_expect 0 git commit -q
    stderr_has 'chat: no model server is configured' 'chat ended with status 2'
    stage 'int e;'
    bin_with git sh sed cat mv head true
    run_expect 0 env PATH="$SOME" git commit -q
    stderr_empty
    run_expect 0 git log --format=%s
    stdout_is 'by hand' 'by hand' 'by hand' 'by hand' 'by hand'
}

@test "git hook: a server that does not answer does not hold the commit for long" {
    hooked
    export GIT_EDITOR='echo by hand >'
    sed -i 's/--idle-timeout=20s/--idle-timeout=1s/' .git/hooks/prepare-commit-msg
    grep -q 'idle-timeout=1s' .git/hooks/prepare-commit-msg
    start_llm --accept-silent
    RUN_LIMIT=20 run_expect 0 git commit -q
    stderr_has 'chat ended with status 4'
    run_expect 0 git log --format=%s
    stdout_is 'by hand'
}

# ---- the cron job

# What cron would run of the crontab, with its environment: the variables of the table, HOME, LOGNAME, SHELL.
# The programs are installed in $BIN.
cron_runs() {
    local line variables=()
    while IFS= read -r line; do
        case $line in
        '' | '#'*) ;;
        PATH=*) variables+=("PATH=$BIN:${line#PATH=}") ;;
        [A-Z]*=*) variables+=("$line") ;;
        *) COMMAND=$(sed -E 's/^([^ ]+ +){5}//' <<<"$line") ;;
        esac
    done <"$EXAMPLES/cron/crontab"
    (cd "$HOME" && exec env -i HOME="$HOME" LOGNAME=ada SHELL=/bin/sh "${variables[@]}" \
        ASAN_OPTIONS="$ASAN_OPTIONS" UBSAN_OPTIONS="$UBSAN_OPTIONS" /bin/sh -c "$COMMAND")
}

# The job installed as its comments say, and a log with lines of yesterday.
cron_installed() {
    mkdir -p "$HOME/bin" "$HOME/log" "$HOME/.config/chathist"
    cp "$EXAMPLES/cron/nightly-summary" "$HOME/bin/"
    printf 'export OPENAI_BASE_URL=%s OPENAI_API_KEY=secret CHAT_MODEL=%s\n' "$OPENAI_BASE_URL" "$CHAT_MODEL" \
        >"$HOME/.config/chathist/cron.env"
    YESTERDAY=$(date -d yesterday +%F)
    {
        echo "$(date -d '2 days ago' +%F) 23:59 too old"
        echo "$YESTERDAY 00:10 started"
        echo "$YESTERDAY 12:00 error: disk full 100%"
        echo "$(date +%F) 01:00 too new"
    } >"$HOME/log/app.log"
    unset OPENAI_BASE_URL OPENAI_API_KEY CHAT_MODEL CHAT_HISTORY
    HISTORY=$HOME/.local/share/aicoder/history.jsonl
}

@test "cron: the crontab's line runs at 2 a.m. with cron's environment, quietly, and keeps its session" {
    start_llm --reply 'One error.' --reply 'Another error.'
    cron_installed
    [[ $(grep -cE '^0 2 \* \* \* ' "$EXAMPLES/cron/crontab") -eq 1 ]]
    run_expect 0 cron_runs
    stdout_empty
    stderr_empty
    json_is "$HISTORY" '"\(.session_id) \(.role)"' 'nightly user' 'nightly assistant'
    run_expect 0 jq -r '.messages[0].content' "$RECORD/1.json"
    stdout_is "$YESTERDAY 00:10 started" "$YESTERDAY 12:00 error: disk full 100%" '' \
        "This is the log of $YESTERDAY. Sum it up in at most ten lines: errors first, then what changed against the days before."
    # The next night goes on with the session.
    run_expect 0 cron_runs
    json_is "$RECORD/2.json" '.messages[] | .role' user assistant user
    run_expect 0 hist-show --limit 1 nightly
    stdout_has 'Another error.'
    # It is nobody's current session.
    run_expect 1 hist-show current
}

@test "cron: says what fails, with chat's status" {
    start_llm openai/http-401 openai/length
    cron_installed
    run_expect 3 cron_runs
    stdout_empty
    stderr_matches '^chat: HTTP 401'
    run_expect 7 cron_runs
    stderr_has 'chat: answer is incomplete'
    rm "$HOME/log/app.log"
    run_expect 2 cron_runs
    stderr_is "nightly-summary: cannot read '$HOME/log/app.log'"
    run_expect 2 "$HOME/bin/nightly-summary"
    stderr_is 'usage: nightly-summary LOG [DAY]'
}

@test "cron: a day without lines is no work and no failure; a day can be named" {
    start_llm --reply fine
    cron_installed
    echo "$(date +%F) today only" >"$HOME/log/app.log"
    run_expect 0 cron_runs
    stdout_empty
    stderr_empty
    requests_are 0
    run_expect 0 "$HOME/bin/nightly-summary" "$HOME/log/app.log" "$(date +%F)"
    requests_are 1
}

@test "cron: a night of torture says nothing unless it finds something, then all that make printed" {
    mkdir clone
    printf '%s\n' 'torture fuzz:' $'\t@echo $@ for $(BUDGET) seconds' >clone/Makefile
    run_expect 0 "$EXAMPLES/cron/nightly-torture" clone
    stdout_empty
    stderr_empty
    printf '%s\n' $'\t@test $@ = fuzz' >>clone/Makefile
    run_expect 2 "$EXAMPLES/cron/nightly-torture" clone 60
    stdout_has 'torture for 60 seconds' 'fuzz for 60 seconds' 'Error 1'
    stderr_empty
    run_expect 2 "$EXAMPLES/cron/nightly-torture"
    stdout_empty
    stderr_is 'usage: nightly-torture FOLDER [SECONDS]'
}

# ---- tools/

# tool STATUS NAME JSON: a call of an example.
tool() {
    run_expect "$1" "$EXAMPLES/tools/$2" <<<"$3"
}

@test "tools: each declares itself, and chat takes it" {
    start_llm --reply ok
    for file in "$EXAMPLES"/tools/*; do
        run_expect 0 "$file" --schema
        stdout_json '.name, .parameters.type' "$(basename "$file")" object
        stderr_empty
        run_expect 0 chat --no-store -T "$file" hello
        stdout_is ok
        stderr_empty
    done
}

@test "tools: read_file stays below the working directory and reads text" {
    printf 'one\ntwo\nthree\n' >text
    printf 'a\0b' >binary
    echo secret >"$BATS_TEST_TMPDIR/secret"
    ln -s "$BATS_TEST_TMPDIR" out
    ln -s ../secret link
    mkdir sub
    echo odd >'sub/-n x'
    tool 0 read_file '{"path":"text"}'
    stdout_is one two three
    stderr_empty
    tool 0 read_file '{"path":"text","first_line":2,"lines":1}'
    stdout_is two
    tool 0 read_file '{"path":"sub/-n x"}'
    stdout_is odd
    tool 0 read_file "{\"path\":\"$PWD/text\"}"
    stdout_is one two three
    for path in ../secret out/secret link /etc/passwd sub/../../secret; do
        tool 1 read_file "{\"path\":\"$path\"}"
        stdout_empty
        stderr_matches 'is not below the working directory|is a symbolic link'
    done
    tool 1 read_file '{"path":"binary"}'
    stderr_is './binary: is not text'
    tool 1 read_file '{"path":"sub"}'
    stderr_is './sub: is not a regular file'
    tool 1 read_file '{"path":"none"}'
    stderr_is './none: no such file'
    tool 1 read_file '{"path":["text"]}'
    stderr_is 'path: a string is expected'
}

@test "tools: list_dir stays below the working directory" {
    mkdir -p sub/inner
    touch sub/a sub/.hidden
    ln -s / out
    tool 0 list_dir '{}'
    stdout_is out sub/
    tool 0 list_dir '{"path":"sub"}'
    stdout_is .hidden a inner/
    for path in .. out / sub/../..; do
        tool 1 list_dir "{\"path\":\"$path\"}"
        stdout_empty
        stderr_has 'is not below the working directory'
    done
    tool 1 list_dir '{"path":"none"}'
    stderr_is './none: no such directory'
    mkdir many
    (cd many && touch $(seq 1005))
    tool 0 list_dir '{"path":"many"}'
    lines_are 1001
    stdout_line 1001 '[5 more]'
}

@test "tools: sql asks the database that the user has set, read-only" {
    sqlite3 shop.db "create table sold(article, n); insert into sold values('tea', 3), ('it''s', 5)"
    remember shop.db
    tool 1 sql '{"query":"select 1"}'
    stderr_is 'no database: the user has not set SQL_DATABASE'
    export SQL_DATABASE=shop.db
    tool 0 sql '{"query":"-- all\nselect sum(n) as n from sold"}'
    stdout_is '[{"n":8}]'
    stderr_empty
    for query in 'insert into sold values(1, 2)' "attach 'pwned' as x" "select writefile('pwned', 'x')" \
        "vacuum into 'pwned'" "select load_extension('x')" "select readfile('shop.db')"; do
        tool 1 sql "{\"query\":\"$query\"}"
        stdout_empty
        stderr_matches 'readonly|safe mode'
    done
    for query in '.shell touch pwned' ".output pwned\\nselect 1" '.open pwned' '.trace pwned' "\\n.trace pwned\\nselect 1"; do
        tool 1 sql "{\"query\":\"$query\"}"
        stdout_empty
        stderr_has 'syntax error'
    done
    for query in "select data from fsdir('shop.db')" 'create virtual table temp.x using FsDir' \
        "select * from \\\"zipfile\\\"('x.zip')"; do
        tool 1 sql "{\"query\":\"$query\"}"
        stdout_empty
        stderr_is 'fsdir and zipfile cannot be used: they read other files'
    done
    [[ ! -e pwned ]]
    unchanged shop.db
    SQL_DATABASE=none.db tool 1 sql '{"query":"select 1"}'
    stderr_is "no database: 'none.db' is not a file"
    [[ ! -e none.db ]]
}

@test "tools: fetch gets a text by http alone, of a bounded size" {
    printf 'path: /page\nheader: Content-Type: text/html\n\n<p>hello</p>\n' >page
    printf 'path: /away\nstatus: 302 Found\nheader: Location: file:///etc/passwd\n\n' >away
    printf 'path: /binary\nescape: %%\nheader: Content-Type: text/html\n\na%%00b\n' >binary
    printf 'path: /large\nfill: @ 1100000 x\ntransfer: close\nheader: Content-Type: text/html\n\n@\n' >large
    printf 'path: /missing\nstatus: 404 Not Found\n\nno\n' >missing
    start_llm page away binary large missing --reply no
    local server=http://127.0.0.1:$LLM_PORT
    tool 0 fetch "{\"url\":\"$server/page\"}"
    stdout_is '<p>hello</p>'
    stderr_empty
    for url in file:///etc/passwd /etc/passwd --version; do
        tool 1 fetch "{\"url\":\"$url\"}"
        stderr_is 'url: only http:// and https:// are fetched'
    done
    for path in away binary large missing; do
        tool 1 fetch "{\"url\":\"$server/$path\"}"
        stdout_empty
        [[ -s $ERR ]]
    done
    [[ -z $(ls -A "$TMPDIR") ]]
}

@test "tools: edit_file replaces a text that occurs once, below the working directory" {
    mkdir -p sub
    printf 'a\nb\nb\n' >sub/f
    chmod 640 sub/f
    tool 0 edit_file '{"path":"sub/f","old_text":"a\n","new_text":"\\1 é\n\n"}'
    stdout_is 'sub/f: changed' '{"files_modified":["sub/f"],"edit_results":[{"file":"sub/f","old_text":"a\n","new_text":"\\1 é\n\n"}]}'
    is sub/f sub/f '\1 é' '' b b
    [[ $(stat -c %a sub/f) == 640 ]]
    tool 0 edit_file '{"path":"-n","old_text":"","new_text":"new"}'
    [[ $(cat ./-n) == new ]]
    printf 'a\377b' >bytes
    printf 'a\000b' >nul
    ln -s sub/f link
    cp sub/f before
    for args in '{"path":"sub/f","old_text":"b","new_text":"c"}' '{"path":"sub/f","old_text":"x","new_text":"c"}' \
        '{"path":"sub/f","old_text":"","new_text":"c"}' '{"path":"sub/f","old_text":"a"}' '{"path":"none","old_text":"a","new_text":""}' \
        '{"path":"bytes","old_text":"b","new_text":""}' '{"path":"nul","old_text":"b","new_text":""}' \
        '{"path":"link","old_text":"é","new_text":""}' '{"path":"sub","old_text":"é","new_text":""}' \
        '{"path":"../x","old_text":"","new_text":"x"}' '{"path":"/tmp/x","old_text":"","new_text":"x"}' '{}'; do
        tool 1 edit_file "$args"
        [[ -s $ERR ]]
    done
    same 'the file' before sub/f
    [[ ! -e ../x && $(find . -name '*.??????' | wc -l) == 0 ]]
}

@test "tools: a turn in which the model reads a file" {
    printf 'int main(void) { return 0; }\n' >a.c
    start_llm --call 'read_file {"path":"a.c"}' --call 'list_dir {}' --call 'read_file {"path":"../x"}' --reply 'It does nothing.'
    run_expect 0 chat --yes -T "$EXAMPLES/tools/read_file" -T "$EXAMPLES/tools/list_dir" 'What does a.c do?'
    stdout_is 'It does nothing.'
    json_is "$HISTORY" 'select(.role == "tool").content' 'int main(void) { return 0; }' '' a.c history.jsonl history.jsonl.session '' \
        'the tool failed with exit status 1' 'standard error:' './../x: is not below the working directory' ''
}

# ---- the archive

# The first session of the user's own history.
archive_history() {
    unset CHAT_HISTORY
    HISTORY=$HOME/.local/share/aicoder/history.jsonl
    mkdir -p "$HOME/.local/share/aicoder"
    { hist_line talk user 'What is a pipe?' 2024-06-27T15:00:00.000000+00:00; hist_line talk assistant 'One.'; } >"$HISTORY"
}

# home_repo: the home directory is a repository with a history of its own, as when it keeps dot files.
home_repo() {
    make_repo "$HOME"
    (cd "$HOME" && hist-append -q 'about dot files' >"$TMPDIR/id")
    [[ -s $HOME/.git/aicoder/history.jsonl ]]
}

@test "archive, import: systemd accepts the units" {
    command -v systemd-analyze >/dev/null || skip 'systemd-analyze is missing'
    mkdir units
    for unit in archive/hist-export import/hist-import; do
        sed "s|/usr/local/bin/|$BIN/|" "$EXAMPLES/$unit.service" >"units/${unit#*/}.service"
        cp "$EXAMPLES/$unit.timer" units/
        run_expect 0 systemd-analyze verify "units/${unit#*/}.service" "units/${unit#*/}.timer"
        stderr_empty
    done
}

# by_cron CRONTAB: runs its one job as cron does: the crontab's own variables and no others but HOME, LOGNAME and SHELL.
# The programs are where `make install` puts them.
by_cron() {
    local line job='' variables=()
    while IFS= read -r line; do
        case $line in
        '#'* | '') ;;
        [A-Z]*=*) variables+=("${line//\/usr\/local\/bin/$BIN}") ;;
        *) job=$(sed -E 's/^([^ ]+ +){5}//' <<<"$line") ;;
        esac
    done <"$1"
    # To cron a % is the end of the line.
    [[ -n $job && $job != *%* ]] || fail "no job: $job"
    (cd "$HOME" && exec env -i HOME="$HOME" LOGNAME=ada SHELL=/bin/sh PATH=/usr/bin:/bin "${variables[@]}" \
        ASAN_OPTIONS="$ASAN_OPTIONS" UBSAN_OPTIONS="$UBSAN_OPTIONS" /bin/sh -c "$job" </dev/null)
}

@test "archive: the crontab as cron runs it, from the first night on" {
    archive_history
    home_repo
    mv "$HISTORY" later
    # Nobody has said anything yet: no mail.
    run_expect 0 by_cron "$EXAMPLES/archive/hist-export.crontab"
    stdout_empty
    stderr_empty
    mv later "$HISTORY"
    run_expect 0 by_cron "$EXAMPLES/archive/hist-export.crontab"
    stdout_empty
    stderr_empty
    same archive "$HISTORY" "$HOME/archive.jsonl"
    [[ $(stat -c %a "$HOME/archive.jsonl") == 600 ]]
    # What is deleted stays in the archive; what is said then comes to it.
    run_expect 0 hist-delete --force talk
    hist_line next user "What is sk-$(printf 'aB3x%.0s' {1..12})?" >>"$HISTORY"
    echo 'not JSON' >>"$HISTORY"
    run_expect 0 by_cron "$EXAMPLES/archive/hist-export.crontab"
    stderr_empty
    json_is "$HOME/archive.jsonl" .content 'What is a pipe?' One. 'What is [redacted api-key]?'
    # What goes wrong is mailed, and the exit status says so.
    printf 'no state' >"$HOME/archive.state"
    run_expect 2 by_cron "$EXAMPLES/archive/hist-export.crontab"
    stdout_empty
    stderr_is "hist-export: cannot use '$HOME/archive.state': it is no state of an export"
}

# by_systemd SERVICE: its command as a user's systemd runs it: no shell, hardly a variable, and in the home
# directory unless the service names another one.
by_systemd() {
    local command dir
    dir=$(sed -n 's/^WorkingDirectory=//p' "$1")
    command=$(sed -n 's/^ExecStart=//p' "$1")
    command=${command//%h/$HOME}
    # shellcheck disable=SC2086
    (cd "${dir:-$HOME}" && exec env -i HOME="$HOME" ASAN_OPTIONS="$ASAN_OPTIONS" UBSAN_OPTIONS="$UBSAN_OPTIONS" \
        ${command/#\/usr\/local\/bin/$BIN} </dev/null)
}

@test "archive: the service as systemd runs it, from the first night on" {
    archive_history
    home_repo
    mv "$HISTORY" later
    run_expect 0 by_systemd "$EXAMPLES/archive/hist-export.service"
    stdout_empty
    stderr_empty
    mv later "$HISTORY"
    run_expect 0 by_systemd "$EXAMPLES/archive/hist-export.service"
    stderr_empty
    [[ $(head -n 1 "$HOME/conversations/2024-06-27_talk.md") == '# What is a pipe?' ]]
    hist_line next user 'What is a socket?' 2024-06-28T15:00:00.000000+00:00 >>"$HISTORY"
    remember "$HOME/conversations/2024-06-27_talk.md"
    run_expect 0 by_systemd "$EXAMPLES/archive/hist-export.service"
    stdout_empty
    stderr_empty
    unchanged "$HOME/conversations/2024-06-27_talk.md"
    run_expect 0 ls "$HOME/conversations"
    stdout_is 2024-06-27_talk.md 2024-06-28_next.md
}

@test "archive: the timer names a time that comes, and a service that is there" {
    command -v systemd-analyze >/dev/null || skip 'systemd-analyze is missing'
    local when
    when=$(sed -n 's/^OnCalendar=//p' "$EXAMPLES/archive/hist-export.timer")
    run_expect 0 systemd-analyze calendar "$when"
    stdout_matches '^ *Next elapse: .* 03:30:00'
    # Without Unit= a timer starts the service of its name.
    if grep -q '^Unit=' "$EXAMPLES/archive/hist-export.timer"; then fail 'another unit'; fi
    [[ -e $EXAMPLES/archive/hist-export.service ]]
}
