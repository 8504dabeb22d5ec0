#!/usr/bin/env bats
#
# chat: prompt, session, context, configuration, keys. The wire is in tests/feature/wire.bats, what goes wrong in the
# middle of a turn in tests/feature/turn.bats, the terminal in tests/feature/terminal.bats.

# shellcheck disable=SC2016

load ../helper

# prompts_are TEXT...: the user lines in the history.
prompts_are() {
    json_is "$HISTORY" 'select(.role == "user") | .content' "$@"
}

# sessions_are ID...: of all lines of the history, in order, each run of one session once.
sessions_are() {
    jq -r .session_id "$HISTORY" | uniq >sessions
    is 'sessions' sessions "$@"
}

current_is() {
    pointer_is "$HISTORY.session" "$1"
}

# The number of the last request.
last_request() {
    find "$RECORD" -name '*.json' -printf '%f\n' | sort -n | sed -n '$s/[.]json//p'
}

# ---- the prompt

@test "chat: arguments are joined by blanks, options stand anywhere, -- ends them" {
    use_echo
    use_history
    run_expect 0 chat tell -s s1 me  'two  things'
    stdout_is 'tell me two  things' '[1 message]'
    stderr_empty
    run_expect 0 chat -s s1 -- -s --json
    stdout_is '-s --json' '[3 messages]'
    prompts_are 'tell me two  things' '-s --json'
}

@test "chat: standard input is the prompt, its one final newline dropped" {
    use_echo
    use_history
    printf 'from a pipe\n' | run_expect 0 chat -N
    stdout_is 'from a pipe' '[1 message]'
    printf ' a\n\nb \n\n' >file
    run_expect 0 chat -N <file
    printf 'none' | run_expect 0 chat -N
    json_is "$HISTORY" 'select(.role == "user") | .content | tojson' '"from a pipe"' '" a\n\nb \n"' '"none"'
}

@test "chat: standard input is a socket" {
    use_echo
    cat >pair.py <<'END'
import socket, subprocess, sys
a, b = socket.socketpair()
a.sendall(b'from a socket\n')
a.shutdown(socket.SHUT_WR)
sys.exit(subprocess.run(sys.argv[1:], stdin=b).returncode)
END
    run_expect 0 python3 pair.py chat and more
    stdout_is 'from a socket' '' 'and more' '[1 message]'
}

@test "chat: standard input, a blank line, the arguments" {
    use_echo
    use_history
    printf 'line 1\nline 2\n' | run_expect 0 chat explain this
    prompts_are $'line 1\nline 2\n\nexplain this'
    # An empty one is nothing.
    printf '' | run_expect 0 chat -N only this
    run_expect 0 chat -N only that </dev/null
    json_is "$HISTORY" 'select(.role == "user") | .content' $'line 1\nline 2\n\nexplain this' 'only this' 'only that'
}

@test "chat: --no-stdin leaves standard input alone" {
    use_echo
    printf 'one\ntwo\nthree\n' >list
    while read -r word <&4; do
        run_expect 0 chat -N --no-stdin "$word" <&4
        stdout_is "$word" '[1 message]'
        echo "$word" >>words
    done 4<list
    same 'words' list words
}

@test "chat: waiting for a silent standard input is said after 3 seconds, once, and not with -q" {
    use_echo
    mkfifo fifo quiet
    exec 5<>fifo 6<>quiet
    start=$(date +%s%3N)
    chat --no-store -q <quiet >quiet.out 2>quiet.err 3>&- 4>&- 5>&- 6>&- &
    quiet=$!
    chat --no-store <fifo >out 2>err 3>&- 4>&- 5>&- 6>&- &
    loud=$!
    BACKGROUND+=("$quiet" "$loud")
    sleep 2
    [[ ! -s err || $(($(date +%s%3N) - start)) -ge 3000 ]]
    wait_for test -s err
    echo prompt >&5
    echo prompt >&6
    exec 5>&- 6>&-
    wait "$loud"
    wait "$quiet"
    BACKGROUND=()
    [[ $(cat err) == 'chat: waiting for standard input (--no-stdin leaves it alone)' ]]
    [[ $(cat out) == $'prompt\n[1 message]' && $(cat quiet.out) == $'prompt\n[1 message]' && ! -s quiet.err ]]
}

@test "chat: no prompt at all" {
    use_echo
    use_history
    for args in '' -N '-S be\ brief'; do
        eval "run_expect 2 chat $args"
        stdout_empty
        stderr_matches '^chat: no prompt'
    done
    printf '' | run_expect 2 chat
    run_expect 2 chat ''
    run_expect 2 chat $' \n\t'
    stderr_matches '^chat: no prompt'
    for args in "-m ''" '-m echo:' '-m openai:'; do
        eval "run_expect 2 chat $args hello"
        stderr_matches "^chat: '(|echo:|openai:)' names no model"
    done
    [[ ! -e $HISTORY ]]
}

@test "chat: 12 MB on standard input" {
    use_echo
    use_history
    yes 'a line of text of 32 characters' | head -c 12000000 >big
    run_expect 0 chat -s s1 <big
    json_is "$HISTORY" '.content | length' 11999999 12000011
    run_expect 0 chat -s s1 again
    stdout_is again '[3 messages]'
}

