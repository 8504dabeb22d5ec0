#!/usr/bin/env bats
#
# Tools that the model calls: declared by executables, asked for, run in order or side by side, stored, and the model asked on.

# shellcheck disable=SC2016,SC2030,SC2031,SC2034

load ../helper
load ../history

# alone STATUS COMMAND...: where there is no terminal.
alone() {
    local status=$1
    shift
    run_expect "$status" setsid -w timeout 60 "$@"
}

# lines LINE...: what the history holds: role, content, calls, the id of the call it answers.
lines() {
    json_is "$HISTORY" '[.role, .content, (.tool_calls // [] | .[] | "[\(.id) \(.name) \(.args)]"), .tool_call_id // empty]
        | join("|")' "$@"
}

# ---- the loop

@test "tools: a call is run, its result stored and sent, and the answer is the next one" {
    put_tool add 'jq ".a + .b"'
    start_llm openai/tools-one --reply 'It is 5.'
    run_expect 0 chat --yes -T ./add 'What is 2 + 3?'
    stdout_is 'It is 5.'
    stderr_empty
    lines 'user|What is 2 + 3?' 'assistant||[call_1 add {"a":2,"b":3}]' 'tool|5'$'\n''|call_1' 'assistant|It is 5.'
    json_is "$HISTORY" '.finish_reason // empty' tool_calls stop
    # All of it answers the prompt.
    json_is "$HISTORY" '.reply_to // empty' "$(for _ in 1 2 3; do head -n 1 "$HISTORY" | jq -r .id; done)"
    request_messages_are 2 'user:What is 2 + 3?' 'assistant:[add {"a":2,"b":3}]' $'tool:5\n'
    json_is "$RECORD/2.json" '.messages[] | .tool_call_id // empty' call_1
    requests_are 2
    # And the next turn has it as part of the conversation.
    run_expect 0 chat 'Sure?'
    request_messages_are 3 'user:What is 2 + 3?' 'assistant:[add {"a":2,"b":3}]' $'tool:5\n' 'assistant:It is 5.' user:Sure?
}

@test "tools: a name with U+0000 is not the name of the tool with its beginning" {
    put_tool add 'touch ran'
    put_tool get_weather 'touch ran'
    sed 's/"name":"add"/"name":"add\\u0000x"/' "$FIXTURES/openai/tools-one.http" >openai.http
    sed 's/"name":"get_weather"/"name":"get_weather\\u0000x"/' "$FIXTURES/anthropic/calls.http" >anthropic.http
    start_llm ./openai.http --reply 'done' ./openai.http ./anthropic.http anthropic/normal
    run_expect 0 chat --yes -T ./add hello
    json_is "$HISTORY" 'select(.tool_calls) | .tool_calls[].name == "add\u0000x"' true
    json_is "$HISTORY" 'select(.role == "tool") | .content' "there is no tool 'add^@x'"
    run_expect 9 chat hello
    stderr_is "chat: the model called the tool 'add^@x', which it was not given"
    export ANTHROPIC_BASE_URL=http://127.0.0.1:$LLM_PORT ANTHROPIC_API_KEY=test-key-1
    run_expect 0 chat -N -m anthropic:m --yes -T ./get_weather hello
    json_is "$HISTORY" 'select(.role == "tool") | .content' "there is no tool 'add^@x'" \
        "there is no tool 'get_weather^@x'" "there is no tool 'get_time'"
    [[ ! -e ran ]]
}

@test "tools: a failure after a round leaves the calls and results to the next turn, and no mark" {
    put_tool add 'jq ".a + .b"'
    start_llm openai/tools-one openai/http-400 --reply fine --reply again
    run_expect 1 chat -s s --yes -T ./add 'What is 2 + 3?'
    lines 'user|What is 2 + 3?' 'assistant||[call_1 add {"a":2,"b":3}]' 'tool|5'$'\n''|call_1' 'assistant|'
    json_is "$HISTORY" '.finish_reason // empty' tool_calls error
    run_expect 0 chat -s s 'And now?'
    request_messages_are 3 'user:What is 2 + 3?' 'assistant:[add {"a":2,"b":3}]' $'tool:5\n' assistant:… 'user:And now?'
    run_expect 0 chat -s s next
    request_messages_are 4 'user:What is 2 + 3?' 'assistant:[add {"a":2,"b":3}]' $'tool:5\n' assistant:… 'user:And now?' \
        assistant:fine user:next
}

# reads FILE...: these tools say that they only read.
reads() {
    sed -i 's/"description"/"read_only":true,&/' "$@"
}

