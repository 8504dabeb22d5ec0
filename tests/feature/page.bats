#!/usr/bin/env bats
#
# The HTML page: its bytes, and what it does in Chromium. Without one (`mk/deps browser`) the tests
# that need it are skipped.

# Scripts of the page and dollar signs of JavaScript; names of repositories as the page shows them.
# shellcheck disable=SC2016,SC2088

load ../helper

PAGE=$ROOT/lib/convert/page
JS=$TESTS/fixtures/page

setup() {
    sandbox
    case $BATS_TEST_DESCRIPTION in
    'page, bytes: '*) ;;
    *) need_browser ;;
    esac
}

# The lines on standard input as page.html.
make_page() {
    "$BIN/tests/tools/export-page" >page.html
}

# browse [FILE#FRAGMENT] STEP...: page.html, and the page kept still meanwhile.
browse() {
    local page=page.html
    if [[ $1 != --* ]]; then
        page=$1
        shift
    fi
    run_expect 0 "$TESTS/tools/in-browser" "$page" "$@"
    stderr_empty
}

# line ID SESSION ROLE CONTENT [SECOND [MORE]]
line() {
    jq -cn --arg id "$1" --arg session "$2" --arg role "$3" --arg content "$4" --argjson s "${5:-0}" \
        --argjson more "${6:-null}" '{id: $id, session_id: $session,
        timestamp: (1719500000 + $s | todate | sub("Z"; ".000000+00:00")), role: $role, content: $content}
        + ($more // {})'
}

# Three sessions: one with tools, one that is older, one that is long.
talk() {
    line m1 tools system 'Be brief' 100
    line m2 tools user 'What is in the Makefile?' 101 '{"files": ["Makefile"]}'
    line m3 tools assistant '' 102 '{"tool_calls": [{"id": "c1", "name": "read_file", "args": {"path": "Makefile"}}]}'
    line m4 tools tool 'all: program' 103 '{"tool_call_id": "c1"}'
    line m5 tools assistant $'It builds **one** `program`.\n\n```make\nall: program\n```' 104 \
        '{"model": "some-model", "finish_reason": "length", "usage": {"output_tokens": 12}}'
    line o1 old user 'An old question about a badger' 0
    line o2 old assistant 'An old answer' 1
    line l0 long user 'The long one' 50
    jq -cn 'range(1; 301) | {id: "l\(.)", session_id: "long",
        timestamp: (1719500050 + . | todate | sub("Z"; ".000000+00:00")),
        role: (if . % 2 == 0 then "user" else "assistant" end), content: "Line \(.) about the weather"}'
}

# Script: the text of all elements that a selector finds, a line each.
texts() {
    printf '[...document.querySelectorAll(%s)].map(e => e.textContent).join("\\n")' "$(jq -cn --arg s "$1" '$s')"
}

STATUS='document.getElementById("status").textContent'

# Script: is this message wholly or in part in sight?
in_sight() {
    printf '(() => { const b = document.querySelector("article:has([href$=\\"/%s\\"])")?.getBoundingClientRect();
        return Boolean(b) && b.bottom > 80 && b.top < innerHeight; })()' "$1"
}

TODAY=$(LC_ALL=C date -u '+%-d %b %Y')

# ---- bytes

@test "page, bytes: what a message says cannot leave the element of data" {
    line '</script>' '<!--<script>' user $'</script><script>alert(1)</script>\u2028<!-- ]]> &lt;\r\n\x01' | make_page
    run_expect 0 sed -n '/id="history">$/,/^<\/script>$/p' page.html
    stdout_is '<script type="application/x-ndjson" id="history">' \
        "{\"id\":\"\\u003c/script>\",\"session_id\":\"\\u003c!--\\u003cscript>\",\"timestamp\":\"2024-06-27T14:53:20.000000+00:00\",\"role\":\"user\",\"content\":\"\\u003c/script>\\u003cscript>alert(1)\\u003c/script>"$'\u2028'"\\u003c!-- ]]> &lt;\\r\\n\\u0001\"}" \
        '</script>'
}

@test "page, bytes: what the page does not show is not in it" {
    line m1 s assistant said 0 '{"thinking": [{"signature": "c2VjcmV0"}], "forked_from": "x", "secret": 1, "model": "m"}' |
        make_page
    run_expect 0 sed -n '/id="history">$/{n;p}' page.html
    stdout_is '{"id":"m1","session_id":"s","timestamp":"2024-06-27T14:53:20.000000+00:00","role":"assistant","content":"said","model":"m"}'
}

@test "page, bytes: a line stays a line, whatever stands between its tokens" {
    printf '{ "id":"a", "session_id":"s",\r"timestamp":"t","role":"user","content":"x","usage":{\r"input_tokens" : 1 } }\n' |
        make_page
    run_expect 0 sed -n '/id="history">$/{n;p;n;p}' page.html
    stdout_is '{"id":"a","session_id":"s","timestamp":"t","role":"user","content":"x","usage":{"input_tokens":1}}' '</script>'
}

