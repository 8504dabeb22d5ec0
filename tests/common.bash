# shellcheck shell=bash
#
# common: the functions of the .bats files (helper.bash) and of the cases (tests/play) that make repositories,
# settings, tools, terminals and the lines of histories.

# Makes DIR (the working directory) a git repository, without running git.
make_repo() {
    mkdir -p "${1:-.}/.git/objects" "${1:-.}/.git/refs/heads"
    echo 'ref: refs/heads/main' >"${1:-.}/.git/HEAD"
}

# The built-in model that answers offline.
use_echo() {
    export CHAT_PROVIDER=echo
}

# configure LINE...: the user configuration.
configure() {
    mkdir -p "$HOME/.config/chathist"
    printf '%s\n' "$@" >"$HOME/.config/chathist/config"
}

# prices LINE...: the user's table of prices.
prices() {
    mkdir -p "$HOME/.config/chathist"
    printf '%s\n' "$@" >"$HOME/.config/chathist/prices"
}

# put_tool FILE SCRIPT [NAME]: a tool that declares itself by this name, or that of its file, and answers with the script.
put_tool() {
    # shellcheck disable=SC2016
    printf '#!/bin/sh\n[ "$1" != --schema ] || { echo '\''{"name":"%s","description":"for tests"}'\''; exit; }\n%s\n' \
        "${3:-$(basename "$1")}" "${2-}" >"$1"
    chmod 755 "$1"
}

# on_tty [OPTION]... COMMAND...: runs it on a new terminal; LF comes out as CR LF. `on-tty --help` has the options.
on_tty() {
    python3 -S "$ROOT/tests/tools/on-tty" "$@"
}

# json_text TEXT: TEXT as JSON, in JSON_TEXT. jq takes 25 ms to start, so it only gets what few tests have.
json_text() {
    # shellcheck disable=SC2101
    if [[ $1 == *[!$'\n\t'[:print:]]* ]]; then
        JSON_TEXT=$(printf '%s' "$1" | jq -Rs .)
    else
        JSON_TEXT=${1//\\/\\\\} JSON_TEXT=${JSON_TEXT//\"/\\\"} JSON_TEXT=${JSON_TEXT//$'\n'/\\n}
        JSON_TEXT=\"${JSON_TEXT//$'\t'/\\t}\"
    fi
}

# hist_line SESSION ROLE CONTENT [TIMESTAMP [MORE]]: one valid history line. Without TIMESTAMP each is a second
# later than the last; MORE is a JSON object of optional fields.
hist_line() {
    local id time=${4-} session role more=${5-}
    printf -v id '"%s000-%04x%04x"' $((1719500000 + ++LINES_MADE)) "$RANDOM" $((RANDOM ^ LINES_MADE))
    [[ -n $time ]] || TZ=UTC printf -v time '%(%FT%T)T.000000+00:00' $((1719500000 + LINES_MADE))
    json_text "$1" && session=$JSON_TEXT
    json_text "$2" && role=$JSON_TEXT
    json_text "$3"
    if [[ $more =~ ^\{\"id\":(\"[^\"\\]*\"),?(.*)$ ]]; then id=${BASH_REMATCH[1]} more="{${BASH_REMATCH[2]}"; fi
    set -- '{"id":%s,"session_id":%s,"timestamp":"%s","role":%s,"content":%s%s}\n' \
        "$id" "$session" "$time" "$role" "$JSON_TEXT"
    # The rest of MORE stands at the end, unless it replaces a field or jq writes it in another way.
    if [[ $more =~ [\\\ .]|\"(id|session_id|timestamp|role|content)\": ]]; then
        # shellcheck disable=SC2059
        printf "$@" '' | jq -c --argjson more "$more" '. + $more'
    else
        more=${more#\{} more=${more%\}}
        # shellcheck disable=SC2059
        printf "$@" "${more:+,$more}"
    fi
}

# hist_lines SESSION COUNT: this many lines, user and assistant by turns, "message 1" and so on, a second apart.
hist_lines() {
    local i from=$LINES_MADE roles=(assistant user) TZ=UTC
    json_text "$1"
    LINES_MADE=$((from + $2))
    for ((i = 1; i <= $2; i++)); do
        printf '{"id":"%s000-%04x%04x","session_id":%s,"timestamp":"%(%FT%T)T.000000+00:00","role":"%s","content":"message %s"}\n' \
            $((1719500000 + from + i)) "$RANDOM" $((RANDOM ^ from + i)) "$JSON_TEXT" $((1719500000 + from + i)) "${roles[i % 2]}" "$i"
    done
}

# put SESSION ROLE CONTENT [TIMESTAMP [MORE]]: adds a line to the history (hist_line).
put() {
    hist_line "$@" >>"$HISTORY"
}

# times CHARACTER COUNT: the character so often.
times() {
    # Not ${text// /é}: bash takes quadratic time for that.
    yes "$1" | head -n "$2" | tr -d '\n'
}

# mask [FILE]: made ids and times of now as ID, SESSION and TIME.
mask() {
    sed -E 's/"id":"[0-9]{13}-[0-9a-f]{8}"/"id":"ID"/
        s/"timestamp":"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}\+00:00"/"timestamp":"TIME"/
        s/"session_id":"sess_[0-9]{13}_[0-9a-f]{6}"/"session_id":"SESSION"/' "$@"
}

# field NAME [FILE]: the first string of that name on each line of JSON, as it stands there.
field() {
    awk -v name="\"$1\":\"" '{
        if (match($0, name "([^\"\\\\]|\\\\.)*\"")) print substr($0, RSTART + length(name), RLENGTH - length(name) - 1)
        else print
    }' "${@:2}"
}
