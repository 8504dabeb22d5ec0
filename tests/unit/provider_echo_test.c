/*
 * The provider that works offline, and its faults.
 */
#include "test.h"

#include "llm/provider_wire.h"
#include "chathist/llm/exchange.h"

struct asked {
    struct context context;
    struct ask ask;
    struct response answer;
    struct err e;
    struct buf deltas; /* each ended by | */
    struct response_sink sink;
    int rc;
};

static int note(void *arg, struct str delta)
{
    struct buf *b = arg;

    buf_add_str(b, delta);
    buf_add_byte(b, '|');
    return 0;
}

static void asked_init(struct asked *a)
{
    memset(a, 0, sizeof *a);
    context_init(&a->context);
    buf_init(&a->deltas, BUF_LINE);
    a->sink = (struct response_sink){.text = note, .arg = &a->deltas};
    response_init(&a->answer, &a->sink);
    a->ask = (struct ask){
        .context = &a->context, .model = "echo", .stream = true, .limits.cancel_fd = -1};
}

static void asked_release(struct asked *a)
{
    context_release(&a->context);
    response_release(&a->answer);
    buf_release(&a->deltas);
    err_release(&a->e);
}

static void ask(struct asked *a, const char *prompt, const struct ask_option *options, size_t count)
{
    context_add_text(&a->context, ROLE_USER, str_of(prompt));
    a->ask.options = options;
    a->ask.options_count = count;
    a->rc = exchange_run(&provider_echo, &a->ask, &a->answer, 0, &(unsigned){0}, &a->e);
}

/* A prompt with an option `key=value`, and the result: the deltas, or the error with what came. */
static const struct row {
    const char *prompt, *key, *value;
    bool whole; /* without a stream */
    const char *deltas;
    enum err_kind kind;
    const char *error;
} rows[] = {
    {"hello", NULL, NULL, false, "hello\n|[1 |message]|", ERR_NONE, ""},
    {"again  and\t again\n", NULL, NULL, false, "again  |and\t |again\n\n|[1 |message]|", ERR_NONE,
     ""},
    {"two words", NULL, NULL, true, "two words\n[1 message]|", ERR_NONE, ""},
    {"hi", "status", "201", false, "hi\n|[1 |message]|", ERR_NONE, ""},
    {"hi", "status", "401", false, "", ERR_AUTH, "HTTP 401: status 401 as requested"},
    {"hi", "status", "404", true, "", ERR_REQUEST, "HTTP 404: status 404 as requested"},
    {"hi", "status", "429", false, "", ERR_BUSY, "HTTP 429: status 429 as requested"},
    {"hi", "status", "500", true, "", ERR_BUSY, "HTTP 500: status 500 as requested"},
    {"hi", "status", "302", false, "", ERR_REQUEST, "HTTP 302: redirect is not followed"},
#define CUT ERR_INCOMPLETE, "answer is incomplete: the connection was cut as requested"
    {"h\xc3\xbc there", "cut", "0", false, "", CUT},
    {"h\xc3\xbc there", "cut", "1", false, "h|", CUT},
    {"h\xc3\xbc there", "cut", "2", false, "h|", CUT},
    {"h\xc3\xbc there", "cut", "3", false, "h\xc3\xbc|", CUT},
    {"h\xc3\xbc there", "cut", "6", false, "h\xc3\xbc |th|", CUT},
    {"h\xc3\xbc there", "cut", "20", false, "h\xc3\xbc |there\n|[1 |message|", CUT},
    {"h\xc3\xbc there", "cut", "21", false, "h\xc3\xbc |there\n|[1 |message]|", CUT},
    {"hi", "cut", "15", false, "hi\n|[1 |message]|", ERR_NONE, ""},
    {"hi", "cut", "3", true, "", CUT},
    {"hi", "temperature", "1", false, "", ERR_USAGE,
     "unknown option 'temperature' of 'echo': known are delay_ms, status, cut"},
    {"hi", "delay_ms", "x", false, "", ERR_USAGE, "bad value 'x' of option 'delay_ms'"},
    {"hi", "delay_ms", "-1", false, "", ERR_USAGE, "bad value '-1' of option 'delay_ms'"},
    {"hi", "delay_ms", "", false, "", ERR_USAGE, "bad value '' of option 'delay_ms'"},
    {"hi", "status", "100", false, "", ERR_USAGE, "bad value '100' of option 'status'"},
    {"hi", "status", "600", false, "", ERR_USAGE, "bad value '600' of option 'status'"},
    {"hi", "cut", "1.5", false, "", ERR_USAGE, "bad value '1.5' of option 'cut'"},
    {"hi", "cut", "99999999999999999999", false, "", ERR_USAGE,
     "bad value '99999999999999999999' of option 'cut'"},
};

TEST(answers_and_faults)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct ask_option option = {row->key, str_of(row->value), ASK_FLAG};
        struct asked a;

        asked_init(&a);
        a.ask.stream = !row->whole;
        ask(&a, row->prompt, &option, row->key ? 1 : 0);
        CHECK_INT(a.rc, row->kind == ERR_NONE ? 0 : -1);
        CHECK_INT(a.e.kind, row->kind);
        CHECK_STR(err_text(&a.e), row->error);
        CHECK_STR(buf_c(&a.deltas), row->deltas);
        CHECK_STR(a.answer.finish_reason, row->kind == ERR_NONE ? "stop" : "error");
        asked_release(&a);
    }
}

TEST(a_conversation)
{
    struct asked a;

    asked_init(&a);
    context_set_system(&a.context, STR("not counted"));
    context_add_text(&a.context, ROLE_USER, STR("one"));
    context_add_text(&a.context, ROLE_ASSISTANT, STR("two  words"));
    ask(&a, "again  and\t again\n", NULL, 0);
    CHECK_STR(buf_c(&a.answer.text), "again  and\t again\n\n[3 messages]");
    CHECK_STR(a.answer.model, "echo");
    CHECK_INT(a.answer.usage.at[USAGE_INPUT], 8);
    CHECK_INT(a.answer.usage.at[USAGE_OUTPUT], 5);
    asked_release(&a);
    /* The last message of the user is the prompt. */
    asked_init(&a);
    context_add_text(&a.context, ROLE_USER, STR("p"));
    context_add_text(&a.context, ROLE_ASSISTANT, STR("a"));
    a.rc = exchange_run(&provider_echo, &a.ask, &a.answer, 0, &(unsigned){0}, &a.e);
    CHECK_STR(buf_c(&a.answer.text), "p\n[2 messages]");
    asked_release(&a);
}

TEST(a_long_prompt_comes_in_fewer_deltas)
{
    struct asked a;
    struct buf prompt = BUF_INIT(BUF_LINE);
    size_t deltas = 0;

    while (prompt.len < ((size_t)1 << 20))
        buf_add_c(&prompt, "ab ");
    asked_init(&a);
    ask(&a, buf_c(&prompt), NULL, 0);
    CHECK_INT(a.rc, 0);
    CHECK_INT(a.answer.text.len, prompt.len + strlen("\n[1 message]"));
    for (size_t i = 0; i < a.deltas.len; i++)
        deltas += a.deltas.data[i] == '|';
    CHECK(deltas > 1000 && deltas < 5000);
    buf_release(&prompt);
    asked_release(&a);
}