@test "page, bytes: its policy allows its own style and script and nothing else" {
    local style script
    make_page </dev/null
    style=$({ echo && cat "$PAGE"/page.css; } | openssl dgst -sha256 -binary | openssl base64)
    { echo 'const LANGUAGES = [' && sed -n 's/^LANGUAGE(\(.*\))$/    [\1],/p' "$ROOT/lib/terminal/languages.def" | sed 's/<!/<\\u0021/' && echo '];'; } >languages.js
    script=$(cd "$PAGE" && { echo && cat markdown.js "$OLDPWD/languages.js" code.js list.js query.js search.js parts.js calendar.js page.js; } | openssl dgst -sha256 -binary | openssl base64)
    run_expect 0 grep -A 2 -o 'http-equiv=.*\|^; trusted.*\|^">' page.html
    stdout_is "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-$style'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; script-src 'sha256-$script'" \
        "; trusted-types 'none'" '">'
    # And it asks for nothing: no address of a file, no attribute that would need another policy.
    run_expect 1 grep -nE 'https?://[a-z]|src=|style="|\son[a-z]+=|@import|url\(' page.html
    stdout_empty
}

@test "page, bytes: a source that would end its element is refused" {
    cp -r "$PAGE" copy
    echo "'</SCRIPT >';" >>copy/list.js
    run_expect 1 "$ROOT/mk/page" copy
    stderr_has '</SCRIPT' 'page: the style or the script would end too early'
}

# ---- in Chromium

@test "page: sessions on the left, the last used first; messages on the right" {
    talk | make_page
    browse --eval "$(texts .entry)" --eval "$STATUS" --eval "$(texts '#title, #facts > span')" \
        --eval "$(texts '.head .who')" --eval 'document.title' \
        --eval '[...document.querySelectorAll("article")].map(a => a.className.split(" ")[1]).join(" ")'
    stdout_is 'The long one27 Jun 2024 · 301 messages' 'What is in the Makefile?27 Jun 2024 · 5 messages' \
        'An old question about a badger27 Jun 2024 · 2 messages' '3 sessions, 308 messages' \
        'The long one' '27 Jun 2024' '301 messages' 'long' \
        "$(for _ in {1..10}; do printf 'You\nAssistant\n'; done)" 'The long one – Conversations' \
        "$(printf 'user assistant %.0s' {1..10} | sed 's/ $//')"
}

@test "page: tool calls and results are cards, with their arguments" {
    talk | make_page
    browse 'page.html#tools' --eval "$(texts 'article .bubble')" --click 'article summary' \
        --wait 'document.querySelector("article details").open' --eval "$(texts 'details[open] pre')" \
        --eval "$(texts '.model')"
    stdout_is 'Be brief' 'What is in the Makefile?Makefile' 'Callread_file"path": "Makefile"{' '  "path": "Makefile"' '}' \
        'Resultread_fileall: programall: program' 'It builds one program.makeCopyall: programended: length' \
        '{' '  "path": "Makefile"' '}' 'some-model' '12 tokens'
}

@test "page: tool calls in the forms of OpenAI and Anthropic" {
    {
        line m1 s assistant '' 1 '{"tool_calls":[{"id":"c1","type":"function","function":{"name":"list_dir","arguments":"{\"path\":\"src\"}"}},{"type":"tool_use","id":"c2","name":"read_file","input":{"file":"x.c"}},{"id":"c3"},7]}'
        line m2 s tool 'a b' 2 '{"tool_call_id": "c1"}'
    } | make_page
    browse 'page.html#s' --eval "$(texts 'summary b')" --eval "$(texts 'details pre')" --eval 'document.body.innerText.includes("undefined")'
    stdout_is list_dir read_file tool list_dir '{' '  "path": "src"' '}' '{' '  "file": "x.c"' '}' '' 'a b' false
}

@test "page: the pages that an answer cites are links to them, those of the web alone" {
    line m1 s assistant 'It rains.' 1 '{"citations": [{"url": "https://a.org/?a=1&b=<i>"}, {"url": "https://a.org/?a=1&b=<i>"}, {"url_citation": {"url": "javascript:alert(1)"}}, {"url": "mailto:a@b.org"}, {"url": "HTTP://b.org/\u202e"}]}' | make_page
    browse 'page.html#s' --eval "$(texts '.sources li')" --eval "$(texts '.sources a')" \
        --eval '[...document.querySelectorAll(".sources a")].map(a => `${a.getAttribute("href")} ${a.rel}`).join("\n")'
    stdout_is 'https://a.org/?a=1&b=<i>' 'javascript:alert(1)' 'mailto:a@b.org' 'HTTP://b.org/<U+202E>' \
        'https://a.org/?a=1&b=<i>' 'HTTP://b.org/<U+202E>' \
        'https://a.org/?a=1&b=%3Ci%3E noopener noreferrer' 'http://b.org/%E2%80%AE noopener noreferrer'
}