@test "tools: calls that only read run side by side, and each is stored when it ends" {
    # Each waits for the other: one after the other they would hang. The first ends after the second is stored.
    put_tool first 'touch first.on; until grep -q call_b history.jsonl && grep -q two history.jsonl; do sleep 0.05; done; echo one'
    put_tool second 'until [ -e first.on ]; do sleep 0.05; done; echo two'
    reads first second
    start_llm openai/tools-two --reply Done.
    run_expect 0 chat --yes -T ./first -T ./second --tool-timeout 50s go
    stdout_is "Let me see." Done.
    lines user\|go 'assistant|Let me see.|[call_a first {}]|[call_b second {}]' $'tool|two\n|call_b' $'tool|one\n|call_a' \
        assistant\|Done.
    # The model gets them in the order of its calls.
    request_messages_are 2 user:go 'assistant:Let me see.[first {}][second {}]' $'tool:one\n' $'tool:two\n'
}

@test "tools: other calls run in order, and each is stored before the next begins" {
    put_tool first 'touch begun; sleep 0.2; echo one >file; echo one'
    put_tool second 'cat file; tail -n 1 history.jsonl | jq -r .content'
    reads second
    start_llm openai/tools-two --reply Done.
    run_expect 0 chat --yes -T ./first -T ./second go
    json_is "$HISTORY" 'select(.role == "tool") | .tool_call_id, .content' call_a one '' call_b one one '' ''
}

@test "tools: one that only reads is asked for as any other" {
    put_tool step 'touch ran'
    reads step
    start_llm --call 'step {}' --reply ok
    alone 0 chat -T ./step go
    [[ ! -e ran ]]
}

# killed_in_tool OPTION...: chat is killed once a tool that hangs has written its number to `pid`, and so is the tool.
killed_in_tool() {
    background chat --yes "$@" go
    wait_for test -s pid
    kill -KILL "$BG"
    finish 137
    kill -KILL "$(cat pid)"
}

@test "tools: after SIGKILL finished calls have their results, and the others are unknown" {
    put_tool step 'jq -r .n >>ran; [ "$(wc -l <ran)" != 2 ] || { echo $$ >pid.new; mv pid.new pid; exec sleep 300; }; echo "done"'
    start_llm openai/tools-steps --reply 'Then so.' --reply Again.
    killed_in_tool -T ./step
    [[ $(wc -l <ran) == 2 ]]
    json_is "$HISTORY" 'select(.role == "tool").content' 'done' ''
    run_expect 0 chat 'go on'
    request_messages 2 | grep '^tool:' >results
    is results results tool:done 'tool:unknown: chat was killed while it ran'
    # Of an answer of which no call has ended, too.
    head -n 2 "$HISTORY" >killed.jsonl
    CHAT_HISTORY=$PWD/killed.jsonl run_expect 0 chat -s "$(jq -r .session_id killed.jsonl | head -n 1)" again
    request_messages 3 | grep '^tool:' >results
    is results results 'tool:unknown: chat was killed while it ran' 'tool:unknown: chat was killed while it ran'
}

@test "tools: after an interruption each call has its own result" {
    put_tool step 'touch begun; exec sleep 300'
    start_llm openai/tools-steps
    background chat --yes -T ./step go
    wait_for test -e begun
    kill -INT "$BG"
    finish 130
    json_is "$HISTORY" 'select(.role == "tool") | .content, .failed' 'the tool was interrupted' true \
        'the tool was not run: the turn was interrupted' true
}

@test "tools: several rounds; the usage of all of them" {
    put_tool step 'echo ok'
    start_llm --call 'step {"n":1}' --call 'step {"n":2}' openai/usage
    run_expect 0 chat --yes -u -T ./step go
    stderr_matches '^input_tokens=[0-9]+ output_tokens=[0-9]+$'
    requests_are 3
    json_is "$HISTORY" .role user assistant tool assistant tool assistant
    jq -s '[.[].usage // empty] | {i: (map(.input_tokens) | add), o: (map(.output_tokens) | add)}
        | "input_tokens=\(.i) output_tokens=\(.o)"' "$HISTORY" >sum
    stderr_is "$(jq -r . sum)"
    json_is "$RECORD/3.json" '.messages[].role' user assistant tool assistant tool
    # In the events, too.
    start_llm openai/usage --call 'step {}' openai/usage
    run_expect 0 chat --no-store --json hello
    local once twice
    once=$(jq 'select(.type == "usage").output_tokens' "$OUT")
    run_expect 0 chat --no-store --yes --json -T ./step hello
    twice=$(jq 'select(.type == "usage").output_tokens' "$OUT")
    [[ $twice -gt $once ]]
}

