/*
 * The response of a model: text, calls and their limits.
 */
#include "test.h"

#include <stdlib.h>

#include "chathist/base/json.h"
#include "chathist/llm/response.h"

static int add(struct response *a, int64_t index, const char *id, const char *name,
               const char *args)
{
    struct buf string = BUF_INIT(BUF_SMALL);
    int result;

    json_add_string(&string, str_of(args));
    result = response_add_call(a, index, str_of(id), str_of(name), buf_str(&string), NULL);
    buf_release(&string);
    return result;
}

static int collect(void *arg, struct str delta)
{
    struct buf *b = arg;

    buf_add_byte(b, '<');
    buf_add_str(b, delta);
    buf_add_byte(b, '>');
    return b->len > 30 ? -1 : 0;
}

TEST(text_is_kept_and_handed_on)
{
    struct buf seen = BUF_INIT(BUF_SMALL);
    struct response_sink sink = {.text = collect, .arg = &seen};
    struct response a;
    struct err e = ERR_INIT;

    response_init(&a, &sink);
    CHECK_INT(response_add_text(&a, STR("\"Hello\""), &e), 0);
    CHECK_INT(response_add_text(&a, STR("\"\""), &e), 0);
    CHECK_INT(response_add_text(&a, STR_NONE, &e), 0);
    CHECK_INT(response_add_text(&a, STR("\"\\u0000, w\\ud800!\""), &e), 0);
    CHECK_MEM(a.text.data, a.text.len, "Hello\0, w\xef\xbf\xbd!", 13);
    CHECK_MEM(seen.data, seen.len, "<Hello><\0, w\xef\xbf\xbd!>", 17);
    CHECK(!a.sink_failed);
    CHECK_INT(response_add_text(&a, STR("\"long enough to fail\""), &e), -1);
    CHECK(a.sink_failed);
    CHECK_STR(err_text(&e), "");
    CHECK_INT(a.text.len, 13 + strlen("long enough to fail"));
    response_release(&a);
    buf_release(&seen);
}

TEST(a_character_that_ends_the_text_in_halves)
{
    struct buf seen = BUF_INIT(BUF_SMALL);
    struct response_sink sink = {.text = collect, .arg = &seen};
    struct response a;

    response_init(&a, &sink);
    CHECK_INT(response_add_text(&a, STR("\"a\\ud83d\""), NULL), 0);
    CHECK_INT(response_add_text(&a, STR("\"\\ude00\""), NULL), 0);
    CHECK_INT(response_add_text(&a, STR("\"\\ud83d\""), NULL), 0);
    CHECK_STR(buf_c(&seen), "<a><\xf0\x9f\x98\x80>");
    CHECK_INT(response_end_text(&a, NULL), 0);
    CHECK_INT(response_end_text(&a, NULL), 0);
    CHECK_STR(buf_c(&seen), "<a><\xf0\x9f\x98\x80><\xef\xbf\xbd>");
    CHECK_STR(buf_c(&a.text), "a\xf0\x9f\x98\x80\xef\xbf\xbd");
    response_release(&a);
    buf_release(&seen);
}

TEST(arguments_that_are_cut_in_halves)
{
    static const char *const pieces[] = {"\"{\\\"a\\\":\\\"\\ud83d\"", "\"\\ude00\\ud83d\"",
                                         "\"\\ude01\\\"}\""};
    struct response a;

    response_init(&a, NULL);
    for (size_t i = 0; i < 3; i++)
        CHECK_INT(response_add_call(&a, 5, STR_NONE, i == 0 ? STR("f") : STR_NONE,
                                    str_of(pieces[i]), NULL),
                  0);
    response_finish_calls(&a);
    CHECK_STR(buf_c(&a.calls[0].args), "{\"a\":\"\xf0\x9f\x98\x80\xf0\x9f\x98\x81\"}");
    response_release(&a);
}

/* Two calls of one index, each with its own half of a pair. */
TEST(halves_belong_to_their_call)
{
    struct response a;

    response_init(&a, NULL);
    CHECK_INT(response_add_call(&a, 0, STR("a"), STR("f"), STR("\"{}\""), NULL), 0);
    CHECK_INT(response_add_call(&a, 0, STR("b"), STR("g"), STR("\"[\\ud83d\""), NULL), 0);
    CHECK_INT(response_add_call(&a, 0, STR_NONE, STR_NONE, STR("\"\\ude00\""), NULL), 0);
    response_finish_calls(&a);
    CHECK_STR(buf_c(&a.calls[0].args), "{}");
    CHECK_STR(buf_c(&a.calls[1].args), "[\xf0\x9f\x98\x80");
    response_release(&a);
}