@test "page, bytes: it says that it loads until its script has run" {
    talk | make_page
    sed '/^<script type=/,$d' page.html >"head"
    run_expect 0 grep -c -e '<h1 id="title">Loading…</h1>' -e '<input id="query".* disabled>' head
    stdout_is 2
    run_expect 1 grep 'No messages' head
}

@test "page: when it has loaded, the box is there and the title is the session" {
    talk | make_page
    browse --eval 'document.getElementById("query").disabled' --eval 'document.getElementById("title").textContent.includes("Loading")'
    stdout_is false false
}

@test "page: Markdown becomes elements, and nothing else does" {
    line m1 s assistant '# One

Some *em*, **strong**, ***both***, ~~gone~~, `a<b>`, ``x`y``, snake_case_name, 2*3*4, \*plain\*.
A [link](https://example.org/a_(b) "t"), <https://example.org>, https://example.org/x. ![alt](http://example.org/i.png)

- a
  1. b
- [x] c

> q
> > r

| h | i |
|---|--:|
| `1` | **2** |

~~~c
int *p; ``` &amp;
~~~
    indented
---
### End' | make_page
    browse --run "$JS/outline.js"
    stdout_is '<h3>One</h3><p>Some <em>em</em>, <strong>strong</strong>, <strong><em>both</em></strong>, <del>gone</del>, <code>a<b></code>, <code>x`y</code>, snake_case_name, 2<em>3</em>4, *plain*.' \
        'A <a https://example.org/a_(b) noopener noreferrer>link</a>, <a https://example.org/ noopener noreferrer>https://example.org</a>, <a https://example.org/x noopener noreferrer>https://example.org/x</a>. <a http://example.org/i.png noopener noreferrer>alt</a></p><ul><li>a<ol><li>b</li></ol></li><li>☑ c</li></ul><blockquote><p>q</p><blockquote><p>r</p></blockquote></blockquote><table><tr><th>h</th><th>i</th></tr><tr><td><code>1</code></td><td><strong>2</strong></td></tr></table>{c}<pre><code><span>int</span> *p; ``` &amp;</code></pre>{}<pre><code>indented</code></pre><hr></hr><h4>End</h4>'
}

@test "page: no script of a message runs, and no link leads to one" {
    line '<img src=x onerror=alert(1)>' '"><script>alert(2)</script>' user '<script>alert(3)</script> <img src=x onerror=alert(4)>
</script><svg onload=alert(5)> [a](javascript:alert(6)) [b](JaVaScRiPt:alert(7)) [c](data:text/html,<script>alert(8)</script>)
[d](vbscript:x) <javascript:alert(9)> ![e](javascript:alert(10)) [f](//evil.example/x) [g](file:///etc/passwd) [h](java
script:alert(11)) [i](&#106;avascript:alert(12)) https://example.org/"onmouseover="alert(13) [ok](mailto:a@example.org)
```"><script>alert(14)</script>
x
```' 5 '{"files": ["<b>f"], "model": "<i>m", "finish_reason": "<u>"}' >lines
    # shellcheck disable=SC2129 # a line for each
    line m2 '"><script>alert(2)</script>' assistant '' 6 '{"tool_calls": [{"id": "<b>", "name": "<script>alert(15)</script>", "args": "{\"a\": \"</pre><script>alert(16)\"}"}], "edit_results": [{"x": "<img src=x>"}]}' >>lines
    line m3 '"><script>alert(2)</script>' tool '<script>alert(17)</script>' 7 '{"tool_call_id": "<b>"}' >>lines
    line m4 '"><script>alert(2)</script>' '<script>alert(18)</script>' 'of a role by another client' 8 >>lines
    make_page <lines
    browse --eval 'document.querySelectorAll("article script, article img, article iframe, article b:not(.card b), article svg, aside script").length' \
        --eval '[...document.querySelectorAll("article .text a")].map(a => a.href).join("\n")' \
        --eval 'document.querySelectorAll("article .text")[0].firstChild.textContent.split("\n")[0]' \
        --eval "$(texts '.who')" --eval "$(texts '.card b')" \
        --click '.entry' --eval 'decodeURIComponent(location.hash)' --click '.when' --eval 'decodeURIComponent(location.hash)'
    stdout_is 0 'https://example.org/' 'mailto:a@example.org' '<script>alert(3)</script> <img src=x onerror=alert(4)>' \
        You Assistant Tool '<script>alert(18)</script>' '<script>alert(15)</script>' '' '<script>alert(15)</script>' \
        '#"><script>alert(2)</script>' '#"><script>alert(2)</script>/<img src=x onerror=alert(1)>'
}

@test "page: its policy stops what its code would let through" {
    talk | make_page
    run_expect 1 "$TESTS/tools/in-browser" page.html --eval 'window.ran = 0;
        const s = document.createElement("script"); s.append("window.ran = 1"); document.body.append(s); window.ran'
    stdout_is 0
    stderr_has 'TrustedScript'
    run_expect 1 "$TESTS/tools/in-browser" page.html --eval '(() => { document.body.innerHTML = "<b>x</b>"; })()'
    stderr_has 'TrustedHTML'
    run_expect 1 "$TESTS/tools/in-browser" page.html --eval 'new Promise(r => { const i = new Image(); i.onerror = i.onload = r;
        i.src = "https://example.invalid/x.png"; }).then(() => undefined)'
    stderr_has "img-src"
}