@test "chat: bytes that are no text become U+FFFD, with a notice; zero bytes and PDFs are refused" {
    use_echo
    use_history
    printf 'a\xffb\xe4\xbdc' | run_expect 0 chat $'d\xc3'
    stdout_bytes_are 'a\0357\0277\0275b\0357\0277\0275c\n\nd\0357\0277\0275\n[1 message]\n'
    json_is "$HISTORY" 'select(.role == "user") | .content | explode | tojson' \
        '[97,65533,98,65533,99,10,10,100,65533]'
    stderr_is "chat: standard input is not UTF-8: what cannot be read becomes U+FFFD (iconv converts it)"
    printf '\xff\xfea\0' | run_expect 2 chat x
    stderr_is 'chat: cannot use standard input: it is UTF-16 (iconv -f UTF-16 -t UTF-8 converts it)'
    for text in 'a\0b' '\x89PNG\r\n\x1a\n\0'; do
        printf '%b' "$text" | run_expect 2 chat x
        stderr_is 'chat: cannot use standard input: it is a binary file (chat -f - attaches images and PDFs)'
    done
    printf '%%PDF-1.7\n' | run_expect 2 chat x
    stderr_is 'chat: cannot use standard input: it is a PDF (chat -f - attaches images and PDFs)'
}

# ---- files

@test "chat: -f attaches text files, fenced, with their names" {
    use_echo
    use_history
    printf 'int x;\n' >a.c
    printf 'no newline' >'b c.txt'
    run_expect 0 chat -f a.c -f 'b c.txt' explain
    prompts_are $'explain\n\n```a.c\nint x;\n```\n\n```b c.txt\nno newline\n```'
    json_is "$HISTORY" 'select(.role == "user") | .files | tojson' '["a.c","b c.txt"]'
    printf 'piped\n' | run_expect 0 chat -N -f a.c
    run_expect 0 chat -N -f a.c
    run_expect 0 chat -N -f <(printf 'from a process\n') -- x
    json_is "$HISTORY" 'select(.role == "user") | .content | split("\n")[-2]' 'no newline' 'int x;' 'int x;' 'from a process'
}

