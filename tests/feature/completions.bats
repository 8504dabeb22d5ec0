#!/usr/bin/env bats
#
# The completions, asked as users ask them: bash and zsh on a terminal, fish by its own `complete -C`.

# shellcheck disable=SC2016

load ../helper

setup() {
    SHELLS=(bash)
    if [[ -n ${CI:-} ]] || type -P zsh >/dev/null; then SHELLS+=(zsh); fi
    sandbox
    use_echo
    use_history main.jsonl
    {
        hist_line alpha-1 user 'an early question'
        hist_line beta:2 user $'red \e[31mtext\a \xe2\x80\xae $(touch pwned)'
        hist_line 'my chat; $(touch pwned) '\''x'\'' y' user 'an id with odd characters'
        hist_line $'bad\e]0;title\aid' user 'an id that no terminal should see'
        hist_line '-f' user 'an id that would be an option'
        hist_line ' title' user 'an id that would not read back'
    } >main.jsonl
    hist_line gamma-3 user 'in another file' >other.jsonl
}

# Control-O shows the line as it is being edited.
SHOWN='\[[^]]*\]\s'

# type_in COMMAND... -- SCRIPT...: what the terminal shows, without escape sequences, into $OUT. The script is that of
# on-tty, after the first prompt; after its last --wait the shell is killed.
type_in() {
    local -a shell=()
    while [[ $1 != -- ]]; do
        shell+=("$1")
        shift
    done
    shift
    on_tty --size 150x50 --timeout 60 --wait '@ ' "$@" --signal KILL "${shell[@]}" >screen 2>"$ERR" ||
        [[ $? == 137 ]] ||
        fail 'the terminal showed:' "$(visible screen)" || return 1
    LC_ALL=C sed -e $'s/\e\\[[0-9;?]*[A-Za-z]//g; s/\r//g; s/\e[=>]//g' screen >"$OUT"
}

in_bash() {
    cat >bashrc <<END
PS1='@ ' HISTFILE=
bind 'set bell-style none'
bind 'set enable-bracketed-paste off'
bind 'set completion-query-items 0'
bind 'set page-completions off'
bind -x '"\C-o": printf "\n[%s] \n" "\$READLINE_LINE"'
${BASHRC:-. '$ROOT/completions/bash/chat'}
END
    RAN="bash $*"
    type_in bash --noprofile --rcfile "$PWD/bashrc" -i -- "$@"
}

in_zsh() {
    cat >.zshrc <<END
PS1='@ ' HISTFILE= LISTMAX=10000
unsetopt beep prompt_sp prompt_cr
zle_highlight=(none)
unset zle_bracketed_paste
fpath=('$ROOT/completions/zsh' \$fpath)
autoload -Uz compinit && compinit -u -d '$PWD/zcompdump'
show-line() { zle -I; print -r -- "[\$BUFFER] " }
zle -N show-line
bindkey -e
bindkey '^O' show-line
END
    RAN="zsh $*"
    type_in env ZDOTDIR="$PWD" zsh -d -i -- "$@"
}

# completed SHELL TYPED LINE: TYPED and a tab give LINE.
completed() {
    "in_$1" --type "$2\\t" --pause 100ms --type '\x0f' --wait "$SHOWN"
    stdout_has "[$3]"
}

# listed SHELL TYPED LAST: the list that comes after TYPED and has LAST at its end. bash shows its prompt again.
listed() {
    local -a shown=(--wait "$3")
    [[ $1 != bash ]] || shown+=(--wait '@ ')
    "in_$1" --type "$2\\t\\t" "${shown[@]}"
}

in_fish() {
    export RAN="fish: $*"
    fish --no-config -c "set -g fish_complete_path '$ROOT/completions/fish'; complete -C \$argv[1]" -- "$1" \
        >"$OUT" 2>"$ERR"
    stderr_empty
}

options() {
    run_expect 0 "$1" --completion-table
    awk -F '\t' '$2 != "" { print $2 }' "$OUT" | sort >wanted
}