@test "page: text without end is cut, shown whole when asked for, and takes no time to read" {
    python3 "$JS/endless.py" | make_page
    # The time-out of the browser is the shorter one.
    RUN_LIMIT=150 browse --timeout 120 --eval "$(texts '.more')" \
        --eval 'document.querySelectorAll("article .text")[0].textContent.length < 30000' \
        --eval 'void dispatchEvent(new Event("beforeprint"))' \
        --eval 'document.querySelectorAll("article").length' \
        --eval '[...document.querySelectorAll(".more")].map(b => b.click()).length' \
        --eval 'document.querySelectorAll("article .text")[0].textContent.slice(-8)'
    stdout_line 1 'Show all, 1.0 million characters'
    stdout_matches '^true$' '^40$' '^word end$'
}

@test "page: searches all messages while one types, and a hit leads to its message" {
    talk | make_page
    browse --key / --type '"LINE 250"' --wait 'document.querySelector("mark")' --eval "$STATUS" --eval "$(texts '.entry mark')" \
        --eval "$(texts '.entry .entry-snippet')" --click '#side-list .entry' --wait "$(in_sight l250)" --eval 'location.hash' \
        --eval '[...CSS.highlights.get("match")].map(String).join("|")' \
        --eval 'document.activeElement.dataset.position' \
        --key Escape --wait 'document.querySelector("#query").value === ""' --eval "$STATUS" --eval 'CSS.highlights.get("match").size'
    stdout_is '1 message in 1 session' 'Line 250' 'Line 250 about the weather' '#long/l250&q=%22LINE%20250%22' 'Line 250' 250 \
        '3 sessions, 308 messages' 0
}

@test "page: search waits until typing stops, and an older search says nothing any more" {
    talk | make_page
    # Every result that is announced is noted: there is one for each time that typing stopped.
    browse --eval 'void (window.said = [], new MutationObserver(() => said.push(told())).observe(
            document.getElementById("status"), { childList: true }), window.told = () => document.getElementById("status").textContent)' \
        --key / --type badger --eval 'document.querySelectorAll("mark").length' --wait 'told().includes("in 1 session")' \
        --eval 'said.filter(t => t.includes(" in ")).join("|")' --key Backspace --type ' -badge' --wait 'told().startsWith("Nothing")' --eval "$STATUS"
    stdout_is 0 '1 message in 1 session' 'Nothing matches “badge -badge”'
}

@test "page: Enter, n and p walk through the hits, from the newest; roles narrow them" {
    talk | make_page
    browse --key / --type weather --key Enter --wait 'location.hash === "#long/l300&q=weather"' --key n --eval 'location.hash' --key n \
        --eval 'location.hash' --key p --eval 'location.hash' --eval "$STATUS" --click '#roles input[name=user]' \
        --wait "$STATUS.startsWith('150')" --eval "$STATUS" --eval '[...document.querySelectorAll(".user")].filter(e => e.matches("article")).length' \
        --key n --eval 'location.hash'
    stdout_is '#long/l299&q=weather' '#long/l298&q=weather' '#long/l299&q=weather' '300 messages in 1 session' \
        '150 messages in 1 session' 0 '#long/l297&q=weather'
}

@test "page: search finds what tools were called with, and markup as it was written" {
    talk | make_page
    browse --key / --type 'tool:read_file make' --wait 'document.querySelector("mark")' --eval "$(texts '.entry-facts')" --key Enter \
        --wait 'document.querySelector("article details").open' --key / --type '**one**' --wait 'document.querySelector("mark")?.textContent.includes("*")' --eval "$(texts mark)"
    stdout_is 'Assistant · 27 Jun 2024' 'What is in the Makefile?' '**one**'
}

@test "page: an address leads to a message, and one that leads nowhere says so" {
    talk | make_page
    browse 'page.html#long/l200' --wait "$(in_sight l200)" --eval "$(texts '.named .text')" --open '#tools/m5' \
        --wait "$(in_sight m5)" --eval "$(texts '#title')" --open '#gone' --eval "$STATUS" --open '#tools/gone' --eval "$STATUS" \
        --open '#%E0%A4%A' --eval "$STATUS"
    stdout_is 'Line 200 about the weather' 'What is in the Makefile?' 'No session gone is in this page' \
        'No message gone is in this session' 'No session %E0%A4%A is in this page'
}