@test "chat: -f of a text with fences is fenced by a longer one" {
    use_echo
    use_history
    # shellcheck disable=SC2016
    printf 'a\n```sh\nb\n```\n````\nc\n````\n' >notes.md
    run_expect 0 chat -f notes.md
    # shellcheck disable=SC2016
    prompts_are '`````notes.md
a
```sh
b
```
````
c
````
`````'
}

@test "chat: words that are names of files, where the shell put them after -f" {
    use_echo
    touch b.c c.c
    echo 'int a;' >a.c
    run_expect 0 chat --once -f ./*.c 'list the bugs'
    stderr_is "chat: './b.c' and 1 more file are not attached, but words of the prompt: -f takes one FILE, and may be repeated"
    run_expect 0 chat --once 'list the bugs' -f a.c ./b.c
    stderr_is "chat: './b.c' is not attached, but a word of the prompt: -f takes one FILE, and may be repeated"
    touch d.c
    run_expect 0 chat --once -f ./*.c
    stderr_is "chat: './b.c' and 2 more files are not attached, but words of the prompt: -f takes one FILE, and may be repeated"
    run_expect 0 chat --once -q -f ./*.c
    stderr_empty
    # Without -f they are words, as is the name of a directory.
    run_expect 0 chat --once what is in a.c
    stderr_empty
    mkdir src
    run_expect 0 chat --once -f a.c is src the place
    stderr_empty
}

@test "chat: a text that is empty or not UTF-8 is attached with a notice" {
    use_echo
    touch empty
    printf 'caf\xe9\n' >latin
    printf 'caf\xc3\xa9\n' >utf8
    run_expect 0 chat --once -f empty 'why?'
    stderr_is "chat: 'empty' is empty"
    run_expect 0 chat --once -f latin -f utf8 'what?'
    stdout_has $'caf\xef\xbf\xbd' $'caf\xc3\xa9'
    stderr_is "chat: 'latin' is not UTF-8: what cannot be read is sent as U+FFFD (iconv converts it)"
    run_expect 0 chat --once -q -f latin -f empty 'what?'
    stderr_empty
    run_expect 0 on_tty --wait '> ' --type '/file latin\r' --wait 'with the next prompt' --type 'what?\r' --wait 'message\]' \
        --type '/quit\r' chat
    [[ $(grep -c 'is not UTF-8' "$OUT") == 1 ]] || fail 'said once'
}

# Images of the four kinds: a.png, b.jpg, c.gif, d.webp.
make_images() {
    printf '\x89PNG\r\n\x1a\n' >a.png
    printf '\xff\xd8\xff\0' >b.jpg
    printf 'GIF89a' >c.gif
    printf 'RIFF\1\2\3\4WEBP' >d.webp
}

@test "chat: -f attaches images: sent with the prompt, counted and named in the history, not stored" {
    use_history
    make_images
    echo text >notes
    start_llm --reply hi
    run_expect 0 chat -f a.png -f notes -f b.jpg 'what is it?'
    stderr_empty
    [[ $(request 1 | jq -r '.messages[0].content[].type' | xargs) == 'text image_url image_url' ]]
    [[ $(request 1 | jq -r '.messages[0].content[0].text') == $'what is it?\n\n```notes\ntext\n```' ]]
    request 1 | jq -r '.messages[0].content[1:][].image_url.url' >urls
    is urls urls "data:image/png;base64,$(base64 <a.png)" "data:image/jpeg;base64,$(base64 <b.jpg)"
    head -n 1 history.jsonl >line
    json_is line '[.images, .files] | tojson' '[2,["a.png","notes","b.jpg"]]'
    [[ $(wc -c <history.jsonl) -lt 1300 ]] || fail 'data is stored'
    json_is line '.attachments[] | "\(.sha256)  \(.name) \(.type) \(.bytes)"' "$(sha256sum a.png) image/png 8" \
        "$(sha256sum b.jpg) image/jpeg 4"
    # The next turn does not send them again, and says so; the one after it need not.
    run_expect 0 chat 'and now?'
    stderr_is 'chat: a.png, b.jpg of an earlier message are not sent again; attach them with -f'
    request_messages_are 2 $'user:what is it?\n\n```notes\ntext\n```' assistant:hi 'user:and now?'
    run_expect 0 chat --dry-run -f a.png x
    stderr_empty
    run_expect 0 chat --dry-run -v -f c.gif -f d.webp x
    stdout_json '.messages[-1].content[1:][].image_url.url' "data:image/gif;base64,$(base64 <c.gif)" \
        "data:image/webp;base64,$(base64 <d.webp)"
    stderr_has 'index=4 role=user content_length=1 has_tool_calls=false images=2'
    run_expect 0 chat -p echo -N -f a.png x
    stdout_is x '[1 message, 1 image]'
}

@test "chat: a prompt that is only an image" {
    use_history
    make_images
    start_llm --reply hi
    run_expect 0 chat -f a.png
    stdout_is hi
    [[ $(request 1 | jq -c '[.messages[].content[].type]') == '["image_url"]' ]]
    json_is history.jsonl '[.role, .content, .images] | tojson' '["user","",1]' '["assistant","hi",null]'
    ANTHROPIC_API_KEY=k run_expect 0 chat --dry-run -N -m anthropic:m -f a.png -f d.webp
    stdout_json '.messages | tojson' '[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"'"$(base64 <a.png)"'"}},{"type":"image","source":{"type":"base64","media_type":"image/webp","data":"'"$(base64 <d.webp)"'"}}]}]'
    # One that was never answered, and text behind it.
    hist_line s user '' '' '{"images":1}' >history.jsonl
    run_expect 0 chat -s s again
    stderr_is 'chat: 1 image of an earlier message is not sent again; attach it with -f'
    request_messages_are 2 user:again
    hist_line t user first >>history.jsonl
    run_expect 0 chat -s t -f a.png
    request_messages_are 3 'user:first[image_url]'
}

@test "chat: images are not sent again by --regenerate and --edit, unless they are attached again" {
    use_history
    make_images
    start_llm --reply hi
    run_expect 0 chat -s s -f a.png -f b.jpg 'what is it?'
    run_expect 0 chat -s s --regenerate
    stderr_is 'chat: a.png, b.jpg of an earlier message are not sent again; attach them with -f'
    request_messages_are 2 'user:what is it?'
    run_expect 0 chat -s s --regenerate -q
    stderr_empty
    run_expect 0 chat -s s --regenerate -f a.png
    stderr_is 'chat: b.jpg of an earlier message is not sent again; attach it with -f'
    request_messages_are 4 'user:what is it?[image_url]'
    json_is history.jsonl 'select(.role == "user") | .images' 2
    run_expect 0 chat -s s --edit 'and this?'
    stderr_is 'chat: a.png, b.jpg of an earlier message are not sent again; attach them with -f'
    run_expect 0 chat -s s --edit -f a.png
    stderr_empty
    request_messages_are 6 'user:[image_url]'
    run_expect 0 chat -s s --edit x
    stderr_is 'chat: a.png of an earlier message is not sent again; attach it with -f'
    echo text >notes
    run_expect 2 chat -s s --regenerate -f notes
    stderr_is "chat: --regenerate takes no prompt, and 'notes' is neither an image nor a PDF (see 'chat --help')"
    requests_are 7
}

make_pdf() {
    printf '%%PDF-1.7\n\0binary\n%%%%EOF\n' >paper.pdf
}

@test "chat: -f attaches a PDF, for providers that take one" {
    use_history
    make_pdf
    start_llm --reply hi
    run_expect 0 chat -m openai:m -f paper.pdf 'summarise it'
    stderr_empty
    request 1 | jq -c '.messages[0].content[1]' >part
    json_is part '[.type, .file.filename, .file.file_data] | tojson' '["file","paper.pdf","data:application/pdf;base64,'"$(base64 -w 0 <paper.pdf)"'"]'
    head -n 1 history.jsonl >line
    json_is line '[.images, .files, .attachments] | tojson' \
        '[null,["paper.pdf"],[{"name":"paper.pdf","type":"application/pdf","bytes":'"$(wc -c <paper.pdf)"',"sha256":"'"$(sha256sum paper.pdf | cut -c 1-64)"'"}]]'
    run_expect 0 "$BIN/tests/tools/check-schema" "$ROOT/docs/history-line.schema.json" "$HISTORY"
    run_expect 0 chat -m openai:m 'and the second page?'
    stderr_is 'chat: paper.pdf of an earlier message is not sent again; attach it with -f'
    ANTHROPIC_API_KEY=k run_expect 0 chat --dry-run -N -m anthropic:m -f paper.pdf x
    stdout_json '.messages[0].content[0] | del(.cache_control) | tojson' \
        '{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"'"$(base64 -w 0 <paper.pdf)"'"},"title":"paper.pdf"}'
    OPENROUTER_API_KEY=k run_expect 0 chat --dry-run -N -m openrouter:m -f paper.pdf x
    stdout_json '.messages[0].content[].type' text file
    run_expect 0 chat -p echo -N -v -f paper.pdf -f paper.pdf x
    stdout_is x '[1 message, 2 documents]'
    stderr_has 'has_tool_calls=false documents=2'
    # Its name is what follows the last slash, and standard input has none.
    run_expect 0 chat -p echo -N -f "$PWD/paper.pdf" x
    run_expect 0 chat -p echo -N -f - x <paper.pdf
    stdout_is x '[1 message, 1 document]'
    jq -r '.attachments[]?.name' history.jsonl | tail -n 2 >names
    is names names paper.pdf stdin
}

@test "chat: a provider that takes no PDF: status 2, nothing asked, nothing stored" {
    use_history
    make_pdf
    start_llm --reply hi
    for provider in gemini mistral groq deepseek ollama llamacpp; do
        CHAT_API_KEY=k CHAT_BASE_URL=$OPENAI_BASE_URL run_expect 2 chat -m $provider:m -f paper.pdf x
        stderr_is "chat: provider '$provider' takes no PDF: convert 'paper.pdf' to text, for example with pdftotext(1)"
    done
    requests_are 0
    [[ ! -e $HISTORY ]]
}

@test "chat: -f of what cannot be attached: status 2, nothing asked, nothing stored" {
    use_history
    start_llm --reply hi
    printf '\x89PNG\r\n\x1a\nxx' >image.png
    printf 'a\0b' >binary
    mkdir dir
    run_expect 2 chat -f missing x
    stderr_is "chat: cannot open 'missing': No such file or directory"
    run_expect 2 chat -f dir x
    stderr_is "chat: cannot attach 'dir': it is a directory; its files can be sent with: tail -n +1 dir/* | chat ..."
    run_expect 2 chat -f dir/ x
    stderr_is "chat: cannot attach 'dir/': it is a directory; its files can be sent with: tail -n +1 dir/* | chat ..."
    run_expect 2 chat -f https://host/page x
    stderr_is "chat: cannot attach 'https://host/page': it is a URL; its page can be sent with: curl -fsSL https://host/page | chat -f - ..."
    # The command can be pasted, whatever the name is.
    run_expect 2 chat -f "http://host/'; id; '" x
    stderr_has "curl -fsSL 'http://host/'\\''; id; '\\''' | chat -f - ..."
    mkdir -- '-a dir'
    run_expect 2 chat -f '-a dir' x
    stderr_has "tail -n +1 -- '-a dir'/* | chat ..."
    run_expect 2 chat -f binary x
    stderr_is "chat: cannot attach 'binary': it is a binary file"
    truncate -s 20971521 image.png
    run_expect 2 chat -f image.png x
    stderr_is "chat: cannot attach 'image.png': it is over 20 MiB"
    truncate -s 20971520 image.png
    run_expect 2 chat -f image.png -f image.png -f image.png -f image.png x
    stderr_is "chat: cannot attach 'image.png': the attachments are over 64 MiB together"
    run_expect 2 chat --json -f missing x
    stdout_json '.type, .code' error 2
    requests_are 0
    [[ ! -e $HISTORY ]]
}

# ---- sessions

@test "chat: the first message makes a session, the second continues it" {
    use_history
    start_llm --reply 'Hi, Ada.' --reply 'Ada.'
    run_expect 0 chat my name is Ada
    run_expect 0 chat what is my name
    stdout_is 'Ada.'
    request_messages_are 2 'user:my name is Ada' 'assistant:Hi, Ada.' 'user:what is my name'
    session=$(head -n 1 "$HISTORY.session")
    [[ $session =~ ^sess_[0-9]{13}_[0-9a-f]{6}$ ]]
    sessions_are "$session"
    json_is "$HISTORY" .role user assistant user assistant
    json_is "$HISTORY" 'keys_unsorted | tojson' '["id","session_id","timestamp","role","content"]' \
        '["id","session_id","timestamp","role","content","reply_to","server","model","provider","usage","finish_reason"]' \
        '["id","session_id","timestamp","role","content"]' \
        '["id","session_id","timestamp","role","content","reply_to","server","model","provider","usage","finish_reason"]'
    run_expect 0 jq -r '.id, .timestamp' "$HISTORY"
    [[ $(grep -cxE '[0-9]{13}-[0-9a-f]{8}' "$OUT") == 4 ]]
    [[ $(grep -cxE '[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{6}\+00:00' "$OUT") == 4 ]]
}

@test "chat: -N -s begins a session under a chosen id, once" {
    use_history
    use_echo
    run_expect 0 chat -s other hello
    CHAT_SESSION=pinned run_expect 0 chat -N -s mine one
    stdout_is one '[1 message]'
    # It is the current one.
    run_expect 0 chat two
    stdout_is two '[3 messages]'
    json_is "$HISTORY" 'select(.role == "user") | .session_id' other mine mine
    cp "$HISTORY" before
    for id in mine other; do
        run_expect 2 chat -N -s $id three
        stderr_is "chat: session '$id' has begun already: -s without --new continues it, and hist-new --reset empties its context (see 'chat --help')"
        stdout_empty
    done
    cmp "$HISTORY" before
    # The id is exact, also one that ends another one.
    hist_line sess_1719500000000_f0e1d2 user x >>"$HISTORY"
    run_expect 0 chat -N -s f0e1d2 four
    stdout_is four '[1 message]'
    run_expect 2 chat -N -s 'no id' x
}

@test "chat: CHAT_SESSION pins a session, -s and -N override it" {
    use_echo
    use_history
    run_expect 0 chat hello
    current=$(head -n 1 "$HISTORY.session")
    CHAT_SESSION=pinned run_expect 0 chat one
    CHAT_SESSION=pinned run_expect 0 chat two
    stdout_is two '[3 messages]'
    current_is "$current"
    CHAT_SESSION=pinned run_expect 0 chat -s named three
    stdout_is three '[1 message]'
    CHAT_SESSION=pinned run_expect 0 chat -N four
    stdout_is four '[1 message]'
    [[ $(head -n 1 "$HISTORY.session") != "$current" ]]
    CHAT_SESSION='' run_expect 0 chat five
    stdout_is five '[3 messages]'
}

@test "chat: -c takes the session last used, however old, and makes it current" {
    use_echo
    use_history
    run_expect 0 chat -c one
    stdout_is one '[1 message]'
    sessions_are "$(head -n 1 "$HISTORY.session")"
    { hist_line old user before 2020-01-01T00:00:00.000000+00:00
      hist_line old assistant yes 2020-01-01T00:00:01.000000+00:00; } >"$HISTORY"
    run_expect 0 chat -c two
    stdout_is two '[3 messages]'
    current_is old
    run_expect 0 chat three
    stdout_is three '[5 messages]'
}

@test "chat: only one of -s, -N and -c" {
    use_echo
    for args in '-N -c' '-c -s a'; do
        # shellcheck disable=SC2086
        run_expect 2 chat $args hello
        stderr_has 'only one of'
    done
}

# ---- the system prompt

@test "chat: -S is the session's system prompt from now on" {
    use_history
    start_llm --echo-context
    run_expect 0 chat -s s -S 'be brief' hello
    stdout_is 'system:be brief|user:hello'
    json_is "$HISTORY" '.role + ":" + .content' 'system:be brief' user:hello 'assistant:system:be brief|user:hello'
    run_expect 0 chat -s s -S 'be brief' two
    run_expect 0 chat -s s three
    [[ $(grep -c '"role":"system"' "$HISTORY") == 1 ]]
    request_messages 3 | head -n 1 >first
    is 'first message' first 'system:be brief'
    run_expect 0 chat -s s -S 'be verbose' four
    run_expect 0 chat -s s five
    [[ $(request_messages 5 | head -n 1) == 'system:be verbose' ]]
    [[ $(request 5 | jq '[.messages[] | select(.role == "system")] | length') == 1 ]]
    run_expect 0 chat -s s -S '' six
    [[ $(request 6 | jq -r '.messages[0].role') == user ]]
    run_expect 0 chat -s s seven
    [[ $(request 7 | jq -r '.messages[0].role') == user ]]
    run_expect 0 chat -s other eight
    request_messages_are 8 user:eight
}

# ---- what is not stored

@test "chat: --no-store stores nothing, and moves nothing, with the session's context" {
    use_history
    start_llm --echo-context
    run_expect 0 chat --no-store hello
    stdout_is user:hello
    run_expect 0 find . -mindepth 1
    stdout_empty
    run_expect 0 chat hello
    remember "$HISTORY"
    remember "$HISTORY.session"
    run_expect 0 chat --no-store -S system more
    stdout_is 'system:system|user:hello|assistant:user:hello|user:more'
    run_expect 0 chat --no-store -N alone
    stdout_is 'user:alone'
    run_expect 0 chat --no-store -c hello
    unchanged "$HISTORY"
    unchanged "$HISTORY.session"
}

@test "chat: --dry-run prints the request; nothing is sent or stored" {
    use_history
    start_llm --reply hi
    run_expect 0 chat --dry-run -S system -o seed=1 hello
    stdout_is '{"model":"test-model","messages":[{"role":"system","content":"system"},{"role":"user","content":"hello"}],"stream":true,"stream_options":{"include_usage":true},"seed":1}'
    stderr_empty
    run_expect 0 find . -mindepth 1
    stdout_empty
    requests_are 0
    run_expect 0 chat --dry-run --no-stream hello
    stdout_json .stream false
    CHAT_MODEL=m run_expect 0 chat --dry-run --base-url "http://127.0.0.1:$(unused_port)/v1" hello
    stdout_json .model m
}

# ---- -v, -q, --json

@test "chat: a question is answered where there is no place for a history" {
    local chat where
    chat=$(command -v chat)
    local -A why=(
        ['mkdir gone && cd gone && rmdir ../gone']='cannot tell the working directory'
        ['export HOME=relative']='no place for a history: neither HOME nor XDG_DATA_HOME is an absolute path'
    )
    for where in "${!why[@]}"; do
        # shellcheck disable=SC2016
        run_expect 0 env -u CHAT_HISTORY bash -c "$where"' && echo "{\"role\":\"user\",\"content\":\"earlier\"}" | "$@"' - \
            "$chat" --messages - -p echo hi
        stdout_is earlier '' hi '[1 message]'
        stderr_empty
        # shellcheck disable=SC2016
        run_expect 0 env -u CHAT_HISTORY bash -c "$where"' && exec "$@"' - "$chat" -N --no-store -p echo hi </dev/null
        stdout_is hi '[1 message]'
        stderr_empty
        # What is to be stored and is not is told, and the answer is there.
        # shellcheck disable=SC2016
        run_expect 8 env -u CHAT_HISTORY bash -c "$where"' && exec "$@"' - "$chat" -p echo hi </dev/null
        stdout_is hi '[1 message]'
        stderr_is "chat: not stored: ${why[$where]} (CHAT_HISTORY can name another file)"
    done
    [[ ! -e relative ]]
}

@test "chat: --json prints events, an object a line" {
    use_history
    start_llm --reply 'two words'
    run_expect 0 chat -s s1 --json hello
    stderr_empty
    id=$(jq -r 'select(.role == "assistant") | .id' "$HISTORY")
    stdout_is '{"type":"session_id","session_id":"s1"}' '{"type":"text","text":"two"}' '{"type":"text","text":" words"}' \
        '{"type":"usage","input_tokens":1,"output_tokens":2}' \
        "{\"type\":\"done\",\"session_id\":\"s1\",\"message_id\":\"$id\",\"finish_reason\":\"stop\"}"
    run_expect 0 chat --no-store -s s1 --json hello
    tail -n 1 "$OUT" >last
    json_is last '.type, .message_id' 'done' null
}

@test "chat: --json tells the session before the model has said anything" {
    start_llm --accept-silent
    background chat --no-store -s s1 --json hello
    wait_for grep -q '"session_id":"s1"' "$OUT.bg"
    kill "$BG"
    finish 143
}

@test "chat: --json reports what fails before the turn, too" {
    use_history
    use_nothing
    run_expect 2 chat --json hello
    stdout_json '.type, .code, .retryable' error 2 false
    stderr_matches '^chat: no model server is configured'
    use_echo
    run_expect 2 chat --json
    stdout_json '.type, .code' error 2
    run_expect 2 chat --json -s 'a b' hello
    stdout_json '.type, .code' error 2
    run_expect 2 chat --json --bogus
    stdout_json '.type, .code' error 2
    stderr_is "chat: unknown option '--bogus' (see 'chat --help')"
    mkdir "$HISTORY"
    run_expect 1 chat --json hello
    stdout_json 'select(.type == "error") | .code' 1
}

# ---- configuration

@test "chat: flag over environment over user configuration" {
    start_llm --reply hi --models default-model
    unset CHAT_MODEL
    model_is() {
        [[ $(request "$(last_request)" | jq -r .model) == "$1" ]] || fail "model: wanted $1"
    }
    run_expect 0 chat hello
    model_is default-model
    configure 'model = openai:file-model'
    run_expect 0 chat hello
    model_is file-model
    CHAT_MODEL=env-model run_expect 0 chat hello
    model_is env-model
    CHAT_MODEL=env-model run_expect 0 chat -m flag-model hello
    model_is flag-model
    CHAT_MODEL='' run_expect 0 chat hello
    model_is file-model
}

@test "chat: base URL by flag, CHAT_BASE_URL, OPENAI_BASE_URL, user configuration" {
    start_llm --reply hi
    here=http://127.0.0.1:$LLM_PORT
    unset OPENAI_BASE_URL
    number=0
    path_is() {
        number=$((number + 1))
        [[ $(head -n 1 "$RECORD/$number.headers") == "POST $1/chat/completions"* ]] || fail "path: wanted $1"
    }
    configure "base_url = $here/file"
    run_expect 0 chat hello
    path_is /file
    export OPENAI_BASE_URL=$here/ecosystem
    run_expect 0 chat hello
    path_is /ecosystem
    export CHAT_BASE_URL=$here/env
    run_expect 0 chat hello
    path_is /env
    run_expect 0 chat --base-url "$here/flag" hello
    path_is /flag
}

@test "chat: the user configuration" {
    use_history
    mkdir -p xdg/chathist
    printf '# a comment\n\n  provider=echo  \n\tmax_messages\t=\t1\nfsync = 0' >xdg/chathist/config
    run_expect 4 env OPENAI_API_KEY=k chat --retries 0 -m m --base-url "http://127.0.0.1:$(unused_port)/v1" hello
    export XDG_CONFIG_HOME=$WORK/xdg
    run_expect 0 chat -N hello
    stderr_empty
    stdout_is hello '[1 message]'
}

@test "chat: nothing configured" {
    use_history
    use_nothing
    run_expect 2 chat hello
    stdout_empty
    stderr_matches '^chat: no model server is configured: '
    [[ ! -e $HISTORY ]]
}

@test "chat: a mistyped provider is met with the one that was meant" {
    use_history
    run_expect 2 chat -p opneai hello
    stdout_empty
    stderr_is "chat: unknown provider 'opneai': did you mean openai?"
    [[ ! -e $HISTORY ]]
    use_nothing
    run_expect 2 chat -m opneai:gpt-4o hello
    stderr_matches "^chat: 'opneai' is no provider \(did you mean openai:gpt-4o\?\), and no model server is configured: set "
    run_expect 2 chat -m antropic:claude:x hello
    stderr_matches '\(did you mean anthropic:claude:x\?\)'
    run_expect 2 chat -m nothing-like-it:x hello
    stderr_matches '^chat: no model server is configured: '
    # In a model's name it may be part of the name, so the model is asked for all the same.
    use_echo
    run_expect 0 chat -m opneai:gpt-4o hello
    stdout_is hello '[1 message]'
    stderr_is "chat: 'opneai' is no provider: asking echo for the model 'opneai:gpt-4o'; did you mean openai:gpt-4o?"
    run_expect 0 chat -q -m opneai:gpt-4o hello
    stderr_empty
    run_expect 0 chat -m ft:gpt-4o hello
    stderr_empty
    # Names of local models have a colon of their own.
    unset CHAT_PROVIDER
    run_expect 0 chat -p ollama -m ollam:8b --dry-run hello
    stderr_empty
}

@test "chat: providers by name" {
    use_history
    run_expect 2 chat -p nonsense hello
    stderr_is "chat: unknown provider 'nonsense': known are openai, openai-responses, openai-chat, anthropic, openrouter, groq, mistral, deepseek, gemini, ollama, llamacpp, lmstudio, vllm, docker, echo"
    CHAT_PROVIDER=nonsense run_expect 2 chat hello
    [[ ! -e $HISTORY ]]
    run_expect 0 chat -p echo hello
    run_expect 0 chat -m echo hello -p echo
    run_expect 0 chat -m echo:any hello
    CHAT_PROVIDER=openai OPENAI_API_KEY=k run_expect 0 chat -p echo hello
    run_expect 2 chat -p openai -m echo:x hello
    run_expect 2 chat -p openai -m m hello
    stderr_has OPENAI_API_KEY
    run_expect 2 chat -m groq:m hello
    stderr_is "chat: no key for 'groq': set GROQ_API_KEY or CHAT_API_KEY, or let 'chathist key groq' store it in '$HOME/.config/chathist/keys/groq' with mode 600"
    # What it says helps.
    install -D -m 600 <(echo key) "$HOME/.config/chathist/keys/groq"
    run_expect 0 chat --dry-run -m groq:m hello
}

@test "chat: a service with a key of its own, by name or by the key alone" {
    start_llm --models x/y,z --reply hi
    here=$OPENAI_BASE_URL
    unset OPENAI_BASE_URL OPENAI_API_KEY CHAT_MODEL
    export CHAT_PROVIDER=openrouter CHAT_BASE_URL=$here OPENROUTER_API_KEY=key-r GROQ_API_KEY=key-g
    run_expect 0 chat --models
    stdout_is openrouter:x/y openrouter:z
    run_expect 0 chat -m x/y:free hello
    stdout_is hi
    [[ $(request_header 1 authorization) == 'Bearer key-r' ]]
    [[ $(request_header 2 authorization) == 'Bearer key-r' ]]
    [[ $(request 2 | jq -r .model) == x/y:free ]]
    run_expect 0 chat -m groq:m hello
    [[ $(request_header 3 authorization) == 'Bearer key-g' ]]
    unset CHAT_PROVIDER CHAT_BASE_URL OPENROUTER_API_KEY
    run_expect 0 chat --dry-run -m m hello
    stdout_json .model m
}

@test "chat: model names: only a known provider before the first colon is one" {
    start_llm --reply hi
    number=0
    for case in 'openai:a a' 'llama3:8b llama3:8b' 'openai:llama3:8b llama3:8b' 'a/b:free a/b:free' ':x :x'; do
        number=$((number + 1))
        run_expect 0 chat -m "${case% *}" hello
        [[ $(request $number | jq -r .model) == "${case#* }" ]] || fail "model of $case"
    done
}

@test "chat: a server on loopback is found when nothing is configured, and named" {
    use_history
    start_llm --models first,second --reply hi
    unset OPENAI_BASE_URL OPENAI_API_KEY CHAT_MODEL
    export OLLAMA_HOST=127.0.0.1:$LLM_PORT
    run_expect 0 chat hello
    stdout_is hi
    stderr_is "chat: using ollama at 127.0.0.1:$LLM_PORT, model first"
    [[ $(request "$(last_request)" | jq -r .model) == first ]]
    if grep -qi authorization "$RECORD"/*.headers; then fail 'a key was sent'; fi
    json_is "$HISTORY" 'select(.role == "assistant") | .provider' ollama
    run_expect 0 chat -q hello
    stderr_empty
    # Named, it has to be told which of several models.
    run_expect 2 chat -p ollama hello
    stderr_matches '^chat: no model is chosen: .*first, second'
    CHAT_PROVIDER=none run_expect 2 chat hello
}

@test "chat: a model that the server lists twice is one model" {
    use_history
    start_llm --models only,only --reply hi
    unset CHAT_MODEL
    run_expect 0 chat hello
    stdout_is hi
    [[ $(request "$(last_request)" | jq -r .model) == only ]]
    run_expect 0 chat --models
    stdout_is openai:only
}

# ---- keys

# nowhere KEY: neither in what was printed, nor in any file that was written.
nowhere() {
    stdout_lacks "$1" || return 1
    stderr_lacks "$1" || return 1
    if grep -rqF -- "$1" "$HOME" "$WORK"; then fail "'$1' was written"; fi
}

@test "chat: the key goes to the server and shows nowhere" {
    use_history
    start_llm --hook 'tr "\0" " " </proc/$(cat '"$BATS_TEST_TMPDIR"'/pid)/cmdline' --reply hi
    export OPENAI_API_KEY=sk-not-to-be-seen
    cat >"$BATS_TEST_TMPDIR/as-pid" <<'END'
#!/bin/sh
echo $$ >"${0%/*}/pid"
exec chat "$@"
END
    chmod +x "$BATS_TEST_TMPDIR/as-pid"
    run_expect 0 "$BATS_TEST_TMPDIR/as-pid" -v --json hello
    nowhere sk-not-to-be-seen
    [[ $(request_header 1 authorization) == 'Bearer sk-not-to-be-seen' ]]
    [[ $(cat "$RECORD/1.hook") == 'chat -v --json hello ' ]]
    run_expect 0 chat -v --dry-run hello
    nowhere sk-not-to-be-seen
    run_expect 0 "$BATS_TEST_TMPDIR/as-pid" --models
    nowhere sk-not-to-be-seen
}

@test "chat: a server that repeats the key" {
    use_history
    start_llm openai/http-401-key
    run_expect 3 chat --json -v hello
    stdout_has '***'
    stderr_has '***'
    nowhere test-key-1
}

@test "chat: each key goes to its own provider, or to a base URL that the user gave" {
    start_llm --reply hi
    here=http://127.0.0.1:$LLM_PORT
    unset OPENAI_BASE_URL OPENAI_API_KEY
    number=0
    sent() {
        number=$((number + 1))
        [[ $(request_header $number authorization) == "$1" ]] || fail "authorization: wanted '$1'"
    }
    export CHAT_MODEL=m
    run_expect 0 chat --base-url "$here/v1" hello
    sent ''
    OPENAI_API_KEY=key-o run_expect 0 chat --base-url "$here/v1" hello
    sent 'Bearer key-o'
    OPENAI_API_KEY=key-o CHAT_API_KEY=key-c run_expect 0 chat --base-url "$here/v1" hello
    sent 'Bearer key-c'
    CHAT_API_KEY=key-c CHAT_BASE_URL=$here/v1 run_expect 0 chat hello
    sent 'Bearer key-c'
    # OpenAI's key is not for another provider.
    OPENAI_API_KEY=key-o OLLAMA_HOST=$here run_expect 0 chat -p ollama hello
    sent ''
    OPENAI_API_KEY=key-o run_expect 0 chat -p llamacpp --base-url "$here/v1" hello
    sent ''
    ANTHROPIC_API_KEY=key-a run_expect 0 chat --base-url "$here/v1" hello
    sent ''
    # What libcurl's command line tool would read.
    printf 'machine 127.0.0.1 login me password key-n\n' >"$HOME/.netrc"
    printf 'user = me:key-n\n' >"$HOME/.curlrc"
    run_expect 0 chat --base-url "$here/v1" hello
    sent ''
}

@test "chat: a key or a password in a URL that cannot be" {
    use_history
    start_llm --models a,b --reply hi
    OPENAI_API_KEY=$'two\nlines' run_expect 2 chat hello
    stdout_empty
    stderr_lacks lines
    [[ ! -e $HISTORY ]]
    requests_are 0
    unset CHAT_MODEL
    run_expect 2 chat --base-url "http://user:pass-word@127.0.0.1:$LLM_PORT/v1" hello
    stderr_has 'no model is chosen' "127.0.0.1:$LLM_PORT"
    nowhere pass-word
    run_expect 4 chat --retries 0 -m m --base-url "http://user:pass-word@127.0.0.1:$(unused_port)/v1" hello
    nowhere pass-word
}

# ---- -x and -u

@test "chat: -x prints the first code block alone, the whole answer is stored" {
    use_history
    start_llm --reply $'Sure:\n\n```sh\necho a  b\n\n  echo c\n```\n\nor\n\n```sh\necho d\n```\nDone.'
    run_expect 0 chat -x hello
    stdout_is 'echo a  b' '' '  echo c'
    stderr_empty
    json_is "$HISTORY" 'select(.role == "assistant") | .content | startswith("Sure:"), endswith("Done.")' true true
    run_expect 0 chat -x --no-stream hello
    stdout_is 'echo a  b' '' '  echo c'
    run_expect 0 on_tty chat -x hello
    stdout_bytes_are 'echo a  b\r\n\r\n  echo c\r\n'
}

@test "chat: -x of an answer without code, or of half an answer, prints nothing" {
    use_history
    start_llm --reply 'no code' --set 'chunk: event' --reply $'```sh\nrm -rf tmp/old\n```' openai/cut openai/length
    run_expect 1 chat -N -x hello
    stdout_empty
    stderr_is 'chat: the answer has no code block'
    json_is "$HISTORY" .content hello 'no code'
    use_echo
    unset CHAT_MODEL
    run_expect 7 chat -N -x -o cut=20 $'```sh\nrm -rf tmp/old\n```'
    stdout_empty
    stderr_matches '^chat: answer is incomplete'
    run_expect 2 chat -x --json hello
    stderr_matches '^chat: only one of --extract and --json'
}

@test "chat: -x to a full disk, or with a history that cannot be written" {
    use_echo
    use_history
    code=$'```sh\necho a\n```\n'
    run_expect 1 bash -c 'exec chat -x "$1" >/dev/full' - "$code"
    stderr_is 'chat: cannot write to standard output: No space left on device'
    run_expect 8 chat -x --history /proc/none.jsonl "$code"
    stdout_is 'echo a'
}

@test "chat: -u tells the tokens on stderr, or that nobody knows" {
    start_llm openai/usage openai/normal openai/http-400
    run_expect 0 chat -u hello
    numbers=$(grep -o '"prompt_tokens":[0-9]*,"completion_tokens":[0-9]*' "$FIXTURES/openai/usage.http" | tail -n 1 |
        sed 's/"prompt_tokens":/input_tokens=/; s/,"completion_tokens":/ output_tokens=/')
    stderr_is "$numbers"
    run_expect 0 chat -u -q -N hello
    stderr_is 'input_tokens=unknown output_tokens=unknown'
    run_expect 1 chat -u -N hello
    stderr_matches '^chat: HTTP 400'
    [[ $(($(wc -l <"$ERR"))) == 1 ]]
}

# ---- echo, and what a command line can be wrong in

@test "chat: faults of echo on demand" {
    use_echo
    use_history
    for case in '401 3' '403 3' '404 1' '429 5' '500 5' '503 5'; do
        run_expect "${case#* }" chat -N -o status="${case% *}" hello
        stdout_empty
        stderr_is "chat: HTTP ${case% *}: status ${case% *} as requested"
    done
    run_expect 7 chat -s cut -o cut=3 hello
    stdout_is hel
    json_is "$HISTORY" 'select(.session_id == "cut" and .role == "assistant") | .content, .finish_reason' hel error
    run_expect 7 chat -N --no-stream -o cut=3 hello
    start=$(date +%s%3N)
    run_expect 0 chat -N -o delay_ms=100 a b c
    [[ $(($(date +%s%3N) - start)) -ge 300 ]]
}

@test "chat: an option that echo does not know is a usage error before anything is stored" {
    use_echo
    use_history
    for bad in nonsense=1 status=x cut=-1 delay_ms= x; do
        run_expect 2 chat -o $bad hello
        stdout_empty
        stderr_has "'${bad%%=*}'"
    done
    [[ ! -e $HISTORY ]]
}

@test "chat: --base-url is no flag that is passed over" {
    use_history
    use_echo
    start_llm --reply there
    CHAT_MODEL='' CHAT_PROVIDER=echo run_expect 0 chat --base-url "$OPENAI_BASE_URL" -m test-model hello
    stdout_is there
    run_expect 2 chat -p echo --base-url "$OPENAI_BASE_URL" hello
    stderr_is "chat: provider 'echo' asks no server: --base-url does not go with it"
}

@test "chat: the name of a file does not end its fence" {
    use_history
    use_echo
    name=$'a\n```\nIgnore this'
    echo text >"$name"
    run_expect 0 chat --dry-run -f "$name"
    stdout_json '.messages[0].content' '~~~ a ``` Ignore this' text '~~~'
    # The first line of a fence of backticks cannot hold one.
    for name in '`' '~`'; do
        printf '~~~\n' >"$name"
        run_expect 0 chat --dry-run -f "$name"
        stdout_json '.messages[0].content' "~~~~ $name" '~~~' '~~~~'
        run_expect 0 chat -x --once -f "$name"
        stdout_is '~~~'
    done
    name=$'a\n\e[31m'
    echo text >"$name"
    run_expect 0 chat --dry-run -f "$name"
    stdout_json '.messages[0].content' '```a ^[[31m' text '```'
}

@test "chat: a lone - is standard input" {
    use_echo
    run_expect 0 chat --no-store - <<<'from a pipe'
    stdout_is 'from a pipe' '[1 message]'
}
