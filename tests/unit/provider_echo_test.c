/*
 * The provider that works offline, and its faults.
 */
#include "test.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/time.h"
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
    a->rc = exchange_once(&provider_echo, &a->ask, &a->answer, &a->e);
}

TEST(the_first_message)
{
    struct asked a;

    asked_init(&a);
    ask(&a, "hello", NULL, 0);
    CHECK_INT(a.rc, 0);
    CHECK_STR(buf_c(&a.answer.text), "hello\n[1 message]");
    CHECK_STR(buf_c(&a.deltas), "hello\n|[1 |message]|");
    CHECK_STR(a.answer.finish_reason, "stop");
    CHECK_STR(a.answer.model, "echo");
    CHECK_INT(a.answer.usage.at[USAGE_INPUT], 1);
    CHECK_INT(a.answer.usage.at[USAGE_OUTPUT], 3);
    asked_release(&a);
}

TEST(a_conversation)
{
    struct asked a;

    asked_init(&a);
    context_set_system(&a.context, STR("not counted"));
    context_add_text(&a.context, ROLE_USER, STR("one"));
    context_add_text(&a.context, ROLE_ASSISTANT, STR("two  words"));
    ask(&a, "again  and\t again\n", NULL, 0);
    CHECK_INT(a.rc, 0);
    CHECK_STR(buf_c(&a.answer.text), "again  and\t again\n\n[3 messages]");
    CHECK_STR(buf_c(&a.deltas), "again  |and\t |again\n\n|[3 |messages]|");
    CHECK_INT(a.answer.usage.at[USAGE_INPUT], 8);
    CHECK_INT(a.answer.usage.at[USAGE_OUTPUT], 5);
    asked_release(&a);
}

TEST(the_last_user_message_is_the_prompt)
{
    struct asked a;

    asked_init(&a);
    context_add_text(&a.context, ROLE_USER, STR("p"));
    context_add_text(&a.context, ROLE_ASSISTANT, STR("a"));
    a.rc = exchange_once(&provider_echo, &a.ask, &a.answer, &a.e);
    CHECK_STR(buf_c(&a.answer.text), "p\n[2 messages]");
    asked_release(&a);
}

TEST(images_are_counted)
{
    const struct image images[] = {{"image/png", (char[]){"iVBO"}},
                                   {"image/png", (char[]){"iVBO"}}};
    struct asked a;

    for (size_t n = 1; n <= 2; n++) {
        asked_init(&a);
        context_add_text(&a.context, ROLE_USER, STR("p"));
        context_set_images(&a.context, images, n);
        a.rc = exchange_once(&provider_echo, &a.ask, &a.answer, &a.e);
        CHECK_STR(buf_c(&a.answer.text),
                  n == 1 ? "p\n[1 message, 1 image]" : "p\n[1 message, 2 images]");
        asked_release(&a);
    }
}

TEST(any_bytes_come_back)
{
    struct asked a;

    asked_init(&a);
    context_add_text(&a.context, ROLE_USER, STR("a\0\"\\\x1b\xe4\xbd\xa0 \xff"));
    a.rc = exchange_once(&provider_echo, &a.ask, &a.answer, &a.e);
    CHECK_INT(a.rc, 0);
    CHECK_MEM(a.answer.text.data, a.answer.text.len,
              "a\0\"\\\x1b\xe4\xbd\xa0 \xef\xbf\xbd\n[1 message]", 24);
    asked_release(&a);
}