@test "tools: a turn that fails behind a round tells what it has cost" {
    put_tool step 'echo ok'
    { printf '# a call\n\n'; printf 'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"step","arguments":"{}"}}]}}]}\n\n'
        printf 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":30,"completion_tokens":4}}\n\ndata: [DONE]\n\n'; } >call.http
    start_llm ./call.http openai/http-400
    run_expect 1 chat --json --yes -T ./step go
    stdout_json '.type' session_id tool_call tool_result usage error
    stdout_json 'select(.type == "usage") | "\(.input_tokens) \(.output_tokens)"' '30 4'
    # Nothing is known, nothing is told.
    sed 's/,"usage":{[^}]*}//' call.http >silent.http
    start_llm ./silent.http openai/http-400
    run_expect 1 chat --json --yes -T ./step go
    stdout_json '.type' session_id tool_call tool_result error
}

@test "tools: at most ten rounds, or as many as --max-iterations says" {
    put_tool step 'echo ok'
    start_llm --call 'step {}'
    run_expect 9 chat --yes -T ./step go
    stdout_empty
    stderr_is 'chat: the model goes on calling tools after 10 rounds: the last calls were not carried out'
    requests_are 11
    # What came is stored, and the next turn can tell that the last call has no result.
    jq -r .role "$HISTORY" | sort | uniq -c | awk '{ print $2, $1 }' >roles
    is roles roles 'assistant 11' 'tool 10' 'user 1'
    start_llm --call 'step {}' --reply fine
    run_expect 9 chat -N --yes --max-iterations 0 -T ./step go
    requests_are 1
    run_expect 0 chat 'go on'
    request_messages_are 2 user:go 'assistant:[step {}]' 'tool:no result is known' 'assistant:…' 'user:go on'
    start_llm --call 'step {}' --call 'step {}' --reply fine
    run_expect 0 chat -N --yes --max-iterations 2 -T ./step go
    stdout_is fine
    run_expect 2 chat --max-iterations many go
    stderr_has "bad value 'many' for --max-iterations"
}

@test "tools: where nothing can be stored, the loop works and the exit status tells" {
    put_tool step 'echo ok'
    export CHAT_HISTORY=/proc/absent/history.jsonl
    start_llm --call 'step {}' --reply fine
    run_expect 8 chat --yes -T ./step go
    stdout_is fine
    [[ $(wc -l <"$ERR") == 1 ]]
    request_messages_are 2 user:go 'assistant:[step {}]' $'tool:ok\n'
}

@test "tools: what could not be stored is stored with what comes next" {
    ln -s /proc/absent absent
    put_tool step 'rm -f absent; mkdir absent; echo ok'
    export CHAT_HISTORY=$WORK/absent/history.jsonl
    start_llm --call 'step {}' --reply fine
    run_expect 8 chat --yes -T ./step go
    stdout_is fine
    json_is "$CHAT_HISTORY" '"\(.role) \(.content)"' 'user go' 'assistant ' $'tool ok\n' 'assistant fine'
}

@test "tools: --regenerate and --edit replace the calls and results of the old turn" {
    put_tool step 'echo ok'
    start_llm --call 'step {"n":1}' --reply one --call 'step {"n":2}' --reply two --call 'step {"n":3}' --reply three
    run_expect 0 chat --yes -T ./step go
    run_expect 0 chat --yes -T ./step --regenerate
    stdout_is two
    request_messages_are 3 user:go
    request_messages_are 4 user:go 'assistant:[step {"n":2}]' $'tool:ok\n'
    run_expect 0 hist-show --json current
    stdout_json '"\(.role) \(.content) \(.tool_calls // [] | map(.args.n) | add // "")"' 'user go ' 'assistant  2' \
        $'tool ok\n ' 'assistant two '
    run_expect 0 chat --yes -T ./step --edit better
    run_expect 0 hist-show --json current
    stdout_json '"\(.role) \(.content) \(.tool_calls // [] | map(.args.n) | add // "")"' 'user better ' 'assistant  3' \
        $'tool ok\n ' 'assistant three '
}

@test "tools: a call that the length limit cut is not run" {
    put_tool get_weather 'touch ran; echo sunny'
    put_tool write 'touch ran'
    start_llm openai/tools-length
    run_expect 7 chat --yes -T ./write go
    [[ ! -e ran ]]
    requests_are 1
    stderr_has 'length limit'
    start_llm openai/calls-cut
    run_expect 7 chat --retries 0 -N --yes -T ./get_weather go
    [[ ! -e ran ]]
    unset OPENAI_BASE_URL OPENAI_API_KEY
    start_llm anthropic/calls-max-tokens
    ANTHROPIC_BASE_URL=http://127.0.0.1:$LLM_PORT ANTHROPIC_API_KEY=k \
        run_expect 7 chat -m anthropic:m -N --yes -T ./get_weather go
    [[ ! -e ran ]]
    requests_are 1
}

# ---- what the model is told

@test "tools: an unknown tool and arguments that are no object are results, and nothing is run or asked for" {
    put_tool get_weather 'touch ran'
    start_llm --call 'sudo {}' openai/calls-bad-arguments --call 'get_weather [1]' --reply 'Sorry.'
    run_expect 0 chat -T ./get_weather go
    stdout_has 'Sorry.'
    stderr_empty
    [[ ! -e ran ]]
    json_is "$HISTORY" 'select(.role == "tool").content' "there is no tool 'sudo'" \
        'the tool was not run: its arguments are not a valid JSON object: {"city": Paris' \
        'the tool was not run: its arguments are not a valid JSON object: [1]'
}

@test "tools: a tool that takes too long is killed with its children, and that is its result" {
    put_tool slow 'echo half; sleep 300 & echo $! >pid; wait'
    start_llm --call 'slow {}' --reply 'Too slow.'
    run_expect 0 chat --yes --tool-timeout 2s -T ./slow go
    stdout_is 'Too slow.'
    json_is "$HISTORY" 'select(.role == "tool").content' 'the tool was stopped: it took longer than 2.0 s' 'standard output:' \
        half ''
    wait_for gone "$(cat pid)"
    run_expect 2 chat --tool-timeout soon go
    stderr_has "bad value 'soon' for --tool-timeout"
}

gone() {
    ! alive "$1"
}

@test "tools: one that wants the terminal fails at once, which model and user are told" {
    put_tool ask 'read -r word </dev/tty && echo "got $word"'
    put_tool modes 'stty -echo </dev/tty || exit 3'
    put_tool deep '(setsid sh -c "exec 3</dev/tty") || exit 4'
    start_llm --call 'ask {}' --call 'modes {}' --call 'deep {}' --reply Done.
    run_expect 0 on_tty --size 200x24 --fds 2 --type 'secret\n' chat --yes --tool-timeout 30s -T ./ask -T ./modes -T ./deep go
    stdout_has 'tool_result ask (3 lines) the tool failed with exit status' '/dev/tty' Done.
    json_is "$HISTORY" 'select(.role == "tool") | .content | contains("/dev/tty: No such device or address")' true true true
    json_is "$HISTORY" 'select(.role == "tool") | .content | split("\n")[0]' 'the tool failed with exit status 2' \
        'the tool failed with exit status 3' 'the tool failed with exit status 4'
    # Nor while it is asked for its declaration.
    printf '#!/bin/sh\nread -r word </dev/tty || exit 5\n' >ask
    run_expect 2 on_tty --fds 2 chat -T ./ask go
    stdout_has 'exit status 5' '/dev/tty: No such device or address'
}

# ---- what is running

@test "tools: a tool that runs is shown on a terminal with its name and seconds, until it ends" {
    put_tool slow 'sleep 2.5; echo ok'
    start_llm --call 'slow {}' --reply Done.
    run_expect 0 on_tty --raw --fds 2 chat --no-store --yes -T ./slow go
    grep -Eq ' slow [1-9][0-9]* s' "$OUT" || fail 'it is not shown'
    has "$OUT" $'\r\e[K\e[38;5;243mtool_result slow ok' || fail 'it was not erased'
    # Those that run side by side are counted. Elsewhere there is none of it.
    put_tool first 'sleep 2; echo one'
    put_tool second 'sleep 2; echo two'
    reads first second
    start_llm openai/tools-two --reply Done. openai/tools-two --reply Done.
    run_expect 0 on_tty --raw --fds 2 chat --no-store --yes -T ./first -T ./second go
    has "$OUT" ' first and 1 more ' || fail 'the others are not told'
    run_expect 0 chat --no-store --yes -T ./first -T ./second go
    stderr_empty
}

# ---- what a tool has edited

# answer_edits FILE ANSWER PATH: an answer with six calls of edit_file: each appends a line to the file.
answer_edits() {
    jq -rn --argjson answer "$2" --arg path "$3" '
        def event: "data: \(tojson)\n\n";
        {choices: [{index: 0, delta: {role: "assistant", tool_calls: [range(6) | {index: ., id: "call_\($answer)_\(.)", type: "function",
            function: {name: "edit_file", arguments: ({path: $path, old_text: "end\n", new_text: "line \($answer).\(.)\nend\n"} | tojson)}}]}}]},
        {choices: [{index: 0, delta: {}, finish_reason: "tool_calls"}]} | event' >"$1"
    printf 'data: [DONE]\n\n' >>"$1"
    { printf '# six edits\n\n'; cat "$1"; } >"$1.http"
}

@test "tools: 48 edits of one file in 8 answers, and the next answer names it" {
    local answers=() all=()
    printf 'end\n' >notes
    for answer in 1 2 3 4 5 6 7 8; do
        answer_edits "edits$answer" $answer notes
        answers+=("./edits$answer.http")
        for edit in 0 1 2 3 4 5; do all+=("line $answer.$edit"); done
    done
    start_llm "${answers[@]}" --reply Done.
    run_expect 0 chat --yes -T "$ROOT/examples/tools/edit_file" 'write them'
    stdout_is Done.
    is notes notes "${all[@]}" end
    run_expect 1 grep '"failed"' "$HISTORY"
    [[ $(jq 'select(.role == "tool" and .content == "notes: changed\n") | 1' "$HISTORY" | wc -l) == 48 ]]
    # Each answer after a round names the file once, and each edit.
    json_is "$HISTORY" 'select(.role == "assistant") | [.files_modified, (.edit_results | length), .finish_reason] | tojson' \
        '[null,0,"tool_calls"]' '[["notes"],6,"tool_calls"]' '[["notes"],6,"tool_calls"]' '[["notes"],6,"tool_calls"]' \
        '[["notes"],6,"tool_calls"]' '[["notes"],6,"tool_calls"]' '[["notes"],6,"tool_calls"]' '[["notes"],6,"tool_calls"]' \
        '[["notes"],6,"stop"]'
}

@test "tools: edits are kept if the turn fails, is interrupted or killed" {
    put_tool edit 'echo ok; echo "{\"files_modified\":[\"a\"],\"edit_results\":[{\"n\":1}]}"'
    put_tool hang 'echo $$ >pid.new; mv pid.new pid; exec sleep 300'
    start_llm --call 'edit {}' openai/http-400
    run_expect 1 chat --yes -T ./edit go
    json_is "$HISTORY" 'select(.files_modified) | [.role, .finish_reason, .files_modified, .edit_results] | tojson' \
        '["assistant","error",["a"],[{"n":1}]]'
    sed 's/"name":"step"/"name":"edit"/; s/"name":"step"/"name":"hang"/' "$FIXTURES/openai/tools-steps.http" >both.http
    start_llm ./both.http
    use_history interrupted.jsonl
    background chat --yes -T ./edit -T ./hang go
    wait_for test -s pid
    kill -INT "$BG"
    finish 130
    json_is "$HISTORY" 'select(.files_modified) | [.role, .finish_reason, .content, .files_modified] | tojson' \
        '["assistant","interrupted","",["a"]]'
    start_llm --call 'edit {}' --accept-silent
    use_history killed.jsonl
    background chat --yes -T ./edit go
    wait_for answer_awaited
    kill -KILL "$BG"
    finish 137
    run_expect 0 chat -p echo next
    json_is "$HISTORY" 'select(.files_modified) | [.role, .finish_reason, .content, .files_modified] | tojson' \
        '["assistant","interrupted","",["a"]]'
}

@test "tools: a kill while a later tool runs loses no name of an edited file" {
    put_tool edit 'echo ok; echo "{\"files_modified\":[\"a\"],\"edit_results\":[{\"n\":1}]}"'
    put_tool other 'echo ok; echo "{\"files_modified\":[\"b\"]}"'
    put_tool hang 'echo $$ >pid.new; mv pid.new pid; exec sleep 300'
    start_llm --call 'edit {}' --call 'other {}' --call 'hang {}' --reply Never.
    killed_in_tool -T ./edit -T ./other -T ./hang
    run_expect 0 chat -p echo next
    json_is "$HISTORY" 'select(.files_modified) | [.role, .finish_reason, .content, .files_modified, .edit_results] | tojson' \
        '["assistant","tool_calls","",["a"],[{"n":1}]]' '["assistant","tool_calls","",["b"],null]'
    # Of one round: both names stand in the line of the answer that never came.
    use_history round.jsonl
    sed 's/"name":"step"/"name":"edit"/; s/"name":"step"/"name":"hang"/' "$FIXTURES/openai/tools-steps.http" >both.http
    start_llm ./both.http
    rm pid
    killed_in_tool -T ./edit -T ./hang
    run_expect 0 chat -p echo next
    json_is "$HISTORY" 'select(.files_modified) | [.role, .finish_reason, .content, .files_modified, .edit_results] | tojson' \
        '["assistant","interrupted","",["a"],[{"n":1}]]'
    stderr_empty
}

@test "tools: whenever chat is killed, a stored result names what its tool has edited" {
    need_strace
    put_tool edit 'echo ok; echo "{\"files_modified\":[\"a\"]}"'
    put_tool other 'echo ok; echo "{\"files_modified\":[\"b\"]}"'
    sed 's/"name":"step"/"name":"edit"/; s/"name":"step"/"name":"other"/' "$FIXTURES/openai/tools-steps.http" >both.http
    start_llm ./both.http --reply Done.
    traced -o trace -e trace=openat chat --history whole.jsonl --yes -T ./edit -T ./other go
    first=$(grep -n 'whole\.jsonl' trace | sed -n '2s/:.*//p') last=$(wc -l <trace)
    ((first > 0 && last - first > 4)) || fail "$first to $last"
    for ((n = first; n <= last; n++)); do
        start_llm ./both.http --reply Done.
        use_history "killed-$n.jsonl"
        # All descriptors of tools are opened in other processes, which strace does not follow.
        traced -o /dev/null -e trace=openat -e inject=openat:signal=KILL:when="$n" chat --yes -T ./edit -T ./other go || :
        [[ -e $HISTORY ]] || continue
        run_expect 0 chat --no-store -p echo next
        run_expect 0 chat -p echo next
        results=$(jq -r 'select(.role == "tool") | 1' "$HISTORY" | wc -l)
        jq -r '.files_modified // [] | .[]' "$HISTORY" | sort -u >named
        case $results in
        0) ;;
        1) grep -qx a named || fail "killed at $n: $(cat "$HISTORY")" ;;
        *) [[ $(tr '\n' ' ' <named) == 'a b ' ]] || fail "killed at $n: $(cat "$HISTORY")" ;;
        esac
        rm -f "$HISTORY"
    done
}

