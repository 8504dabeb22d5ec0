#!/usr/bin/env bats
#
# Templates and personas: prompts and system prompts from files of the user's, with variables and settings.

load ../helper

setup() {
    sandbox
    use_echo
    use_history
    CONFIG=$HOME/.config/chathist
    mkdir -p "$CONFIG/templates" "$CONFIG/personas"
}

# put template|persona NAME LINE...: one of the user's.
put() {
    local file=$CONFIG/${1}s/$2
    shift 2
    printf '%s\n' "$@" >"$file"
}

# sends WANTED ARGUMENT...: chat with these arguments sends that prompt.
sends() {
    local wanted=$1
    shift
    run_expect 0 chat --dry-run -N "$@"
    stderr_empty || return 1
    printf '%s\n' "$wanted" >wanted
    jq -r '.messages[-1].content' "$OUT" >got
    same prompt wanted got
}

# refused MESSAGE ARGUMENT...: exit status 2, and that message, with the pointer to --help that a wrong use gets.
refused() {
    local message=$1
    shift
    run_expect 2 chat "$@"
    stdout_empty || return 1
    sed -i "s/ (see 'chat --help')\$//" "$ERR"
    stderr_is "chat: $message"
}

@test "templates: the prompt goes where {{input}} is, or behind the text" {
    put template around 'Before.' '{{input}}' 'After.'
    put template before 'Explain this:'
    sends $'Before.\nhello there\nAfter.' -t around hello there
    sends $'Explain this:\n\nhello' --template before hello
    sends $'Explain this:\n\nhello' --template=before hello
    # All of it: standard input, arguments, files.
    echo text >a.txt
    run_expect 0 chat --dry-run -t around -f a.txt 'and this' <<<'from a pipe'
    stdout_json '.messages[-1].content' 'Before.' 'from a pipe' '' 'and this' '' '```a.txt' text '```' 'After.'
    put template twice '{{input}} {{ input }}'
    sends 'a a' -t twice a
    printf 'no newline: {{input}}' >"$CONFIG/templates/odd"
    sends 'no newline: a' -t odd a
    printf 'one kept\n\n' >"$CONFIG/templates/odd"
    sends $'one kept\n' -t odd
    printf 'a\r\nb {{input}}\r\n' >"$CONFIG/templates/odd"
    sends $'a\nb x' -t odd x
    printf '\xef\xbb\xbf---\r\noption.delay_ms = 0\r\n---\r\n\r\na {{input}}\r\n' >"$CONFIG/templates/odd"
    sends 'a x' -t odd x
}

@test "templates: one without {{input}} needs no prompt, one with it does" {
    put template alone 'Tell a joke.'
    put template wants 'Explain:' '{{input}}'
    put template may 'Explain {{input: pipes }}.'
    put template empty
    sends 'Tell a joke.' -t alone
    refused "no prompt: template 'wants' is for one, give it as arguments or on standard input" -t wants
    sends 'Explain pipes.' -t may
    sends 'Explain files.' -t may files
    refused "no prompt: template 'empty' is empty" -t empty
    put template blank '   ' ''
    refused "no prompt: template 'blank' is empty" -t blank
    mkfifo "$CONFIG/templates/fifo"
    refused "cannot read '$CONFIG/templates/fifo': is a FIFO" -t fifo hello
    rm "$CONFIG/templates/fifo"
    printf '\x89PNG\r\n\x1a\n' >image.png
    run_expect 0 chat -1 -t empty -f image.png
    stdout_is '' '[1 message, 1 image]'
    sends hello -t empty hello
    [[ ! -e $HISTORY ]]
}

@test "templates: what is wrong with a variable" {
    put template say 'one' '{{name}}'
    refused "cannot use template 'say': line 2: no value for 'name'" -t say
    refused "cannot use template 'say': line 2: no value for 'name'" -t say --var Name=x
    refused "unused variable 'other': no template or persona has it" -t say --var name=x --var other=y
    refused "bad value 'name' for --var: NAME=VALUE is expected" -t say --var name
    refused "bad name '' for --var: letters, digits, '_' and '-' are expected" -t say --var =x
    refused "bad name 'a b' for --var: letters, digits, '_' and '-' are expected" -t say --var 'a b=x'
    refused "bad name 'input' for --var: it is the prompt" -t say --var input=x
    refused '--var goes with --template or --persona' --var name=x hello
    [[ ! -e $HISTORY ]]
}