@test "completions: every program has them, from one place" {
    for source in "$ROOT"/cmd/*.c; do
        program=$(basename "$source" .c)
        [[ $ROOT/completions/bash/$program -ef $ROOT/completions/bash/chat ]] || fail "bash: no $program"
        [[ $ROOT/completions/fish/$program.fish -ef $ROOT/completions/fish/chat.fish ]] || fail "fish: no $program"
        head -n 1 "$ROOT/completions/zsh/_chathist" | grep -qw -- "$program" || fail "zsh: no $program"
        grep -qE "^complete -F _chathist .*\<$program\>" "$ROOT/completions/bash/chat" || fail "bash: no $program"
    done
}

@test "completions: the command of chathist" {
    for shell in "${SHELLS[@]}"; do
        completed "$shell" 'chathist in' 'chathist info '
        completed "$shell" 'chathist key deep' 'chathist key deepseek '
        completed "$shell" 'chathist models in' 'chathist models in'
    done
    need fish
    in_fish 'chathist models in'
    stdout_empty
    in_fish 'chathist key deep'
    stdout_is deepseek
    in_fish 'chathist in'
    stdout_is info
}

@test "completions: bash: options" {
    completed bash 'chat --dr' 'chat --dry-run '
    completed bash 'hist-show --ra' 'hist-show --raw '
    completed bash 'hist-show -- --ra' 'hist-show -- --ra'
    for program in chat hist-search; do
        options "$program"
        listed bash "$program --" '--version\s'
        grep -oE -e '(^| )--[a-z][a-z-]*' "$OUT" | tr -d ' ' | sort >got
        same "$program: options" wanted got
    done
}

@test "completions: roles, colours, providers, models, files" {
    for shell in "${SHELLS[@]}"; do
        completed "$shell" 'hist-search -r a' 'hist-search -r assistant '
        completed "$shell" 'hist-search --role=to' 'hist-search --role=tool '
        completed "$shell" 'hist-search --since=ye' 'hist-search --since=yesterday '
        completed "$shell" 'hist-show --color=al' 'hist-show --color=always '
        completed "$shell" 'hist-show --format=j' 'hist-show --format=json '
        completed "$shell" 'hist-load -f m' 'hist-load -f md '
        completed "$shell" 'chat -p ll' 'chat -p llamacpp '
        completed "$shell" 'chat -m echo:' 'chat -m echo:echo '
        completed "$shell" 'chat --model=ec' 'chat --model=echo:echo '
        completed "$shell" 'chat -f oth' 'chat -f other.jsonl '
    done
    completed bash 'hist-search --until to' 'hist-search --until today '
    completed bash 'hist-export -f jsonl' 'hist-export -f jsonl '
    completed bash 'hist-import --format=claude-c' 'hist-import --format=claude-code '
    completed bash 'chat --model=echo:e' 'chat --model=echo:echo '
    completed bash 'chat -m "echo:e' 'chat -m "echo:echo" '
    completed bash 'chat --history=oth' 'chat --history=other.jsonl '
    listed bash 'hist-search -r ' 'user\s'
    stdout_has assistant system tool
}

# Some tools, of which one has a name that a terminal would obey.
put_tools() {
    local name
    mkdir -p "$HOME/.config/chathist/tools"
    for name in list_dir read_file $'re\e]0;title\a'; do
        install -m 700 /dev/null "$HOME/.config/chathist/tools/$name"
    done
    echo text >"$HOME/.config/chathist/tools/readme"
}

@test "completions: tools by name or path, or of an MCP server" {
    put_tools
    echo 'mcp.files = x' >"$HOME/.config/chathist/config"
    for shell in "${SHELLS[@]}"; do
        completed "$shell" 'chat -T re' 'chat -T read_file '
        completed "$shell" 'chat --tool=li' 'chat --tool=list_dir '
        completed "$shell" 'chat -T ./oth' 'chat -T ./other.jsonl '
        completed "$shell" 'chat -T fi' 'chat -T files:'
    done
}

@test "completions: the MCP servers that the configuration defines" {
    mkdir -p "$HOME/.config/chathist" xdg/chathist
    printf '%s\n' 'mcp = files' 'mcp.files = x' ' mcp.find-it=y' $'mcp.bad\e[31m = z' >"$HOME/.config/chathist/config"
    echo 'mcp.other = x' >xdg/chathist/config
    for shell in "${SHELLS[@]}"; do
        completed "$shell" 'chat --mcp fil' 'chat --mcp files '
        XDG_CONFIG_HOME=$PWD/xdg completed "$shell" 'chat --mcp o' 'chat --mcp other '
    done
    completed bash 'chat --mcp=find' 'chat --mcp=find-it '
    if command -v fish >/dev/null; then
        in_fish 'chat --mcp '
        [[ $(cut -f 1 "$OUT" | sort | xargs) == 'files find-it' ]] || fail fish
        XDG_CONFIG_HOME=$PWD/xdg in_fish 'chat --mcp '
        [[ $(cut -f 1 "$OUT") == other ]] || fail fish
    fi
}

@test "completions: the models that the server offers, or the one on the line" {
    start_llm --models $'big:7b,small,bad\e[31m' --reply unused
    for shell in "${SHELLS[@]}"; do
        completed "$shell" 'chat -m openai:b' 'chat -m openai:big:7b '
        completed "$shell" 'chat -p echo -m openai:b' 'chat -p echo -m openai:b'
    done
    listed bash 'chat -m ' 'echo:echo'
    stdout_has openai:small
    stdout_lacks bad
    if command -v fish >/dev/null; then
        in_fish 'chat -m '
        cut -f 1 "$OUT" >got
        printf '%s\n' openai:big:7b openai:small echo:echo >wanted
        same models wanted got
        in_fish 'chat --provider=echo -m '
        [[ $(cut -f 1 "$OUT") == echo:echo ]] || fail 'the provider on the line'
    fi
}

# answers MODEL COUNT: so many answers of it.
answers() {
    local i
    for ((i = 0; i < $2; i++)); do hist_line s assistant hello '' "{\"model\":\"$1\"}"; done
}

@test "completions: hist-search offers the models of the history, those that answered most of late first" {
    {
        answers ancient:1b 1
        hist_lines s 500
        answers 'late:7b' 3
        answers newest-4 5
        answers 'late\u001b[31m' 1
        hist_line s assistant 'of no model'
    } >main.jsonl
    answers another 1 >other.jsonl
    for shell in "${SHELLS[@]}"; do
        completed "$shell" 'hist-search --model an' 'hist-search --model an'
        completed "$shell" 'hist-search --model=late:' 'hist-search --model=late:7b '
        completed "$shell" 'hist-search --history other.jsonl --model ' 'hist-search --history other.jsonl --model another '
        listed "$shell" 'hist-search --model ' 'late:7b'
        stdout_matches '^newest-4 +late:7b'
        stdout_lacks unknown total echo
    done
    if command -v fish >/dev/null; then
        in_fish 'hist-search --model '
        [[ $(cut -f 1 "$OUT" | xargs) == 'newest-4 late:7b' ]] || fail "$(cat "$OUT")"
        in_fish 'hist-search --history other.jsonl --model '
        [[ $(cut -f 1 "$OUT") == another ]] || fail "$(cat "$OUT")"
    fi
}

@test "completions: the models that a server had are offered when it is gone, and for a day" {
    start_llm --models big:7b,small --reply unused
    run_expect 0 chat --models
    kill "$LLM_PID"
    wait "$LLM_PID" 2>/dev/null || :
    for shell in "${SHELLS[@]}"; do completed "$shell" 'chat -m openai:b' 'chat -m openai:big:7b '; done
    if command -v fish >/dev/null; then
        in_fish 'chat -m '
        cut -f 1 "$OUT" >got
        printf '%s\n' openai:big:7b openai:small echo:echo >wanted
        same models wanted got
    fi
    touch -d '2 days ago' "$HOME"/.cache/chathist/models/*
    completed bash 'chat -m openai:b' 'chat -m openai:b'
}

# What the tables of options say is fixed, and a part of each word.
@test "completions: every option with fixed values completes them" {
    local program option words word count=0
    for source in "$ROOT"/cmd/*.c; do
        program=$(basename "$source" .c)
        run_expect 0 "$program" --completion-table
        awk -F '\t' '$2 != "" && $3 ~ /^(choices?|word)$/ { print $2, $4, $3 == "choices" ? "" : "_" }' "$OUT" >fixed
        while read -r option words blank; do
            # Several may follow each other without one.
            blank=${blank:+ }
            count=$((count + 1))
            for shell in "${SHELLS[@]}"; do
                word=${words##*|}
                completed "$shell" "$program $option ${word%?}" "$program $option $word$blank"
                completed "$shell" "$program $option=${word%?}" "$program $option=$word$blank"
            done
            if command -v fish >/dev/null; then
                in_fish "$program $option "
                cut -f 1 "$OUT" | sort >got
                tr '|' '\n' <<<"$words" | sort >wanted
                same "fish: $program $option" wanted got
                # The help of the option is not repeated beside each.
                stdout_lacks $'\t'
            fi
        done <fixed
    done
    [[ $count -ge 9 ]] || fail "only $count"
    # A value that a message lists as expected is in the table.
    run_expect 2 chat --effort x
    stderr_has "bad value 'x' for --effort: none, minimal, low, medium, high, xhigh or max is expected"
}

@test "completions: several fixed values, separated by commas" {
    for shell in "${SHELLS[@]}"; do
        completed "$shell" 'hist-search --in content,to' 'hist-search --in content,tools'
        completed "$shell" 'hist-search --in=content,tools,mod' 'hist-search --in=content,tools,model'
    done
    completed bash 'hist-search --in tit' 'hist-search --in title'
    need fish
    in_fish 'hist-search --in content,to'
    stdout_is content,tools
    in_fish 'hist-search --in=content,to'
    stdout_is --in=content,tools
}

@test "completions: a query: names of fields, and values from the history" {
    {
        printf '{"id":"1-1","session_id":"q-1","timestamp":"2026-01-01T00:00:00Z","role":"assistant","content":"x",'
        printf '"model":"gpt-9","origin":"aider:a/1","tool_calls":[{"id":"c","name":"grep_it","args":{}},'
        printf '{"id":"d","name":"two words","args":{}},{"id":"e","name":"grep\\u001b[31m","args":{}}]}\n'
    } >main.jsonl
    for shell in "${SHELLS[@]}"; do
        completed "$shell" "hist-search --query 'cart rol" "hist-search --query 'cart role:"
        completed "$shell" 'hist-search --query tool:gr' 'hist-search --query tool:grep_it'
        completed "$shell" 'hist-search --query mod' 'hist-search --query model:'
        completed "$shell" 'hist-search --query=model:' 'hist-search --query=model:gpt-9'
        completed "$shell" 'hist-sessions --match before:y' 'hist-sessions --match before:yesterday'
        completed "$shell" 'hist-sessions --match bef' 'hist-sessions --match before:'
        completed "$shell" 'hist-delete --match id:q' 'hist-delete --match id:q-1'
        completed "$shell" 'hist-search --history other.jsonl --query id:' \
            'hist-search --history other.jsonl --query id:gamma-3'
    done
    run_expect 0 hist-search --complete 'tool:'
    stdout_is tool:grep_it
    run_expect 0 hist-search --complete 'a role:'
    stdout_is 'a role:user' 'a role:assistant' 'a role:tool' 'a role:system'
    run_expect 0 hist-search --complete ''
    stdout_has role:user since: after: until: before: model: from: file: tool: title: repo: in: session: id:
    need fish
    in_fish "hist-search --query 'cart tool:"
    stdout_is 'cart tool:grep_it'
    in_fish 'hist-sessions --match=bef'
    stdout_is '--match=before:'
    in_fish 'hist-search --query from:'
    stdout_is 'from:aider'
}

@test "completions: the beginning of the six digits of a generated id" {
    hist_line sess_1719500000000_996773 user 'with digits' >>main.jsonl
    hist_line sess_1719500000001_a96773 user 'with others' >>main.jsonl
    for shell in "${SHELLS[@]}"; do
        completed "$shell" 'hist-load 996' 'hist-load sess_1719500000000_996773 '
        completed "$shell" 'chat -s a' 'chat -s alpha-1 '
        completed "$shell" 'chat -s a9' 'chat -s sess_1719500000001_a96773 '
        completed "$shell" 'hist-load 967' 'hist-load 967'
        completed "$shell" 'hist-load 96773' 'hist-load 96773'
    done
    need fish
    in_fish 'hist-load 996'
    stdout_is $'sess_1719500000000_996773\twith digits'
}

@test "completions: bash: sessions" {
    completed bash 'hist-show al' 'hist-show alpha-1 '
    completed bash 'hist-show cur' 'hist-show current '
    completed bash 'hist-show beta:' 'hist-show beta:2 '
    completed bash 'hist-show beta\\:' 'hist-show beta:2 '
    completed bash 'hist-show pha-1' 'hist-show alpha-1 '
    completed bash 'hist-search --session=be' 'hist-search --session=beta:2 '
    completed bash 'hist-show --history other.jsonl g' 'hist-show --history other.jsonl gamma-3 '
    completed bash 'hist-show --hist="$PWD/other.jsonl" g' 'hist-show --hist="$PWD/other.jsonl" gamma-3 '
    completed bash 'hist-show --history other.jsonl al' 'hist-show --history other.jsonl al'
    # What would have to be run to be known is not run.
    completed bash 'hist-show --history $(touch pwned) al' 'hist-show --history $(touch pwned) al'
    [[ ! -e pwned ]] || fail 'a command on the line was run'
}

# asking: what hist-sessions is asked from now on is in `asked`.
asking() {
    mkdir wrapped
    printf '#!/bin/sh\nprintf "%%s\\n" "$*" >>asked\nexec "%s" "$@"\n' "$BIN/hist-sessions" >wrapped/hist-sessions
    chmod +x wrapped/hist-sessions
    PATH=$PWD/wrapped:$PATH
}

# Of many sessions the others are not read.
@test "completions: only the sessions that are meant are asked for, and so many as a list can hold" {
    asking
    for shell in "${SHELLS[@]}"; do
        completed "$shell" "hist-show 'al" "hist-show 'alpha-1' "
        is asked asked '--limit 51 --id al'
        rm asked
    done
    if command -v fish >/dev/null; then
        in_fish 'hist-show al'
        is asked asked '--limit 51 --id al'
        in_fish "hist-show 'al"
        stdout_is $'alpha-1\tan early question'
        in_fish 'hist-search --session=al'
        stdout_is $'--session=alpha-1\tan early question'
        in_fish 'hist-search -sal'
        stdout_is $'-salpha-1\tan early question'
    fi
}

# The newest ones begin with `many-1`, the others with `many-0`.
@test "completions: of many sessions those used last are offered, and nothing that only they begin with" {
    local i
    for i in {001..150}; do hist_line "many-$i" user "question $i"; done >main.jsonl
    listed bash 'hist-show many-' 'type more of an id\s'
    stdout_has 'many-150  question 150' 'many-101  question 101' 'many-...'
    stdout_lacks many-100 many-099
    completed bash 'hist-show many-' 'hist-show many-'
    completed bash 'hist-show many-09' 'hist-show many-09'
    completed bash 'hist-show many-099' 'hist-show many-099 '
    listed bash 'hist-show many-09' 'many-090  [^\n]*\s'
    stdout_lacks many-...
    completed bash 'chat -s ' 'chat -s '
    if command -v zsh >/dev/null; then
        listed zsh 'hist-show many-' 'type more of an id'
        stdout_has 'many-150  -- question 150' 'many-101  -- question 101'
        stdout_lacks many-100 many-099
        completed zsh 'hist-show many-' 'hist-show many-'
        completed zsh 'hist-show many-099' 'hist-show many-099 '
        completed zsh 'chat -s ' 'chat -s '
    fi
    if command -v fish >/dev/null; then
        in_fish 'hist-show many-'
        [[ $(wc -l <"$OUT") == 51 ]] || fail "$(cat "$OUT")"
        stdout_has $'many-150\tquestion 150' $'many-101\tquestion 101' $'many-...\tmore sessions'
        in_fish 'hist-show many-09'
        [[ $(wc -l <"$OUT") == 10 ]] || fail "$(cat "$OUT")"
    fi
}

@test "completions: bash: a list of sessions shows their previews, harmless" {
    listed bash 'hist-show ' 'an early question\s'
    stdout_matches '^alpha-1 +an early question' '^last +the session used last' \
        '^beta:2 +red \?\[31mtext\? \? \$\(touch pwned\)'
    stdout_lacks $'\e' $'\a' $'\xe2\x80\xae' title 'an option'
    # chat -s takes an id as it is: no word for one, and none that it would refuse.
    listed bash 'chat -s ' 'an early question\s'
    stdout_has beta:2
    stdout_lacks current 'my chat' title
    [[ ! -e pwned ]] || fail 'a preview was run'
}

@test "completions: bash: an id with odd characters is quoted" {
    completed bash 'hist-show my' "hist-show my\\ chat\\;\\ \\\$\\(touch\\ pwned\\)\\ \\'x\\'\\ y "
    in_bash --type 'hist-show my\t\n' --wait 'odd characters'
    stdout_has 'an id with odd characters'
    in_bash --type "hist-show 'my\\t\\n" --wait 'odd characters'
    stdout_has 'an id with odd characters'
    [[ ! -e pwned ]] || fail 'an id was run'
}

@test "completions: bash: found by name, as bash-completion does" {
    mkdir -p dir
    ln -s "$ROOT/completions/bash" dir/completions
    export BASH_COMPLETION_USER_DIR=$PWD/dir
    if [[ -e /usr/share/bash-completion/bash_completion ]]; then
        BASHRC='. /usr/share/bash-completion/bash_completion'
    else
        BASHRC='load_it() { . "$BASH_COMPLETION_USER_DIR/completions/${1##*/}" && return 124; }
            complete -D -F load_it'
    fi
    completed bash 'hist-show al' 'hist-show alpha-1 '
    completed bash 'chat -m echo:' 'chat -m echo:echo '
}