@test "page: going back and loading again keep session, query, roles and place" {
    talk | make_page
    browse 'page.html#long' --eval 'void (document.getElementById("messages").scrollTop = 5000)' --wait 'history.state?.anchor?.index > 10' \
        --eval 'window.at = history.state.anchor.index; undefined' \
        --key / --type badger --key Enter --wait 'location.hash === "#old/o1&q=badger"' --eval "$(texts '#title')" \
        --back --wait 'document.querySelector("#title").textContent === "The long one"' \
        --eval 'document.getElementById("query").value + " " + document.querySelectorAll("mark").length' \
        --wait 'Math.abs(history.state.anchor.index - at) <= 1 && document.getElementById("messages").scrollTop > 1000' \
        --click '#roles input[name=assistant]' --wait 'history.state.hidden.length' --reload --wait 'document.querySelector("mark")' \
        --eval 'document.getElementById("query").value + " " + document.querySelector("[name=assistant]").checked + " " + document.querySelector("#title").textContent' \
        --eval 'document.getElementById("messages").scrollTop > 500'
    stdout_is 'An old question about a badger' 'badger 1' 'badger false The long one' true
}

@test "page: messages are copied as they were written, code blocks too" {
    talk | make_page
    browse 'page.html#tools' --eval 'void (navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); })' \
        --click 'article:nth-of-type(5) .tools button' --wait 'window.copied' --eval copied --eval "$STATUS" \
        --click '.code button' --wait 'copied.length < 20' --eval copied \
        --key k --eval 'void (copied = "")' --key c --wait 'copied' --eval copied \
        --eval 'void (navigator.clipboard.writeText = () => Promise.reject(new Error()), document.execCommand = (name) => {
            window.copied = `${name} ${document.activeElement.value}`; return true; })' \
        --click 'article:nth-of-type(1) .tools button' --wait 'copied.startsWith("copy")' --eval copied --eval 'document.querySelectorAll("textarea").length'
    stdout_is 'It builds **one** `program`.' '' '```make' 'all: program' '```' Copied 'all: program' 'all: program' 'copy Be brief' 0
}

@test "page: works by keys alone" {
    talk | make_page
    browse --key Tab --eval 'document.activeElement.className' --key Enter --eval 'document.activeElement.id' \
        --key j --key j --eval 'document.activeElement.dataset.position' --key k --eval 'document.activeElement.dataset.position' \
        --key ']' --eval 'location.hash' --key '[' --eval 'location.hash' \
        --key '?' --eval 'document.getElementById("keys").open' --key Escape --eval 'document.getElementById("keys").open' \
        --key / --key ArrowDown --key ArrowDown --eval "$(texts '.entry:focus .entry-title')" --key Enter --eval 'location.hash' \
        --key t --eval 'getComputedStyle(document.documentElement).colorScheme' --key t --eval 'getComputedStyle(document.documentElement).colorScheme' \
        --reload --eval 'document.documentElement.dataset.theme'
    stdout_is skip messages 1 0 '#tools' '#long' true false 'What is in the Makefile?' '#tools' light dark dark
}

@test "page: controls have names, headings an order, texts enough contrast, light and dark" {
    local colours
    talk | make_page
    for colours in '' --dark; do
        # Unquoted: an empty one is none.
        # shellcheck disable=SC2086
        browse 'page.html#tools/m5' $colours --eval 'document.querySelectorAll("details").forEach(d => { d.open = true; })' \
            --run "$JS/basics.js" --key / --type the --wait 'document.querySelector("mark")' --run "$JS/basics.js" --key Escape --key Tab --key '?' \
            --run "$JS/basics.js"
        stdout_is 'enough texts' 'enough texts' 'enough texts'
    done
}

# Markdown and fields of all kinds.
rich() {
    talk
    line r1 rich assistant $'# One\n\n### Three\n\n- a\n  - b\n\n1. c\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[link](https://example.org) ~~gone~~ *em*
\n- [ ] task\n- [x] done\n\n---\n\n```c\nint main(void) { return 0; } /* '"$(printf '%200s' long)"$' */\n```' 400 \
        '{"model": "m", "usage": {"input_tokens": 3, "output_tokens": 4}, "finish_reason": "length"}'
    line r2 rich robot 'an odd role, *images* and <b>no markup</b>' 401 '{"images": 2, "files": ["a.c", "b.c"]}'
}

@test "page: code has the colours of its language, and a match in it is found" {
    line c1 s assistant $'```c\nif (x) /* a\nb */ return "c\\"d" + 1; // e\n```\n```Diff\n-a\n+b\n c\n```\n```sql\nSELECT a FROM b\n```\n```html\n<!-- a -->\n```\n```klingon\nint\n```' 0 | make_page
    browse page.html --eval '[...document.querySelectorAll(".code code")].map(c => c.innerHTML).join("|")' \
        --eval '[...document.querySelectorAll(".code code")].map(c => c.textContent).join("|")'
    stdout_is '<span class="keyword">if</span> (x) <span class="comment">/* a' \
        'b */</span> <span class="keyword">return</span> <span class="string">"c\"d"</span> + <span class="number">1</span>; <span class="comment">// e</span>|<span class="removed">-a' \
        '</span><span class="added">+b' \
        '</span> c|<span class="keyword">SELECT</span> a <span class="keyword">FROM</span> b|<span class="comment">&lt;!-- a --&gt;</span>|int' \
        'if (x) /* a' 'b */ return "c\"d" + 1; // e|-a' '+b' ' c|SELECT a FROM b|<!-- a -->|int'
}