@test "templates: settings at the head, and what comes before them" {
    start_llm --reply hi
    unset CHAT_MODEL
    export CHAT_MODEL=openai:from-environment CHAT_PROVIDER=
    put template set '---' '# a comment' 'model = openai:from-template' 'option.temperature = 0.2' \
        'option.stop = "a=b"' '  system  =  Be brief. ' '---' '' 'Say {{input}}'
    run_expect 0 chat -t set hello
    stderr_empty
    request 1 >got.json
    json_is got.json '.model, .temperature, .stop' from-template 0.2 'a=b'
    request_messages_are 1 'system:Be brief.' 'user:Say hello'
    run_expect 0 chat -N -t set -m from-flag -S 'By flag.' -o temperature=1 hello
    request 2 >got.json
    json_is got.json '.model, .temperature, .stop' from-flag 1 'a=b'
    request_messages_are 2 'system:By flag.' 'user:Say hello'
    # What is stored is what was said.
    json_is "$HISTORY" 'select(.role != "assistant") | .role + ":" + .content' 'system:Be brief.' 'user:Say hello' \
        'system:By flag.' 'user:Say hello'
}

@test "templates: the provider of a template, of the environment and of a flag" {
    start_llm --reply hi
    export CHAT_MODEL=openai:m
    put template offline '---' 'provider = echo' '---' '{{input}}'
    run_expect 0 chat -t offline hello
    stdout_is hello '[1 message]'
    run_expect 0 chat -N -t offline -m openai:m hello
    stdout_is hi
    put template server '---' 'model = openai:m' '---' '{{input}}'
    export CHAT_PROVIDER=echo
    run_expect 0 chat -N -t server hello
    stdout_is hi
    run_expect 0 chat -N -t server -p echo hello
    stdout_is hello '[1 message]'
    put template odd '---' 'model = openai:m' 'provider = echo' '---' '{{input}}'
    refused "model 'openai:m' is not one of provider 'echo'" -t odd hello
    put template odd '---' 'provider = nonsense' '---' '{{input}}'
    run_expect 2 chat -t odd hello
    stderr_has "unknown provider 'nonsense'"
}

@test "templates: what is wrong with a head" {
    for key in modle base_url api_key_command history option option. session; do
        put template odd '---' '' "$key = x" '---' 'text'
        refused "cannot use template 'odd': line 3: unknown key '$key'" -t odd
    done
}

@test "templates: by path, and what is none" {
    echo 'From a path: {{input}}' >here
    sends 'From a path: x' -t ./here x
    sends 'From a path: x' -t "$PWD/here" x
    run_expect 0 chat --dry-run -t <(echo 'From a pipe: {{input}}') x
    stdout_json '.messages[-1].content' 'From a pipe: x'
    refused "no template 'here': there is no '$CONFIG/templates/here'" -t here x
    refused "cannot open './nothing': No such file or directory" -t ./nothing x
    for name in .. . .hidden ''; do
        refused "bad name '$name' for a template" -t "$name" x
    done
    mkdir "$CONFIG/templates/folder"
    refused "cannot open '$CONFIG/templates/folder': is a directory" -t folder x
    printf 'a\0b' >"$CONFIG/templates/binary"
    refused "cannot read '$CONFIG/templates/binary': it is a binary file" -t binary x
    head -c 17000000 /dev/zero | tr '\0' x >"$CONFIG/templates/large"
    refused "cannot read '$CONFIG/templates/large': File too large" -t large x
    mkdir -p xdg/chathist/templates
    echo 'Elsewhere: {{input}}' >xdg/chathist/templates/tr
    XDG_CONFIG_HOME=$WORK/xdg sends 'Elsewhere: x' -t tr x
}