TEST(without_streaming_it_comes_at_once)
{
    struct asked a;

    asked_init(&a);
    a.ask.stream = false;
    ask(&a, "two words", NULL, 0);
    CHECK_INT(a.rc, 0);
    CHECK_STR(buf_c(&a.deltas), "two words\n[1 message]|");
    CHECK_STR(a.answer.finish_reason, "stop");
    CHECK_INT(a.answer.usage.at[USAGE_OUTPUT], 4);
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

TEST(a_status_on_demand)
{
    static const struct {
        const char *status;
        enum err_kind kind;
        const char *text;
    } cases[] = {
        {"401", ERR_AUTH, "HTTP 401: status 401 as requested"},
        {"404", ERR_REQUEST, "HTTP 404: status 404 as requested"},
        {"429", ERR_BUSY, "HTTP 429: status 429 as requested"},
        {"500", ERR_BUSY, "HTTP 500: status 500 as requested"},
        {"302", ERR_REQUEST, "HTTP 302: redirect is not followed"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ask_option option = {"status", str_of(cases[i].status)};
        struct asked a;

        asked_init(&a);
        a.ask.stream = i % 2;
        ask(&a, "hi", &option, 1);
        CHECK_INT(a.rc, -1);
        CHECK_INT(a.e.kind, cases[i].kind);
        CHECK_STR(err_text(&a.e), cases[i].text);
        CHECK_INT(a.answer.text.len, 0);
        asked_release(&a);
    }
}

TEST(a_status_that_is_fine)
{
    struct ask_option option = {"status", STR("201")};
    struct asked a;

    asked_init(&a);
    ask(&a, "hi", &option, 1);
    CHECK_INT(a.rc, 0);
    CHECK_STR(buf_c(&a.answer.text), "hi\n[1 message]");
    asked_release(&a);
}

TEST(a_cut_on_demand)
{
    static const struct {
        const char *cut, *text;
    } cases[] = {
        {"0", ""},
        {"1", "h"},
        {"3", "h\xc3\xbc"},
        {"2", "h"},
        {"6", "h\xc3\xbc th"},
        {"20", "h\xc3\xbc there\n[1 message"},
        {"21", "h\xc3\xbc there\n[1 message]"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ask_option option = {"cut", str_of(cases[i].cut)};
        struct asked a;

        asked_init(&a);
        ask(&a, "h\xc3\xbc there", &option, 1);
        CHECK_INT(a.rc, -1);
        CHECK_INT(a.e.kind, ERR_INCOMPLETE);
        CHECK_STR(err_text(&a.e), "answer is incomplete: the connection was cut as requested");
        CHECK_STR(buf_c(&a.answer.text), cases[i].text);
        CHECK_STR(a.answer.finish_reason, "error");
        asked_release(&a);
    }
}

TEST(a_cut_behind_the_end_or_of_a_whole_answer)
{
    struct ask_option option = {"cut", STR("15")};
    struct asked a;

    asked_init(&a);
    ask(&a, "hi", &option, 1);
    CHECK_INT(a.rc, 0);
    CHECK_STR(buf_c(&a.answer.text), "hi\n[1 message]");
    asked_release(&a);

    option.value = STR("3");
    asked_init(&a);
    a.ask.stream = false;
    ask(&a, "hi", &option, 1);
    CHECK_INT(a.rc, -1);
    CHECK_INT(a.e.kind, ERR_INCOMPLETE);
    CHECK_INT(a.answer.text.len, 0);
    asked_release(&a);
}

TEST(a_delay_before_each_delta)
{
    struct ask_option option = {"delay_ms", STR("50")};
    int64_t start = time_ticks();
    struct asked a;

    asked_init(&a);
    ask(&a, "one two", &option, 1);
    CHECK_INT(a.rc, 0);
    CHECK_STR(buf_c(&a.deltas), "one |two\n|[1 |message]|");
    CHECK(time_ticks() - start >= 200);
    CHECK(time_ticks() - start < 2000);
    asked_release(&a);
}

TEST(a_delay_ends_with_a_signal)
{
    struct ask_option option = {"delay_ms", STR("150")};
    int64_t start = time_ticks();
    struct asked a;
    int fds[2];
    pid_t pid;

    if (pipe(fds) != 0)
        exit(2);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        poll(NULL, 0, 220);
        _exit(write(fds[1], "x", 1) == 1 ? 0 : 1);
    }
    asked_init(&a);
    a.ask.limits.cancel_fd = fds[0];
    ask(&a, "one two three four five six seven eight", &option, 1);
    CHECK_INT(a.rc, -1);
    CHECK_INT(a.e.kind, ERR_SIGNAL);
    CHECK_STR(a.answer.finish_reason, "interrupted");
    CHECK(strncmp(buf_c(&a.answer.text), "one ", 4) == 0);
    CHECK(a.answer.text.len < 15);
    CHECK(time_ticks() - start < 1000);
    waitpid(pid, NULL, 0);
    close(fds[0]);
    close(fds[1]);
    asked_release(&a);
}

TEST(other_options_are_refused)
{
    static const struct {
        const char *key, *value, *text;
    } cases[] = {
        {"temperature", "1",
         "unknown option 'temperature' of 'echo': known are delay_ms, status, cut"},
        {"delay_ms", "x", "bad value 'x' of option 'delay_ms'"},
        {"delay_ms", "-1", "bad value '-1' of option 'delay_ms'"},
        {"delay_ms", "", "bad value '' of option 'delay_ms'"},
        {"status", "100", "bad value '100' of option 'status'"},
        {"status", "600", "bad value '600' of option 'status'"},
        {"cut", "1.5", "bad value '1.5' of option 'cut'"},
        {"cut", "99999999999999999999", "bad value '99999999999999999999' of option 'cut'"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ask_option option = {cases[i].key, str_of(cases[i].value)};
        struct asked a;

        asked_init(&a);
        ask(&a, "hi", &option, 1);
        CHECK_INT(a.rc, -1);
        CHECK_INT(a.e.kind, ERR_USAGE);
        CHECK_STR(err_text(&a.e), cases[i].text);
        CHECK_INT(a.deltas.len, 0);
        asked_release(&a);
    }
}

TEST(the_request_of_a_dry_run)
{
    struct ask_option option = {"cut", STR("3")};
    struct http_request r;
    struct asked a;

    asked_init(&a);
    context_set_system(&a.context, STR("s"));
    context_add_text(&a.context, ROLE_USER, STR("hi"));
    a.ask.options = &option;
    a.ask.options_count = 1;
    a.ask.key = "secret";
    http_request_init(&r);
    CHECK_INT(provider_echo.request(&provider_echo, &a.ask, &r, &a.e), 0);
    CHECK_STR(buf_c(&r.body),
              "{\"model\":\"echo\",\"system\":\"s\",\"messages\":"
              "[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true,\"cut\":3}");
    CHECK_INT(r.headers.len, 0);
    http_request_release(&r);
    asked_release(&a);
}