# axe-core is not part of this repository, nor of most systems: `npm pack axe-core` has it.
@test "page: axe-core finds no serious fault, light and dark, in all that opens (AXE=.../axe.min.js)" {
    local colours open='document.querySelectorAll("details").forEach(d => { d.open = true; })'
    local -a look=(--run "$JS/axe.js")
    [[ -n ${AXE:-} ]] || skip 'no axe-core: AXE does not name its axe.min.js'
    rich | make_page
    for colours in '' --dark; do
        # Unquoted: an empty one is none.
        # shellcheck disable=SC2086
        browse 'page.html#tools/m5' $colours --eval "$open" --run "$AXE" "${look[@]}" --open '#rich' --eval "$open" "${look[@]}" \
            --key / --type the --wait 'document.querySelector("mark")' "${look[@]}" --key Escape --key Tab --key '?' "${look[@]}"
        grep -vx true "$OUT" >found
        is 'what axe finds' found 'enough rules' 'enough rules' 'enough rules' 'enough rules'
        # shellcheck disable=SC2086
        browse $colours --size 390x844 --run "$AXE" "${look[@]}" --click .entry "${look[@]}"
        grep -vx true "$OUT" >found
        # The list of sessions alone, before one is chosen.
        is 'what axe finds' found 'moderate landmark-one-main: <html lang="en" data-theme="auto">' 'enough rules' 'enough rules'
    done
    # It would see one.
    browse --run "$AXE" --eval 'document.querySelector("main").append(document.createElement("button")); 0' "${look[@]}"
    stdout_has 'critical button-name: <button></button>'
}

@test "page: one column in a small window, and back to the list" {
    talk | make_page
    browse --size 390x844 --eval 'document.querySelector("main").checkVisibility()' --click '.entry' --eval 'document.querySelector("aside").checkVisibility()' \
        --eval 'document.documentElement.scrollWidth <= 390' --run "$JS/basics.js" --click '#back' --eval 'document.querySelector("aside").checkVisibility()'
    stdout_is false false true 'enough texts' true
}

@test "page: of 10,000 messages it makes those that are near" {
    jq -cn 'range(0; 10000) | {id: "m\(.)", session_id: "s\(. / 5000 | floor)", timestamp: (1719500000 + . | todate | sub("Z"; ".000000+00:00")),
        role: (if . % 2 == 0 then "user" else "assistant" end), content: "Number \(.) of many, and **some** more words"}' | make_page
    browse 'page.html#s0/m2500' --wait "$(in_sight m2500)" --eval 'document.querySelectorAll("*").length < 3000' \
        --key / --type 'number 4321' --wait 'document.querySelector("mark")' --eval "$STATUS" --key Enter --wait "$(in_sight m4321)" \
        --eval 'document.querySelectorAll("*").length < 5000' \
        --eval 'void dispatchEvent(new Event("beforeprint"))' --eval 'document.querySelectorAll("article").length'
    stdout_is true '1 message in 1 session' true 5000
}

@test "page: an empty history is a page, too" {
    make_page </dev/null
    browse --eval "$(texts '#title')" --eval "$(texts '.nothing')" --eval "$STATUS" --key j --key n --key ']' --key / --type x --wait "$STATUS.startsWith('Nothing')"
    stdout_is 'No messages' 'This page holds no messages.' '0 sessions, 0 messages'
}

@test "page: hist-export writes it, with the sessions that were asked for" {
    use_history
    talk >"$HISTORY"
    run_expect 0 hist-export -o page.html tools old
    stdout_empty
    stderr_empty
    browse --eval "$(texts .entry-title)" --eval "$STATUS"
    stdout_is 'What is in the Makefile?' 'An old question about a badger' '2 sessions, 7 messages'
    run_expect 0 hist-export -f html tools old
    stdout_is_file page.html
}

# Histories of two repositories, with an id that both have, and the page of everything as a file and as a folder.
everything() {
    local repo
    export TZ=UTC
    umask 077
    for repo in alpha beta; do
        make_repo "$HOME/$repo"
        cd "$HOME/$repo" || return 1
        hist-append -s today 'Written `here` in $HOME'
        {
            line "$repo-1" "first-$repo" user "</script> One of $repo, \`code\` and \${x}" 0 '{"origin": "codex:x"}'
            line "$repo-2" "first-$repo" assistant "An answer about badgers in $repo" 9 '{"origin": "codex:y"}'
            line "$repo-3" later user "Later in $repo" 86400 '{"origin": "claude-code/z:1"}'
            line "$repo-4" later user "Much later in $repo" 4000000 '{"__proto__": 1}'
        } | hist-append --json
    done >"$WORK/ids"
    hist-title -q later 'Later in beta'
    cd "$WORK" || return 1
    run_expect 0 hist-export --all -f html -o all.html
    stderr_empty
    run_expect 0 hist-export --all -f html -o folder/
    stderr_empty
}