TEST(text_is_bounded)
{
    size_t n = ((size_t)1 << 20) + 2;
    char *block = malloc(n);
    struct response a;
    struct err e = ERR_INIT;
    size_t count = 0;

    memset(block, 'x', n);
    block[0] = block[n - 1] = '"';
    response_init(&a, NULL);
    while (count < 100 && response_add_text(&a, (struct str){block, n}, &e) == 0)
        count++;
    CHECK_INT(count, RESPONSE_MAX >> 20);
    CHECK_INT(e.kind, ERR_INCOMPLETE);
    CHECK_STR(err_text(&e), "answer is incomplete: it is longer than 32 MiB");
    CHECK_INT(response_add_call(&a, 0, STR("a"), STR("f"), STR("{}"), &e), -1);
    response_release(&a);
    err_release(&e);
    free(block);
}

TEST(calls_are_bounded)
{
    struct response a;
    struct err e = ERR_INIT;
    int64_t i = 0;

    response_init(&a, NULL);
    while (i < 5000 && response_add_call(&a, i, STR("a"), STR("f"), STR("{}"), &e) == 0)
        i++;
    CHECK_INT(i, RESPONSE_CALLS_MAX);
    CHECK_INT(e.kind, ERR_INCOMPLETE);
    CHECK_STR(err_text(&e), "answer is incomplete: it has more than 1024 tool calls");
    response_release(&a);
    err_release(&e);
}

#define CALL(id, name, args) "{\"id\":\"" id "\",\"name\":\"" name "\",\"args\":" args "}"

TEST(a_call_comes_in_pieces)
{
    static const struct {
        struct {
            int64_t index;
            const char *id, *name, *args;
        } pieces[5];
        const char *want;
    } rows[] = {
        {{{0}}, ""},
        {{{0, "1", "f", ""},
          {0, "", "", "{\"a"},
          {1, "2", "g", ""},
          {0, "", "", "\": 1}"},
          {1, "2", "g", "{}"}},
         CALL("1", "f", "{\"a\":1}") "," CALL("2", "g", "{}")},
        /* The name may be repeated, cut or missing. */
        {{{0, "1", "get_", ""},
          {0, "1", "time", "{"},
          {0, "1", "get_time", "}"},
          {1, "2", "", "{}"}},
         CALL("1", "get_time", "{}") "," CALL("2", "unnamed", "{}")},
        /* Another id at an index opens another call. */
        {{{0, "a", "f", "{}"}, {0, "b", "g", "{"}, {0, "", "", "}"}},
         CALL("a", "f", "{}") "," CALL("b", "g", "{}")},
        /* Arguments that are no object are a string. */
        {{{0, "a", "f", "{\"x\": Paris"},
          {1, "b", "f", "[1]"},
          {2, "c", "f", " {\"n\" : 12345678901234567890} "},
          {3, "d", "f", "  "}},
         CALL("a", "f", "\"{\\\"x\\\": Paris\"") "," CALL("b", "f", "\"[1]\"") "," CALL(
             "c", "f", "{\"n\":12345678901234567890}") "," CALL("d", "f", "{}")},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf json = BUF_INIT(BUF_LINE), want = BUF_INIT(BUF_LINE);
        struct response a;

        response_init(&a, NULL);
        for (size_t k = 0; k < 5 && rows[i].pieces[k].id; k++)
            add(&a, rows[i].pieces[k].index, rows[i].pieces[k].id, rows[i].pieces[k].name,
                rows[i].pieces[k].args);
        response_finish_calls(&a);
        response_calls_json(&a, &json);
        buf_addf(&want, "[%s]", rows[i].want);
        CHECK_STR(buf_c(&json), buf_c(&want));
        buf_release(&json);
        buf_release(&want);
        response_release(&a);
    }
}