# The second answer is waited for, and its beginning is in a file.
answer_awaited() {
    cat killed.jsonl.partial.* 2>/dev/null | grep -q files_modified
}

# ---- what a tool is, and what it gets

@test "tools: no shell, the arguments on standard input, no key of ours, a group of its own" {
    put_tool look 'cat; echo; echo "$#"; env; ps -o pgid= -p $$ | tr -d " " >group; echo $$ >pid'
    start_llm --call 'look {"x":"$(touch ran); `touch ran`"}' --reply ok
    ANTHROPIC_API_KEY=other-key CHAT_API_KEY=third-key-3 HEADER='Bearer third-key-3' PLAIN=seen run_expect 0 chat --yes -T ./look go
    [[ ! -e ran ]]
    jq -r 'select(.role == "tool").content' "$HISTORY" >got
    [[ $(sed -n 1p got) == '{"x":"$(touch ran); `touch ran`"}' ]]
    [[ $(sed -n 2p got) == 0 ]]
    grep -qx PLAIN=seen got
    grep -q '^HOME=' got
    if grep -E 'test-key-1|other-key|third-key-3|^(OPENAI|ANTHROPIC|CHAT)_API_KEY' got; then fail 'a key came through'; fi
    same group pid group
    # Nor when it is asked for its declaration, and nor those that are not in use.
    printf '#!/bin/sh\nenv >schema.env; echo '\''{"name":"look"}'\''\n' >look
    CHAT_API_KEY=third-key-3 CHAT_API_KEY_COMMAND='echo key' PLAIN=seen run_expect 0 chat --no-store -p echo -T ./look hello
    grep -qx PLAIN=seen schema.env
    if grep -E 'KEY' schema.env; then fail 'a key came through'; fi
}

