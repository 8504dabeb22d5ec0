#!/bin/sh
# streaming: handles an answer event by event while it arrives.
#
#   streaming.sh [QUESTION]...
#
# chat prints text as it arrives by itself; --json is for programs that want to know more: the session,
# the tokens, how it ended. An event is one line, a JSON object with a "type".
set -eu

# member NAME: of the event.
member() {
    printf '%s\n' "$event" | jq -rj --arg name "$1" '.[$name] // ""'
}

chat --json -- "${*:-Count from one to ten in words.}" | {
    status=1
    while IFS= read -r event; do
        case $(member type) in
        session_id) echo "[session $(member session_id)]" ;;
        text) member text ;;
        usage) tokens="$(member input_tokens) tokens in, $(member output_tokens) out" ;;
        done)
            printf '\n[%s; %s]\n' "$(member finish_reason)" "${tokens:-tokens unknown}"
            status=0
            ;;
        error) status=$(member code) ;;
        esac
    done
    # Of a pipeline only the last command's status is seen; the error event brings chat's into it.
    exit "$status"
}