# Two templates, one of them nothing that a terminal should obey, and a persona.
presets() {
    mkdir -p "$HOME/.config/chathist/templates" "$HOME/.config/chathist/personas" sub
    echo 'Translate {{input}}' >"$HOME/.config/chathist/templates/translate"
    printf 'red \e[31mtext $(touch pwned)\n' >"$HOME/.config/chathist/templates/odd; \$(touch pwned)"
    echo 'You are a poet.' >"$HOME/.config/chathist/personas/poet"
    echo x >sub/other
}

@test "completions: templates and personas" {
    presets
    for shell in "${SHELLS[@]}"; do
        completed "$shell" 'chat -t trans' 'chat -t translate '
        completed "$shell" 'chat --template=trans' 'chat --template=translate '
        completed "$shell" 'chat --persona p' 'chat --persona poet '
        completed "$shell" 'chat -t sub/o' 'chat -t sub/other '
    done
    completed bash 'chat -t "odd;' 'chat -t "odd; \$(touch pwned)" '
    listed bash 'chat -t ' 'translate [^\n]*\s'
    stdout_matches '^translate +Translate \{\{input\}\}' 'red \?\[31mtext \$\(touch pwned\)'
    stdout_lacks $'\e'
    [[ ! -e pwned ]] || fail 'something was run'
    [[ ${SHELLS[*]} == *zsh* ]] || return 0
    listed zsh 'chat -t ' 'Translate'
    stdout_matches '^translate +-- Translate \{\{input\}\}' 'red \?\[31mtext \$\(touch pwned\)'
    stdout_lacks $'\e'
    [[ ! -e pwned ]] || fail 'something was run'
}