TEST(without_ids_a_name_after_complete_arguments_does_too)
{
    struct response a;

    response_init(&a, NULL);
    add(&a, 0, "", "f", "{\"n\":1}");
    add(&a, 0, "", "f", "{\"n\":2}");
    add(&a, 0, "", "f", "{\"n\":");
    add(&a, 0, "", "f", "{}}");
    response_finish_calls(&a);
    CHECK_INT(a.calls_count, 3);
    for (size_t i = 0; i < a.calls_count; i++) {
        CHECK(strncmp(buf_c(&a.calls[i].id), "call_", 5) == 0);
        CHECK(i == 0 || strcmp(buf_c(&a.calls[i].id), buf_c(&a.calls[i - 1].id)) != 0);
        CHECK_STR(buf_c(&a.calls[i].name), "f");
    }
    CHECK_STR(buf_c(&a.calls[1].args), "{\"n\":2}");
    CHECK_STR(buf_c(&a.calls[2].args), "{\"n\":{}}");
    response_release(&a);
}

TEST(a_stop_with_calls_means_tool_calls)
{
    struct response a;

    response_init(&a, NULL);
    response_set_finish(&a, STR("stop"));
    response_finish_calls(&a);
    CHECK_STR(a.finish_reason, "stop");
    add(&a, 0, "a", "f", "{}");
    response_finish_calls(&a);
    CHECK_STR(a.finish_reason, "tool_calls");
    response_set_finish(&a, STR("length"));
    response_finish_calls(&a);
    CHECK_STR(a.finish_reason, "length");
    response_release(&a);
    response_set_finish(&a, STR("tool_calls"));
    response_finish_calls(&a);
    CHECK_STR(a.finish_reason, "stop");
    response_release(&a);
}

TEST(what_is_not_told_changes_nothing)
{
    struct response a;

    response_init(&a, NULL);
    CHECK_INT(a.usage.at[USAGE_INPUT], -1);
    a.usage.at[USAGE_INPUT] = 5;
    a.usage.at[USAGE_OUTPUT] = 7;
    CHECK_INT(a.usage.at[USAGE_INPUT], 5);
    CHECK_INT(a.usage.at[USAGE_OUTPUT], 7);
    response_set_model(&a, STR("m"));
    response_set_model(&a, STR_NONE);
    CHECK_STR(a.model, "m");
    response_set_finish(&a, STR("stop"));
    response_set_finish(&a, STR(""));
    CHECK_STR(a.finish_reason, "stop");
    response_release(&a);
    CHECK(a.model == NULL && a.finish_reason == NULL && a.usage.at[USAGE_INPUT] == -1);
}

TEST(thinking_has_a_bound_of_its_own)
{
    size_t n = (size_t)1 << 20;
    char *block = malloc(n);
    struct response a;
    struct err e = ERR_INIT;

    if (!CHECK(block))
        return;
    memset(block, 'x', n);
    response_init(&a, NULL);
    for (size_t i = 0; i < 2 * RESPONSE_MAX / n; i++) {
        opaque_add_reasoning(&a.opaque, "reasoning", (struct str){block, n});
        CHECK_INT(response_add_reasoning(&a, (struct str){block, n}), 0);
    }
    CHECK(a.opaque.reasoning.len <= OPAQUE_THINKING_MAX && a.opaque.reasoning.len > n);
    CHECK_INT(response_add_text(&a, STR("\"The answer.\""), &e), 0);
    CHECK_INT(response_add_call(&a, 0, STR("a"), STR("f"), STR("{}"), &e), 0);
    response_finish_calls(&a);
    CHECK(a.opaque.thinking.len <= OPAQUE_THINKING_MAX);
    CHECK_STR(buf_c(&a.text), "The answer.");
    err_release(&e);
    response_release(&a);
    CHECK_INT(a.opaque.thinking.len, 0);
    free(block);
}