@test "tools: a tool is a path, or a name in the directory of tools; never a name in the working directory" {
    mkdir -p "$HOME/.config/chathist/tools" sub
    put_tool "$HOME/.config/chathist/tools/mine" 'echo from home'
    put_tool mine 'echo from here'
    put_tool sub/other 'echo other'
    start_llm --call 'mine {}' --reply ok --call 'other {}' --reply ok --call 'mine {}' --reply ok
    run_expect 0 chat --yes -T mine go
    run_expect 0 chat --yes -T sub/other go
    run_expect 0 chat --yes -T "$PWD/mine" go
    json_is "$HISTORY" 'select(.role == "tool").content' 'from home' '' other '' 'from here' ''
    put_tool only 'echo'
    run_expect 2 chat -T only go
    stderr_is "chat: no tool 'only' in '$HOME/.config/chathist/tools' (a path has a slash in it) (see 'chat --help')"
    export XDG_CONFIG_HOME=$PWD/config
    mkdir -p config/chathist/tools
    put_tool config/chathist/tools/mine 'echo elsewhere'
    start_llm --call 'mine {}' --reply ok
    run_expect 0 chat --no-store --yes -T mine go
    request_messages 2 | tail -n 2 >last
    is last last tool:elsewhere ''
}

@test "tools: what is no tool is told before anything is asked or stored" {
    start_llm --reply no
    run_expect 2 chat -T ./none go
    stderr_is "chat: cannot use the tool './none': cannot run './none': No such file or directory"
    printf '#!/bin/sh\necho "{}"\n' >bad
    chmod +x bad
    run_expect 2 chat --json -T ./bad go
    stdout_json '.type, .code, .message' error 2 "cannot use the tool './bad': its declaration has no name"
    printf '#!/bin/sh\necho oh no >&2; exit 4\n' >bad
    run_expect 2 chat -T ./bad go
    stderr_is "chat: cannot use the tool './bad': the tool failed with exit status 4 standard error: oh no"
    put_tool a 'echo'
    cp a b
    run_expect 2 chat -T ./a -T ./b go
    stderr_is "chat: two tools are called 'a'"
    requests_are 0
    [[ ! -e $HISTORY ]]
}