@test "completions: zsh: options" {
    need zsh
    completed zsh 'chat --dr' 'chat --dry-run '
    for program in chat hist-search; do
        options "$program"
        in_zsh --type "$program --\\t" --wait 'print the version'
        grep -oE -e '^--[a-z][a-z-]*' "$OUT" | sort -u >got
        same "$program: options" wanted got
    done
    stdout_matches '^--role +(-r +)?-- only messages of this role'
}

@test "completions: zsh: sessions with their previews, harmless" {
    need zsh
    completed zsh 'hist-show al' 'hist-show alpha-1 '
    completed zsh 'hist-show pha-1' 'hist-show alpha-1 '
    completed zsh 'hist-show beta:' 'hist-show beta:2 '
    completed zsh 'hist-show --history other.jsonl g' 'hist-show --history other.jsonl gamma-3 '
    completed zsh 'hist-show --history $(touch pwned) al' 'hist-show --history $(touch pwned) al'
    listed zsh 'hist-show ' 'an early question'
    stdout_matches '^alpha-1 +-- an early question' '^last +-- the session used last' \
        '^beta:2 +-- red \?\[31mtext\? \? \$\(touch pwned\)'
    stdout_lacks $'\e' $'\a' $'\xe2\x80\xae' title 'an option'
    listed zsh 'chat -s ' 'an early question'
    stdout_has beta:2
    stdout_lacks current 'my chat' title
    in_zsh --type 'hist-show my\t' --pause 300ms --type '\n' --wait 'an id with odd'
    [[ ! -e pwned ]] || fail 'something was run'
}