TEST(parts_become_one)
{
    struct response a, b;
    struct err e = ERR_INIT;

    response_init(&a, NULL);
    response_init(&b, NULL);
    response_add_text(&a, STR("\"one \""), &e);
    a.usage.at[USAGE_INPUT] = 5;
    a.usage.at[USAGE_OUTPUT] = 6;
    response_set_finish(&a, STR("pause_turn"));
    opaque_begin(&a.opaque, 0, STR("{\"type\":\"x\"}"));
    opaque_end(&a.opaque, 0);
    response_add_text(&b, STR("\"two\""), &e);
    response_add_call(&b, 0, STR("a"), STR("f"), STR("{}"), &e);
    b.usage.at[USAGE_INPUT] = 7;
    response_set_finish(&b, STR("tool_calls"));
    response_set_model(&b, STR("m"));
    response_set_refusal(&b, STR("k\nind"), STR(" why\x1b"));
    opaque_begin(&b.opaque, 0, STR("{\"type\":\"y\"}"));
    opaque_end(&b.opaque, 0);
    b.finished = true;
    CHECK_INT(response_join(&a, &b, &e), 0);
    response_release(&b);
    CHECK_STR(buf_c(&a.text), "one two");
    CHECK_INT(a.calls_count, 1);
    CHECK_INT(a.usage.at[USAGE_INPUT], 12);
    CHECK_INT(a.usage.at[USAGE_OUTPUT], 6);
    CHECK_STR(a.finish_reason, "tool_calls");
    CHECK_STR(a.model, "m");
    CHECK_STR(a.refusal, "why^[ (k ind)");
    CHECK_STR(buf_c(&a.opaque.turn), "[{\"type\":\"x\"},{\"type\":\"y\"}]");
    CHECK(a.finished);
    response_release(&a);
}

TEST(parts_that_are_too_long_together)
{
    size_t n = RESPONSE_MAX / 2 + 3;
    char *block = malloc(n);
    struct response a, b;
    struct err e = ERR_INIT;

    if (!CHECK(block))
        return;
    memset(block, 'x', n);
    block[0] = block[n - 1] = '"';
    response_init(&a, NULL);
    response_init(&b, NULL);
    CHECK_INT(response_add_text(&a, (struct str){block, n}, &e), 0);
    CHECK_INT(response_add_text(&b, (struct str){block, n}, &e), 0);
    CHECK_INT(response_join(&a, &b, &e), -1);
    CHECK_INT(e.kind, ERR_INCOMPLETE);
    err_release(&e);
    response_release(&a);
    response_release(&b);
    free(block);
}

TEST(what_goes_back_with_calls_is_kept)
{
    struct response a;
    struct err e = ERR_INIT;

    response_init(&a, NULL);
    opaque_add_reasoning(&a.opaque, "reasoning_content", STR("say \"h"));
    opaque_add_reasoning(&a.opaque, "reasoning_content", STR("i\"\xff"));
    CHECK_INT(response_add_extra(&a, NULL, "p", STR("{\"y\":2}"), &e), 0);
    CHECK_INT(response_add_call(&a, 0, STR("a"), STR("f"), STR("{}"), &e), 0);
    CHECK_INT(response_add_extra(&a, &a.calls[0], "extra", STR("{ \"x\" : 1 }"), &e), 0);
    CHECK_INT(response_add_extra(&a, &a.calls[0], "extra", STR("null"), &e), 0);
    CHECK_INT(response_add_call(&a, 1, STR("b"), STR("g"), STR("{}"), &e), 0);
    CHECK_INT(response_add_extra(&a, &a.calls[1], "extra", STR_NONE, &e), 0);
    for (int i = 0; i < 2; i++) {
        response_finish_calls(&a);
        CHECK_STR(buf_c(&a.opaque.thinking),
                  "[{\"type\":\"reasoning_content\",\"text\":\"say \\\"hi\\\"\xef\xbf\xbd\"},"
                  "{\"type\":\"p\",\"p\":{\"y\":2}},"
                  "{\"type\":\"extra\",\"id\":\"a\",\"extra\":{\"x\":1}}]");
    }
    response_release(&a);
    /* It is dropped if there are no calls. */
    response_init(&a, NULL);
    opaque_add_reasoning(&a.opaque, "reasoning_content", STR("hm"));
    CHECK_INT(response_add_extra(&a, NULL, "p", STR("{\"y\":2}"), &e), 0);
    response_finish_calls(&a);
    CHECK_INT(a.opaque.thinking.len, 0);
    response_release(&a);
}

static int add_delta(void *arg, struct str delta)
{
    buf_add_str(arg, delta);
    return 0;
}