@test "tools: a signal while a declaration is waited for ends it, with the tool" {
    printf '#!/bin/sh\necho $$ >pid.new; mv pid.new pid; exec sleep 300\n' >slow
    chmod +x slow
    start_llm --reply no
    background chat -T ./slow go
    wait_for test -s pid
    kill -TERM "$BG"
    finish 143
    wait_for gone "$(cat pid)"
    requests_are 0
}

# ---- the user configuration

@test "tools: the configuration names default tools, and those that are not asked for" {
    mkdir -p "$HOME/.config/chathist/tools"
    put_tool "$HOME/.config/chathist/tools/read_one" 'echo one'
    put_tool "$PWD/read_two" 'echo two'
    put_tool remove 'touch removed'
    printf 'tools = read_one\t%s\nallow_tools = write read_*\n' "$PWD/read_two" >"$HOME/.config/chathist/config"
    start_llm --call 'read_one {}' --call 'read_two {}' --reply ok
    alone 0 chat go
    stderr_empty
    json_is "$HISTORY" 'select(.role == "tool").content' one '' two ''
    # -T takes their place; what is not allowed is asked for.
    start_llm --call 'remove {}' --call 'read_one {}' --reply ok
    alone 0 chat --no-store -T ./remove go
    [[ ! -e removed ]]
    request_messages 3 | tail -n 1 >last
    is last last "tool:there is no tool 'read_one'"
    start_llm --call 'read_one {}' --reply ok
    alone 9 chat --no-store -T '' go
    # A path in it that depends on the working directory is none.
    configure 'tools = ./remove'
    run_expect 2 chat --no-store go
    stderr_is "chat: cannot use the tool './remove': 'tools' takes names and paths that begin with a slash"
    # The environment allows nothing.
    rm "$HOME/.config/chathist/config"
    start_llm --call 'remove {}' --reply ok
    CHAT_ALLOW_TOOLS='*' CHAT_TOOLS=read_one alone 0 chat --no-store -T ./remove go
    [[ ! -e removed ]]
}