@test "completions: fish: options with their help" {
    need fish
    for program in chat hist-search; do
        options "$program"
        in_fish "$program --"
        cut -f 1 "$OUT" | sort >got
        same "$program: options" wanted got
    done
    stdout_has $'--role\tonly messages of this role; may be repeated\n'
    in_fish 'hist-search -'
    stdout_has $'-r\tonly messages of this role; may be repeated\n'
}

@test "completions: fish: roles, colours, providers, models, files" {
    need fish
    in_fish 'hist-search -r '
    [[ $(cut -f 1 "$OUT" | sort | xargs) == 'assistant system tool user' ]] || fail roles
    in_fish 'hist-search --since '
    [[ $(cut -f 1 "$OUT" | sort | xargs) == '1d 30d 7d today yesterday' ]] || fail times
    in_fish 'hist-show --color='
    [[ $(cut -f 1 "$OUT" | sort | xargs) == '--color=always --color=auto --color=never' ]] || fail colours
    in_fish 'hist-load --format '
    [[ $(cut -f 1 "$OUT" | sort | xargs) == 'json md text' ]] || fail formats
    in_fish 'chat -p '
    [[ $(cut -f 1 "$OUT" | xargs) == 'openai openai-responses openai-chat anthropic openrouter groq mistral deepseek gemini ollama llamacpp lmstudio vllm docker echo' ]] || fail providers
    in_fish 'chat -m ec'
    stdout_is echo:echo
    in_fish 'chat -f oth'
    stdout_is other.jsonl
    in_fish 'chat oth'
    stdout_empty
}