ENTRIES=$(texts .entry)

@test "page of everything: repositories, programs and days choose sessions, in a file and in a folder" {
    local page
    everything
    for page in all.html folder/index.html; do
        browse "$page" --wait 'document.querySelector("article")' --eval "$ENTRIES" --eval "$STATUS" \
            --eval "$(texts '#repository option, #program option')" --eval "$(texts .text)" \
            --click '#calendar summary' --wait 'document.querySelector(".days button")' --click .earlier --eval "$(texts .month)" --click .earlier \
            --eval '[...document.querySelectorAll(".days button")].map(b => b.getAttribute("aria-label")).join("|")' \
            --click '[data-day="2024-06-28"]' --eval "$STATUS" --eval "$(texts '#calendar summary')" --eval "$ENTRIES" --run "$JS/basics.js" \
            --eval 'void (document.querySelector("#repository").value = "~/beta", document.querySelector("#repository").dispatchEvent(new Event("change")))' \
            --eval "$ENTRIES" --click .entry --wait 'document.querySelectorAll("article").length === 2' --eval 'location.hash' \
            --reload --wait 'document.querySelectorAll("article").length === 2' --eval "$STATUS" --click '#all' --eval "$STATUS"
        stdout_is "Written \`here\` in \$HOME$TODAY · 1 message · ~/beta" "Written \`here\` in \$HOME$TODAY · 1 message · ~/alpha" \
            'Later in beta12 Aug 2024 · 2 messages · ~/beta' 'Later in alpha12 Aug 2024 · 2 messages · ~/alpha' \
            '</script> One of beta, `code` and ${x}27 Jun 2024 · 2 messages · ~/beta' \
            '</script> One of alpha, `code` and ${x}27 Jun 2024 · 2 messages · ~/alpha' \
            '6 sessions, 10 messages' 'All repositories' '~/alpha' '~/beta' 'All programs' 'begun here' claude-code codex 'Written here in $HOME' \
            'August 2024' 'Thursday, 27 June 2024: 2 conversations|Friday, 28 June 2024: 2 conversations' '2 of 6 sessions' '28 Jun 2024' \
            'Later in beta12 Aug 2024 · 2 messages · ~/beta' 'Later in alpha12 Aug 2024 · 2 messages · ~/alpha' 'enough texts' \
            'Later in beta12 Aug 2024 · 2 messages · ~/beta' '#later%40~%2Fbeta' '1 of 6 sessions' '6 sessions, 10 messages'
    done
}

@test "page of everything: search reads all messages, and in a folder loads them for it" {
    local page
    everything
    for page in all.html folder/index.html; do
        browse "$page" --wait 'document.querySelector("article")' --key / --type 'badgers' --wait "$STATUS.startsWith('2 mess')" \
            --eval "$ENTRIES" --key Enter --key n --wait 'location.hash.includes("-beta/")' --wait 'document.querySelector("#title").textContent.includes("beta")' --eval "$(texts .named)" \
            --key / --type 'badgers in:beta' --wait "$STATUS.startsWith('1 mess')" --key Enter --wait "$(in_sight beta-2)" --eval "$(texts '.named .text')" \
            --key Escape --type '"later in" in:alpha' --wait "$STATUS.startsWith('2 mess')" --key Enter --wait "$(in_sight alpha-4)" \
            --eval 'decodeURIComponent(location.hash)' --reload --wait "$(in_sight alpha-4)" --eval "$(texts '.named .text')" \
            --open '#gone' --wait "$STATUS.includes('gone')" --eval "$STATUS" --eval 'window.__proto__ === Window.prototype'
        stdout_is 'Assistant · 27 Jun 2024 · ~/alphaAn answer about badgers in alpha</script> One of alpha, `code` and ${x}' \
            'Assistant · 27 Jun 2024 · ~/betaAn answer about badgers in beta</script> One of beta, `code` and ${x}' \
            'Assistant14:53CopyAn answer about badgers in beta' 'An answer about badgers in beta' \
            '#later/alpha-4&q="later in" in:alpha' 'Much later in alpha' 'No session gone is in this page' true
    done
    rm folder/parts/2024-06-27-*
    browse folder/index.html --wait 'document.querySelector("article")' --eval '0'
    run_expect 1 "$TESTS/tools/in-browser" folder/index.html --key / --type badgers --wait "$STATUS.includes('missing')" --eval "$STATUS"
    stdout_matches '^parts/2024-06-27-[0-9a-f]{16}\.js is missing: export the folder again$'
}

@test "page of everything: axe finds no fault, light and dark (AXE=.../axe.min.js)" {
    local colours
    [[ -n ${AXE:-} ]] || skip 'no axe-core: AXE does not name its axe.min.js'
    everything
    for colours in '' --dark; do
        # Unquoted: an empty one is none.
        # shellcheck disable=SC2086
        browse folder/index.html $colours --wait 'document.querySelector("article")' --click '#calendar summary' \
            --wait 'document.querySelector(".days button")' --click '.days button' --run "$AXE" --run "$JS/axe.js"
        grep -vx true "$OUT" >found
        is 'what axe finds' found 'enough rules'
    done
}

