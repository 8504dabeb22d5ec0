#!/usr/bin/env bats
#
# The images of an answer: each is a file, which the line of the answer and standard error name.

load ../helper
load ../wire

PNG=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
GIF=R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7

setup() {
    sandbox
    mkdir -p place
    SUM=$(printf %s "$PNG" | base64 -d | sha256sum | cut -c 1-64)
}

# chunks DELTA...: a stream of Chat Completions.
chunks() {
    printf 'status: 200\n\n'
    printf 'data: {"choices":[{"index":0,"delta":%s}]}\n\n' "$@"
    printf 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
}
image() { printf '{"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}' "$1"; }

@test "images: of every wire, beside the history, once each, with the modes of the history" {
    local wire
    use_history "$PWD/place/history.jsonl"
    umask 022
    chunks '{"content":"here"}' "$(image "$PNG")" "$(image "$PNG")" >openai.http
    printf 'status: 200\n\ndata: %s\n\n' '{"type":"response.output_item.done","output_index":0,"item":{"type":"image_generation_call","id":"i","status":"completed","result":"'"$PNG"'"}}' \
        '{"type":"response.output_text.delta","output_index":1,"delta":"here"}' \
        '{"type":"response.completed","response":{"status":"completed","output":[]}}' >openai-responses.http
    printf '%s\n' 'status: 200' 'header: Content-Type: application/x-ndjson' '' \
        '{"message":{"content":"here","images":["'"$PNG"'"]},"done":false}' '{"message":{"content":""},"done":true,"done_reason":"stop"}' >ollama.http
    for wire in openai openai-responses ollama; do
        rm -rf place/files
        start_llm "./$wire.http"
        export OLLAMA_HOST=127.0.0.1:$LLM_PORT
        run_expect 0 chat -N -m "$wire:m" hello
        stdout_is here
        stderr_is "chat: the answer has an image: $PWD/place/files/$SUM.png"
        [[ $(cd place && find files -printf '%m %P\n' | sort) == $'600 '"$SUM.png"$'\n700 ' ]]
        printf %s "$PNG" | base64 -d | cmp - "place/files/$SUM.png"
        run_expect 0 hist-show --json last
        stdout_json 'select(.role == "assistant").files_modified | tojson' "[\"files/$SUM.png\"]"
    done
    # The other programs leave the file alone, and lists of files are as with tools.
    run_expect 0 hist-check
    run_expect 0 hist-export -f md
    run_expect 0 hist-delete --force last
    [[ -e place/files/$SUM.png ]]
}

@test "images: an answer of images alone is not empty, and -O names the files" {
    use_history "$PWD/place/history.jsonl"
    chunks "$(image "$PNG")" "$(image "$GIF")" >two.http
    start_llm ./two.http
    run_expect 0 chat -N -O out.png hello
    stdout_empty
    stderr_is 'chat: the answer has an image: out.png' 'chat: the answer has an image: out-2.png'
    printf %s "$PNG" | base64 -d | cmp - out.png
    printf %s "$GIF" | base64 -d | cmp - out-2.png
    json_is "$HISTORY" 'select(.role == "assistant").files_modified | tojson' '["out.png","out-2.png"]'
    [[ ! -e place/files ]]
    # Nothing is stored: only -O keeps it.
    run_expect 0 chat --once hello
    stderr_is 'chat: the answer has an image, which is not kept (-O FILE keeps it)'
    run_expect 0 chat --once --json -O once.png hello
    stdout_has '"message":"the answer has an image: once.png"'
    [[ -s once.png ]]
}

@test "images: one that cannot be written costs no text, and the status is 8" {
    use_history "$PWD/place/history.jsonl"
    chunks '{"content":"here"}' "$(image "$PNG")" >one.http
    start_llm ./one.http
    run_expect 8 chat -N -O nowhere/out.png hello
    stdout_is here
    stderr_is "chat: not stored: cannot write 'nowhere/out.png': No such file or directory"
    json_is "$HISTORY" 'select(.role == "assistant") | [.content, .finish_reason, has("files_modified")] | tojson' '["here","stop",false]'
    # A link beside the history is not followed.
    mkdir elsewhere
    ln -s "$PWD/elsewhere" place/files
    run_expect 8 chat -N hello
    stdout_is here
    stderr_matches "^chat: not stored: cannot open '$PWD/place/files': "
    [[ -z $(ls elsewhere) ]]
    # What is no image of a known form, or is only named.
    chunks "$(image AAAA)" '{"images":[{"image_url":{"url":"https://x.org/a.png"}}]}' '{"content":"here"}' >odd.http
    rm place/files
    start_llm ./odd.http
    run_expect 0 chat -N hello
    stdout_is here
    stderr_is 'chat: the answer has an image, which is not kept' 'chat: the answer has an image, which is not kept'
    [[ ! -e place/files ]]
}