@test "templates: a repository has none" {
    make_repo
    mkdir -p templates .config/chathist/templates .aicoder/templates chathist/templates
    for place in . .config/chathist .aicoder chathist; do
        echo 'from the repository' >"$place/templates/tr"
    done
    refused "no template 'tr': there is no '$CONFIG/templates/tr'" -t tr x
}

@test "templates: with --edit, --regenerate, --models and --messages" {
    put template quote '> {{input}}'
    run_expect 0 chat -t quote one
    run_expect 0 chat --edit -t quote two
    stdout_is '> two' '[1 message]'
    json_is "$HISTORY" 'select(.role == "user") | .content' '> one' '> two'
    refused '--regenerate takes no prompt' --regenerate -t quote
    refused '--template cannot be given with --models' --models -t quote
    refused "no prompt: template 'quote' is for one, give it as arguments or on standard input" --edit -t quote
    run_expect 0 chat --messages - -t quote three <<<'[{"role":"user","content":"earlier"},{"role":"assistant","content":"yes"}]'
    stdout_is '> three' '[3 messages]'
}

@test "templates: a prompt that becomes too long" {
    put template twice '{{input}}{{input}}'
    head -c 20000000 /dev/zero | tr '\0' x >long
    refused "template 'twice' becomes too long" -t twice <long
    [[ ! -e $HISTORY ]]
}

@test "personas: the system prompt, stored as with -S" {
    put persona poet 'You are a poet.' '' 'You rhyme.'
    run_expect 0 chat --persona poet hello
    stderr_empty
    run_expect 0 chat 'and on'
    json_is "$HISTORY" 'select(.role == "system") | .content' 'You are a poet.' '' 'You rhyme.'
    run_expect 0 chat --dry-run 'once more'
    stdout_json '.system // (.messages[0] | select(.role == "system") | .content)' 'You are a poet.' '' 'You rhyme.'
    run_expect 0 chat --regenerate --persona poet
    json_is "$HISTORY" 'select(.role == "system") | .session_id' "$(jq -r .session_id "$HISTORY" | head -n 1)"
    put persona other '---' 'option.delay_ms = 0' '---'
    run_expect 0 chat --persona other hello
    json_is "$HISTORY" 'select(.role == "system") | .content' 'You are a poet.' '' 'You rhyme.'
    echo 'You are terse.' >persona
    run_expect 0 chat -N --persona ./persona hello
    json_is "$HISTORY" 'select(.role == "system" and .content == "You are terse.") | .role' system
}

@test "personas: variables and settings" {
    start_llm --reply hi
    export CHAT_MODEL=openai:m
    put persona expert '---' 'model = openai:from-persona' 'option.temperature = 0.1' 'option.seed = 1' '---' \
        'You know {{field:everything}}.'
    put template ask '---' 'model = openai:from-template' 'option.seed = 2' '---' 'About {{field}}: {{input}}'
    run_expect 0 chat --persona expert hello
    request 1 >got.json
    json_is got.json '.model, .temperature, .seed' from-persona 0.1 1
    request_messages_are 1 'system:You know everything.' 'user:hello'
    run_expect 0 chat -N --persona expert -t ask --var field=pipes hello
    request 2 >got.json
    json_is got.json '.model, .temperature, .seed' from-template 0.1 2
    request_messages_are 2 'system:You know pipes.' 'user:About pipes: hello'
}

@test "personas: --models goes by the provider of a persona" {
    start_llm --models a,b
    put persona rehearse '---' 'provider = echo' '---' 'You are a poet.'
    run_expect 0 chat --models
    stdout_is openai:a openai:b
    run_expect 0 chat --models --persona rehearse
    stdout_is echo:echo
}