@test "tools: signals of children that were ignored for us hide no failure and cut no output" {
    put_tool first 'sleep 0.3; echo one'
    put_tool second 'sleep 0.3; exit 3'
    start_llm openai/tools-two --reply Done.
    run_expect 0 env --ignore-signal=CHLD chat --yes -T ./first -T ./second go
    json_is "$HISTORY" 'select(.role == "tool").content' one '' 'the tool failed with exit status 3' ''
}

# ---- consent

@test "tools: without a terminal a call is refused, which model and user are told" {
    put_tool step 'touch ran'
    start_llm openai/tools-steps --call 'step {}' --reply 'As you wish.'
    alone 0 chat -T ./step go
    stdout_is 'As you wish.'
    stderr_is 'chat: tool calls are refused: there is no terminal to ask on (--yes, or allow_tools in the user configuration)'
    [[ ! -e ran ]]
    json_is "$HISTORY" 'select(.role == "tool").content' \
        'the tool was not run: it is not allowed, and there is no terminal to ask the user on' \
        'the tool was not run: it is not allowed, and there is no terminal to ask the user on' \
        'the tool was not run: it is not allowed, and there is no terminal to ask the user on'
}

@test "tools: each call is asked for on the terminal, before any is run" {
    put_tool step 'jq -r .n >>ran; echo ok'
    start_llm openai/tools-steps --reply Done.
    run_expect 0 on_tty --fds '' --wait '(?s)step.*"n":1.*run .\w+.\?' --type 'y\n' --wait '(?s)n":2.*run .\w+.\?' --type 'n\n' \
        sh -c 'chat -T ./step go >out 2>err </dev/null'
    stdout_has 'the model calls step' '{"n":1}' $'\e[7mrun \'step\'?\e[0m [y]es, [n]o, [a]lways (this tool, this run): '
    is out out Done.
    [[ ! -s err ]]
    is ran ran 1
    json_is "$HISTORY" 'select(.role == "tool").content' ok '' 'the user refused to have the tool run'
    run_expect 0 hist-show --json current
    stdout_json .role user assistant tool tool assistant
}

@test "tools: always holds for that tool and that run; what is typed before the question is no answer" {
    put_tool step 'echo ok'
    put_tool other 'echo other'
    start_llm --set 'delay-headers: 300ms' --call 'step {"n":1}' --call 'step {"n":2}' --call 'other {}' --reply Done.
    run_expect 0 on_tty --fds '' --type 'y\ny\ny\n' --wait '(?s)n":1.*run .\w+.\?' --type 'what\n' --wait 'run .\w+.\?' --type 'A\n' \
        --wait '(?s)calls other.*run .\w+.\?' --type 'no\n' sh -c 'chat -T ./step -T ./other go >out 2>&1 </dev/null'
    stdout_lacks '{"n":2}'
    stdout_has 'the answer is y, n or a, and then Enter'
    is out out Done.
    json_is "$HISTORY" 'select(.role == "tool").content' ok '' ok '' 'the user refused to have the tool run'
}

@test "tools: the end of what is typed is no" {
    put_tool step 'touch ran'
    start_llm --call 'step {}' --reply Done.
    run_expect 0 on_tty --fds '' --wait 'run .\w+.\?' --eof sh -c 'chat -T ./step go >out 2>&1 </dev/null'
    is out out Done.
    [[ ! -e ran ]]
}

@test "tools: what is shown of a call is visible, and all of it can be shown" {
    put_tool step 'echo ok'
    start_llm openai/tools-escapes --reply Done.
    run_expect 0 on_tty --fds '' --wait '(?s)s shows all.*run .\w+.\?' --type 's\n' --wait '(?s)THE END.*run .\w+.\?' --type 'y\n' \
        sh -c 'chat -T ./step go >out 2>&1 </dev/null'
    stdout_has '\u001b[2J' '\u202e'
    stdout_lacks $'\e[2J' $'\u202e'
    grep -q 'more bytes; s shows all' "$OUT"
    is out out Done.
}