/* Adds the text in two pieces, of which the first has `at` bytes. */
static void check_masked(const char *text, size_t at, const char *first, const char *all)
{
    struct buf out = BUF_INIT(BUF_SMALL), json = BUF_INIT(BUF_SMALL);
    struct response_sink sink = {.text = add_delta, .arg = &out};
    struct response a;
    struct err e = ERR_INIT;

    response_init(&a, &sink);
    response_add_secret(&a, " sk-abcdefg1\n");
    json_add_string(&json, (struct str){text, at});
    CHECK_INT(response_add_text(&a, buf_str(&json), &e), 0);
    if (first)
        CHECK_STR(buf_c(&out), first);
    buf_clear(&json);
    json_add_string(&json, str_of(text + at));
    CHECK_INT(response_add_text(&a, buf_str(&json), &e), 0);
    CHECK_INT(response_end_text(&a, &e), 0);
    CHECK_STR(buf_c(&out), buf_c(&a.text));
    if (all)
        CHECK_STR(buf_c(&out), all);
    CHECK(!str_find(buf_str(&out), STR("sk-abcdefg1")));
    response_release(&a);
    buf_release(&out);
    buf_release(&json);
}

TEST(the_key_is_masked_in_text)
{
    const char *text = "a sk-abcdefg1 and sk-abcdefg1.";

    check_masked(text, 0, "", "a *** and ***.");
    check_masked(text, strlen(text), "a *** and ***.", "a *** and ***.");
    for (size_t at = 0; at <= strlen(text); at++)
        check_masked(text, at, NULL, NULL);
    check_masked(text, 5, "a sk-", "a sk-*** and ***.");
    check_masked(text, 6, "a ", "a *** and ***.");
    /* Text that only begins like the key is passed on in full. */
    check_masked("sk-abcd", 6, "", "sk-abcd");
    check_masked("sk-absk-abcdefg1!", 8, "sk-absk-", "sk-absk-***!");
}

TEST(the_key_is_masked_in_arguments)
{
    struct response a;
    struct err e = ERR_INIT;

    response_init(&a, NULL);
    response_add_secret(&a, "sk-abcdefg1");
    CHECK_INT(response_add_call(&a, 0, STR("1"), STR("f"), STR("\"{\\\"k\\\":\\\"sk-abc\""), &e),
              0);
    CHECK_INT(response_add_call(&a, 0, STR(""), STR(""), STR("\"defg1\\\"}\""), &e), 0);
    response_finish_calls(&a);
    CHECK_STR(buf_c(&a.calls[0].args), "{\"k\":\"***\"}");
    response_release(&a);
}

TEST(a_short_key_is_not_masked)
{
    struct response a;
    struct err e = ERR_INIT;

    response_init(&a, NULL);
    response_add_secret(&a, "ollama");
    CHECK_INT(response_add_text(&a, STR("\"run ollama\""), &e), 0);
    CHECK_STR(buf_c(&a.text), "run ollama");
    response_add_secret(&a, NULL);
    CHECK_INT(response_end_text(&a, &e), 0);
    response_release(&a);
}

static int add_json(void *arg, struct str json)
{
    buf_add_str(arg, json);
    return 0;
}

TEST(the_key_is_masked_everywhere)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct response_sink sink = {.citation = add_json, .reasoning = add_delta, .arg = &out};
    struct response a;
    struct err e = ERR_INIT;

    response_init(&a, &sink);
    response_add_secret(&a, "sk-abcdefg1");
    CHECK_INT(response_add_citation(&a, STR("{\"url\":\"sk-abcdefg1\"}")), 0);
    CHECK_INT(response_add_reasoning(&a, STR("sk-abcdefg1?")), 0);
    CHECK_STR(buf_c(&out), "{\"url\":\"***\"}***?");
    response_set_model(&a, STR("sk-abcdefg1"));
    response_set_finish(&a, STR("sk-abcdefg1"));
    response_set_refusal(&a, STR("sk-abcdefg1"), STR("no sk-abcdefg1"));
    CHECK_STR(a.model, "***");
    CHECK_STR(a.finish_reason, "***");
    CHECK_STR(a.refusal, "no *** (***)");
    CHECK_INT(response_add_call(&a, 0, STR("sk-abcdefg1"), STR("sk-abcdefg1"), STR("{}"), &e), 0);
    opaque_add_member(&a.opaque, "x", STR_NONE, STR("\"sk-abcdefg1\""));
    response_finish_calls(&a);
    CHECK_STR(buf_c(&a.calls[0].id), "***");
    CHECK_STR(buf_c(&a.calls[0].name), "***");
    CHECK_STR(buf_c(&a.opaque.thinking), "");
    CHECK(!opaque_is_whole(&a.opaque));
    response_release(&a);
    buf_release(&out);
}