@test "personas: what is wrong" {
    put persona poet 'You are a poet.'
    put template own '---' 'system = x' '---' '{{input}}'
    refused 'only one of --system and --persona can be given' --persona poet -S x hello
    refused "template 'own' has a system prompt of its own: --persona does not go with it" --persona poet -t own hello
    refused "no persona 'nobody': there is no '$CONFIG/personas/nobody'" --persona nobody hello
    refused "bad name '..' for a persona" --persona .. hello
    put persona odd '---' 'system = x' '---' 'text'
    refused "cannot use persona 'odd': line 2: unknown key 'system'" --persona odd hello
    put persona odd 'You are {{name}}.'
    refused "cannot use persona 'odd': line 1: no value for 'name'" --persona odd hello
    put persona odd 'You answer {{input}}.'
    refused "cannot use persona 'odd': line 1: no value for 'input'" --persona odd hello
    refused "unused variable 'name': no template or persona has it" --persona poet --var name=x hello
    # An error is an event, too.
    run_expect 2 chat --json --persona nobody hello
    stdout_json '[.type, .code] | tojson' '["error",2]'
    [[ ! -e $HISTORY ]]
}

@test "templates: chathist lists them, and personas" {
    run_expect 0 chathist templates
    stdout_empty
    put template b '---' 'model = m' '---' '' '  The first' 'and the second line'
    put template a 'Once'
    put template long "$(printf 'word %.0s' {1..30})"
    put template empty
    put template $'tab\there' x
    put template .hidden x
    put template a~ x
    mkdir "$CONFIG/templates/folder"
    put persona poet $'You are \e[31mred'
    run_expect 0 chathist templates
    stderr_empty
    stdout_is $'a\tOnce' $'b\tThe first and the second line' $'empty\t' \
        $'long\tword word word word word word word word word word word word'
    run_expect 0 chathist personas
    stdout_is $'poet\tYou are \e[31mred'
    run_expect 0 on_tty chathist personas
    stdout_bytes_are 'poet\tYou are ^[[31mred\r\n'
    put template b '---' 'modle = m' '---'
    run_expect 0 chathist templates
    stderr_is "chathist: cannot use template 'b': line 2: unknown key 'modle'"
    stdout_line 2 $'b\t'
    run_expect 2 chathist templates --json
    stderr_has '--json is not for templates'
    run_expect 2 chathist templates hello
    stderr_has "'hello' is one argument too many"
    run_expect 2 chat --templates
    stderr_has "chat: unknown option '--templates'"
    rm -r "$CONFIG/personas"
    run_expect 0 chathist personas
    stdout_empty
    run_expect 2 bash -c 'exec chathist templates >/dev/full'
    stderr_has 'chathist: cannot write to standard output: No space left on device'
}

@test "templates: --save stores options and prompt as a template, and replaces none" {
    local file=$CONFIG/templates/tr
    rmdir "$CONFIG/templates"
    run_expect 0 chat -m echo:x -S 'Be brief' -o delay_ms=0 --effort low 'Into {{language:English}}:' '{{input}}' --save tr
    stdout_empty
    stderr_is "chat -t tr uses '$file'"
    printf '%s\n' --- 'model = echo:x' 'effort = low' 'system = Be brief' 'option.delay_ms = 0' --- 'Into {{language:English}}: {{input}}' >wanted
    same template wanted "$file"
    [[ ! -e $HISTORY ]]
    remember "$file"
    run_expect 2 chat --save tr -m other <<<'not read'
    stderr_is "chat: there is a template 'tr': remove '$file' first"
    unchanged "$file"
    run_expect 0 chat --save plain -p echo
    sends hello -t plain hello
    sends 'two lines' -t plain 'two lines'
    refused "cannot save 'system' in a template: its value has several lines" --save multi -S $'a\nb'
    [[ ! -e $CONFIG/templates/multi ]]
    refused "--tool cannot be given with --save" --save x -T @web_search
    refused "--template cannot be given with --save" --save x -t tr
    refused "bad name '' for a template" --save ''
    refused "bad name '.x' for a template" --save .x
    chmod 500 "$CONFIG/templates"
    if [[ $(id -u) -ne 0 ]]; then
        run_expect 1 chat --save y
        stderr_has "$CONFIG/templates/y"
    fi
    chmod 700 "$CONFIG/templates"
}