@test "tools: hidden characters of a call are shown, and a dumb terminal gets no styles" {
    put_tool step 'echo ok'
    start_llm --call $'step {"n":"a\u200bb\u00a0c\ufe0fd\u200de"}' --reply Done.
    TERM=dumb run_expect 0 on_tty --fds '' --wait 'run .\w+.\?' --type 'n\n' sh -c 'chat -T ./step go >out 2>&1 </dev/null'
    stdout_has '{"n":"a\u200bb\u00a0c\ufe0fd\u200de"}' "run 'step'? [y]es"
    stdout_lacks $'\e'
}

@test "tools: Ctrl-C at the question ends the turn, and the history replays" {
    put_tool step 'touch ran'
    start_llm openai/tools-steps --reply Done.
    run_expect 130 on_tty --fds '' --wait '(?s)n":1.*run .\w+.\?' --type 'y\n' --wait '(?s)n":2.*run .\w+.\?' --type '\x03' \
        sh -c 'chat -T ./step go >out 2>&1 </dev/null'
    [[ ! -e ran ]]
    requests_are 1
    json_is "$HISTORY" 'select(.role == "tool") | .tool_call_id, .content' \
        call_1 'the tool was not run: the turn was interrupted' call_2 'the tool was not run: the turn was interrupted'
    run_expect 0 chat 'go on'
    json_is "$RECORD/2.json" '.messages[].role' user assistant tool tool assistant user
}

# ---- interruption

@test "tools: a signal while tools run: what is done is stored, the rest says so, children are killed" {
    for signal in INT TERM HUP; do
        rm -f "$HISTORY" pid first.pid
        put_tool first 'echo $$ >first.pid; echo one'
        put_tool second 'sleep 300 & echo $! >pid.new; mv pid.new pid; wait'
        start_llm openai/tools-two --reply Done.
        background chat --yes -s s -T ./first -T ./second go
        wait_for test -s pid
        # chat has waited for the first.
        wait_for test -s first.pid
        wait_for gone "$(cat first.pid)"
        sleep 0.3
        kill "-$signal" "$BG"
        finish $((128 + $(kill -l "$signal")))
        wait_for gone "$(cat pid)"
        requests_are 1
        json_is "$HISTORY" 'select(.role == "tool") | .tool_call_id, .content' call_a one '' call_b 'the tool was interrupted'
        run_expect 0 chat -s s 'go on'
        json_is "$RECORD/2.json" '.messages[].role' user assistant tool tool assistant user
    done
}

# ---- what is shown

@test "tools: with -v a line for each call and result; nothing without a terminal or with -q" {
    put_tool step 'printf "ok\nand \033[2J more"'
    start_llm --call 'step {"n": 1}' --reply Done. --call 'step {"n": 1}' --reply Done.
    run_expect 0 chat -v --no-store --yes -T ./step go
    stderr_has $'tool_call step {"n": 1}\ntool_result step ok and ^[[2J more\n'
    run_expect 0 chat -q -v --no-store --yes -T ./step go
    stderr_lacks 'tool_call ' 'tool_result '
}

@test "tools: on a terminal calls and results are a dim line each that fits" {
    put_tool step 'seq 1000'
    start_llm --call 'step {"n": 1}' --reply Done.
    run_expect 0 on_tty --size 40x10 --fds 2 chat --no-store --yes -T ./step go
    stdout_has $'\e[38;5;243mtool_call step {"n": 1}\e[0m\r\n' $'\e[38;5;243mtool_result step (1000 lines) 1 2 3 4 5…\e[0m\r\n'
}

@test "tools: events tell of calls and results" {
    put_tool first 'echo one'
    start_llm openai/tools-two --reply Done.
    run_expect 0 chat --json --yes -T ./first go
    stdout_json 'select(.type != "session_id" and .type != "done" and .type != "usage") | tojson' '{"type":"text","text":"Let me see."}' \
        '{"type":"tool_call","id":"call_a","name":"first","args":{}}' \
        '{"type":"tool_call","id":"call_b","name":"second","args":{}}' \
        '{"type":"tool_result","tool_call_id":"call_a","content":"one\n","failed":false}' \
        '{"type":"tool_result","tool_call_id":"call_b","content":"there is no tool '\''second'\''","failed":true}' \
        '{"type":"text","text":"Done."}'
    stdout_json 'select(.type == "done").message_id' "$(tail -n 1 "$HISTORY" | jq -r .id)"
}

@test "tools: -x prints the code of the last answer" {
    put_tool step 'echo ok'
    start_llm --call 'step {}' --reply $'Here:\n```sh\nls -l\n```\n'
    run_expect 0 chat -x --yes -T ./step go
    stdout_is 'ls -l'
}
