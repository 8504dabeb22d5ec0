# shellcheck shell=bash
# browse-key: Ctrl-G inserts a choice in hist-browse into the command line, in bash and zsh.
#
#     . examples/browse-key.sh       in ~/.bashrc or ~/.zshrc
#
# On an empty line it writes `hist-show -- ID`, to be run or changed; after words it inserts only the id of
# the session, as in `hist-export -f html `; after a double quote the quoted text of the message, as in `chat "`.
# With CHATHIST_BROWSE=fzf the choice is made in fzf.

# __chathist_choose id|text
__chathist_choose() {
    if [ "${CHATHIST_BROWSE:-}" != fzf ]; then
        hist-browse --print "$1"
        return
    fi
    set -- "$1" "$(hist-sessions |
        fzf --delimiter='\t' --with-nth=2,4 --preview='hist-show -- {1}' | cut -f 1)"
    if [ -z "$2" ]; then
        return 1
    elif [ "$1" = id ]; then
        printf '%s\n' "$2"
    else
        # Its last prompt.
        printf '%s\n' "$2" | hist-show --json --role user --limit 1 - | jq -r .content
    fi
}

# Sets `written` to the text that replaces $1, left of the cursor. It uses single quotes, because no character in
# them has a meaning for the shell.
__chathist_write() {
    local chosen
    if [[ $1 == *\" ]]; then
        chosen=$(__chathist_choose text) || return
        written="${1%\"}'${chosen//\'/\'\\\'\'}'"
        return
    fi
    chosen=$(__chathist_choose id) || return
    [[ $chosen != *[!A-Za-z0-9._:-]* ]] || chosen="'${chosen//\'/\'\\\'\'}'"
    if [[ $1 == *[![:space:]]* ]]; then
        written=$1$chosen
    else
        written="hist-show -- $chosen"
    fi
}

if [ -n "${ZSH_VERSION:-}" ]; then
    __chathist_browse() {
        local written
        zle -I
        # zsh reads the line from standard input.
        __chathist_write "$LBUFFER" </dev/tty && LBUFFER=$written
        zle reset-prompt
    }
    zle -N __chathist_browse
    bindkey '^G' __chathist_browse
elif [ -n "${BASH_VERSION:-}" ]; then
    __chathist_browse() {
        local written
        __chathist_write "${READLINE_LINE:0:READLINE_POINT}" || return
        READLINE_LINE=$written${READLINE_LINE:READLINE_POINT}
        READLINE_POINT=${#written}
    }
    bind -x '"\C-g": __chathist_browse'
fi
