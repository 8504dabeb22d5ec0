/*
 * session-turns: the turns of sessions, for tests/tools/session-oracle, which decides what happens.
 *
 * Reads commands from standard input, a JSON object a line:
 *
 *     {"op":"begin"}                a new session without lines
 *     {"op":"turn","provider":P,"address":A,"model":M,"prompt":TEXT,"window":N,"messages":L,
 *      "bytes":L,"tokens":L,"kill":N}
 *
 * A turn runs with the library's own code, from the lines of the session to the bytes of each
 * request, which is printed as `R BODY`. The server's response is then read from standard input: a
 * line with its status, and a line with its body. A call of the model has the result of as many
 * bytes as its argument `bytes` says, and fails if its argument `fail` is true. The limits L are
 * those of CHAT_MAX_..., `window` is what the server said of the model, 0: nothing. After `kill`
 * lines (0: never) the turn ends as if chat had been killed. `A` says that an answer is stored,
 * `N TEXT` is a notice, and at the end of the turn `E` is printed, with the error if there was one.
 * {"op":"lines"} prints the lines of the session.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/chat/turn_store.h"

static char tool_name[] = "f", description[] = "d";
static char parameters[] = "{\"type\":\"object\",\"properties\":{}}";
static struct tool tool = {.name = tool_name, .description = description, .parameters = parameters};
static const struct tool *const tools[] = {&tool};

/* Reads a line without its newline. Returns false at the end. */
static bool read_line(struct buf *line)
{
    int c;

    buf_clear(line);
    while ((c = getchar_unlocked()) != EOF && c != '\n')
        buf_add_byte(line, (char)c);
    return c != EOF;
}

static int64_t number(struct str object, const char *key)
{
    int64_t n = 0;

    json_int(json_get(object, key), &n);
    return n;
}

/* Returns a copy of a text member, or NULL. The caller frees it. */
static char *text(struct str object, const char *key)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str value = json_text(json_get(object, key), &scratch);
    char *copy = value.p ? mem_copy(value.p, value.n) : NULL;

    buf_release(&scratch);
    return copy;
}

/* Shows the request and passes the response on. */
static int serve(const struct ask *ask, const struct http_request *r, const struct http_sink *sink,
                 struct err *e)
{
    struct buf line = BUF_INIT(BUF_LINE);
    int rc = 0;

    (void)ask;
    printf("R %s\n", buf_c(&r->body));
    fflush(stdout);
    if (!read_line(&line))
        exit(2);
    sink->head->status = atoi(buf_c(&line));
    if (!read_line(&line))
        exit(2);
    rc = sink->body(sink->arg, buf_str(&line), e);
    buf_release(&line);
    return rc;
}

static void notice(void *arg, const char *what)
{
    (void)arg;
    printf("N %s\n", what);
}

/* Does what a tool does: adds a result, of as many bytes as the call says. */
static void run_call(struct tool_job *job)
{
    for (int64_t n = number(job->args, "bytes"); n > 0 && !job->done; n--)
        buf_add_byte(&job->result, 'r');
    job->failed = job->failed || json_is_true(json_get(job->args, "fail"));
    job->done = true;
}

/* Counts down the lines until the kill. Returns true if it is time. */
static bool killed(int64_t *lines)
{
    return *lines > 0 && --*lines == 0;
}

/* Runs the turn. Returns false if it was killed. */
static bool run(struct turn_store *s, struct turn *t, int64_t kill, struct err *e)
{
    const struct response_sink sink = {.notice = notice};

    turn_store_claim(s, t);
    turn_store_prompt(s);
    if (killed(&kill))
        return false;
    do {
        (void)turn_ask(t, &sink, e);
        if (!turn_store_answer(s))
            return false;
        printf("A\n");
        if (killed(&kill))
            return false;
        if (!t->calling)
            break;
        round_begin(t);
        t->rounds++;
        for (size_t i = 0; i < t->answer.calls_count; i++) {
            run_call(&t->calls[i]);
            if (!turn_store_result(s, &t->calls[i]) || killed(&kill))
                return false;
        }
        round_end(t);
    } while (true);
    return true;
}

static void run_turn(const struct providers *known, struct str command, struct buf *memory)
{
    char *name = text(command, "provider"), *address = text(command, "address");
    char *model = text(command, "model"), *prompt = text(command, "prompt");
    char *limits[] = {text(command, "messages"), text(command, "bytes"), text(command, "tokens")};
    const struct provider *found = provider_find(known, str_of(name));
    struct provider p = address && found->elsewhere ? *found->elsewhere : *found;
    struct buf url = BUF_INIT(BUF_SMALL);
    struct config c = {0};
    struct history h = {0};
    struct err e = ERR_INIT;
    struct chat_args args = {.store = true};
    struct turn_store store = {.args = &args, .history = &h, .in_memory = true, .memory = *memory};
    struct turn t = {.provider = &p,
                     .session = STR("s"),
                     .prompt = str_of(prompt),
                     .max_rounds = 1000,
                     .ask = {.model = model,
                             .address = address,
                             .tools = tools,
                             .tools_count = 1,
                             .limits.cancel_fd = -1}};
    bool done = true;

    p.exchange = serve;
    if (address) {
        buf_addf(&url, "https://%s/v1", address);
        t.ask.base_url = buf_c(&url);
    }
    c.value[SETTING_MAX_MESSAGES] = limits[0];
    c.value[SETTING_MAX_BYTES] = limits[1];
    c.value[SETTING_MAX_INPUT_TOKENS] = limits[2];
    if (context_limits_choose(&t.limits, &c, (size_t)number(command, "window"), 0, &e) == 0) {
        t.limits.tools = ask_tools_bytes(&t.ask);
        if (turn_prepare(&t, &h, &store.memory, &e) == 0)
            done = run(&store, &t, number(command, "kill"), &e);
    }
    printf("E %s\n", !done ? "killed" : e.kind != ERR_NONE ? err_text(&e) : "");
    fflush(stdout);
    err_release(&e);
    turn_release(&t);
    *memory = store.memory;
    store.memory = (struct buf){0};
    turn_store_release(&store);
    buf_release(&url);
    free(name);
    free(address);
    free(model);
    free(prompt);
    for (size_t i = 0; i < 3; i++)
        free(limits[i]);
}

int main(void)
{
    struct buf line = BUF_INIT(BUF_LINE), memory = BUF_INIT(SIZE_MAX);
    struct providers known;
    struct str command;

    providers_init(&known);
    while (read_line(&line)) {
        if (!json_check(buf_str(&line), &command, NULL))
            return 2;
        if (json_is_text(json_get(command, "op"), "begin"))
            buf_clear(&memory);
        else if (json_is_text(json_get(command, "op"), "lines"))
            printf("%s\n", buf_c(&memory));
        else
            run_turn(&known, command, &memory);
    }
    providers_release(&known);
    buf_release(&memory);
    buf_release(&line);
    return 0;
}
