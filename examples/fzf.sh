#!/bin/sh
# fzf: picks a session and makes it current, so that the next `chat` continues it.
#
#   fzf.sh [TEXT]     of the sessions that speak of TEXT, else of all
#
# With fzf installed: type to filter, the session is shown beside the list. Without it a numbered menu;
# without a terminal the last used session.
set -eu

about=
sessions=$(hist-sessions)
if [ $# -gt 0 ]; then
    about=" that speaks of '$1'"
    found=$(hist-search --sessions -- "$1") || :
    export found
    sessions=$(printf '%s\n' "$sessions" | awk -F '\t' '
        BEGIN { for (n = split(ENVIRON["found"], ids, "\n"); n > 0; n--) keep[ids[n]] }
        $1 in keep')
fi
if [ -z "$sessions" ]; then
    echo "${0##*/}: there is no session$about" >&2
    exit 1
fi

menu() {
    printf '%s\n' "$sessions" | awk -F '\t' '{ printf "%3d  %s  %s\n", NR, substr($2, 1, 10), $4 }'
    printf 'number: '
    read -r number
} </dev/tty >/dev/tty

if command -v fzf >/dev/null; then
    choice=$(printf '%s\n' "$sessions" |
        fzf --delimiter='\t' --with-nth=2,4 --preview='hist-show -- {1}') || exit
elif [ -t 0 ] && [ -t 2 ]; then
    menu
    choice=$(printf '%s\n' "$sessions" | awk -v number="$number" 'NR == number')
else
    choice=$(printf '%s\n' "$sessions" | head -n 1)
fi
[ -n "$choice" ] || exit 1
printf '%s\n' "$choice" | hist-load -