@test "completions: fish: tools by name or path" {
    need fish
    put_tools
    in_fish 'chat -T re'
    stdout_matches '^read_file'
    stdout_lacks readme title
    in_fish 'chat --tool ./oth'
    stdout_is ./other.jsonl
}

@test "completions: fish: templates and personas" {
    need fish
    presets
    in_fish 'chat -t trans'
    stdout_is $'translate\tTranslate {{input}}'
    in_fish 'chat --template=trans'
    stdout_is $'--template=translate\tTranslate {{input}}'
    in_fish 'chat --persona '
    stdout_is $'poet\tYou are a poet.'
    in_fish 'chat -t sub/o'
    stdout_is sub/other
    in_fish 'chat -t odd'
    stdout_has 'red ?[31mtext $(touch pwned)'
    [[ ! -e pwned ]] || fail 'something was run'
}

@test "completions: fish: sessions with their previews, harmless" {
    need fish
    in_fish 'hist-show '
    stdout_is $'current\tthe current session' $'last\tthe session used last' \
        $'my chat; $(touch pwned) \'x\' y\tan id with odd characters' \
        $'beta:2\tred ?[31mtext? ? $(touch pwned)' $'alpha-1\tan early question'
    in_fish 'chat -s '
    stdout_is $'beta:2\tred ?[31mtext? ? $(touch pwned)' $'alpha-1\tan early question'
    in_fish 'hist-show --history other.jsonl g'
    stdout_is $'gamma-3\tin another file'
    in_fish 'hist-show --history=other.jsonl g'
    stdout_is $'gamma-3\tin another file'
    in_fish 'hist-show --history (touch pwned) al'
    stdout_empty
    [[ ! -e pwned ]] || fail 'something was run'
}