@test "page of everything, bytes: a second export of a folder writes what changed, and removes what no session needs" {
    everything
    cp -a folder before
    touch folder/parts/notes.js
    run_expect 0 hist-export --all -f html -o folder
    diff -r before folder >shown || true
    is 'what differs' shown 'Only in folder/parts: notes.js'
    stat -c '%i %n' folder/parts/2* | sort >inodes
    (cd before && stat -c '%n' parts/2*) | wc -l >shown
    is 'the number of parts' shown 6
    (cd "$HOME/beta" && hist-append -q -s first-beta more >/dev/null && hist-delete -q --force later)
    run_expect 0 hist-export --all -f html -o folder
    stat -c '%i %n' folder/parts/2* | sort | comm -13 inodes - | sed 's/.*parts.//; s/-[0-9a-f]*\.js//' >shown
    is 'what was written' shown 2024-06-27
    run_expect 0 ls folder/parts
    lines_are 6
    # The parts of a history that cannot be read stay, and those of one that is not the user's any more go.
    run_expect 2 traced -f -o trace -P "$HOME/beta/.git/aicoder/history.jsonl" -e inject=pread64:error=EIO hist-export --all -f html -o folder
    stderr_has 'cannot read'
    run_expect 0 ls folder/parts
    lines_are 6
    rm "$HOME/beta/.git/aicoder/owner"
    run_expect 0 hist-export --all -f html -o folder
    run_expect 0 ls folder/parts
    lines_are 4
}

@test "page of everything, bytes: an index.html of another program is not replaced" {
    everything
    mkdir site
    echo '<title>mine</title>' >site/index.html
    run_expect 2 hist-export --all -f html -o site/
    stderr_is "hist-export: 'site/index.html' is no page of hist-export: choose another directory"
    [[ $(<site/index.html) == '<title>mine</title>' ]] || fail 'it was replaced'
    [[ ! -e site/parts ]] || fail 'there is a folder of parts'
    mkfifo folder/pipe
    rm folder/index.html
    ln -s pipe folder/index.html
    run_expect 2 hist-export --all -f html -o folder/
}

@test "page of everything, bytes: secrets are replaced in titles, messages and parts, and a part of a day has its limit" {
    umask 077
    make_repo "$HOME/alpha"
    cd "$HOME/alpha" || return 1
    {
        line s1 one user 'my key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD' 0
        jq -cn '(" word" * 1000000) as $text | range(4) | {id: "b\(.)", session_id: "big\(.)", timestamp: "2024-06-27T15:00:00.000000+00:00", role: "user", content: $text}'
    } | hist-append --json >"$WORK/ids"
    # A time that cannot be read, before any other.
    sed '1s/2024-06[^"]*/one day/' .git/aicoder/history.jsonl >"$WORK/lines"
    cat "$WORK/lines" >.git/aicoder/history.jsonl
    run_expect 0 hist-export --all --redact -f html -o "$WORK/folder/"
    stderr_has '1 redacted'
    cd "$WORK/folder" || return 1
    run_expect 1 grep -r abcdefghijklmnop .
    grep -c 'redacted' index.html parts/undated-* | sed 's/-[0-9a-f]*\.js//' >shown
    is 'where it was' shown index.html:1 parts/undated:1
    ls parts >names
    sed 's/-[0-9a-f]\{16\}/-H/' names >shown
    is 'the parts' shown 2024-06-27-H-2.js 2024-06-27-H-3.js 2024-06-27-H-4.js 2024-06-27-H.js undated-H.js
}

@test "page: queries mean what they mean to hist-search" {
    make_page <"$TESTS/fixtures/query/history.jsonl"
    TZ=UTC browse --eval "window.cases = $(<"$TESTS/fixtures/query/cases.json"); 0" --run "$JS/queries.js"
    stdout_is 0 'many queries'
}

@test "page: the address has the query; controls of direction are written out" {
    line b1 bidi user $'left\u202Eright \u001b[31m and badger' 900 | cat - <(talk) | make_page
    browse 'page.html#q=badger%20-left' --wait "$STATUS.startsWith('1 message')" --eval "$(texts '#side-list mark')" \
        --eval 'document.getElementById("query").value' \
        --key n --eval 'location.hash' --reload --wait "$STATUS.startsWith('1 message')" --eval 'location.hash' \
        --open '#q=role:' --eval "$STATUS" --key Escape --eval 'location.hash' \
        --open '#bidi' --eval "$(texts '.text')" --eval "$(texts '#title')"
    stdout_is badger 'badger -left' '#old/o1&q=badger%20-left' '#old/o1&q=badger%20-left' \
        '“role:” needs a value' '' 'left<U+202E>right <U+001B>[31m and badger' 'left<U+202E>right <U+001B>[31m and badger'
}
