#include "chathist/llm/opaque_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "chathist/base/json.h"

static void grow(struct opaque_blocks *r, enum opaque_member member, const char *piece)
{
    struct buf string = BUF_INIT(BUF_SMALL);

    if (member == OPAQUE_CITATIONS)
        buf_add_c(&string, piece);
    else
        json_add_string(&string, str_of(piece));
    opaque_grow(r, 1, member, buf_str(&string));
    buf_release(&string);
}

/* A signature is only valid for the exact thinking. */
TEST(a_character_that_comes_in_halves_is_one)
{
    struct opaque_blocks r;

    opaque_init(&r);
    opaque_begin(&r, 1, STR("{\"type\":\"thinking\",\"thinking\":\"\"}"));
    opaque_grow(&r, 1, OPAQUE_THINKING, STR("\"a\\ud83d\""));
    opaque_grow(&r, 1, OPAQUE_THINKING, STR("\"\\ude00\""));
    grow(&r, OPAQUE_SIGNATURE, "s");
    opaque_end(&r, 1);
    CHECK_STR(buf_c(&r.thinking), "[{\"type\":\"thinking\",\"thinking\":\"a\xf0\x9f\x98\x80\","
                                  "\"signature\":\"s\"}]");
    opaque_release(&r);
}

TEST(blocks_are_kept_as_they_came)
{
    struct opaque_blocks r;

    opaque_init(&r);
    CHECK(!opaque_is_whole(&r));
    opaque_begin(&r, 1, STR("{\"type\":\"text\",\"text\":\"\"}"));
    grow(&r, OPAQUE_TEXT, "a\"");
    grow(&r, OPAQUE_TEXT, "b");
    grow(&r, OPAQUE_CITATIONS, "{\"n\":1}");
    grow(&r, OPAQUE_CITATIONS, "{\"n\":2}");
    CHECK(!opaque_is_whole(&r));
    opaque_end(&r, 2); /* not the open block */
    opaque_end(&r, 1);
    opaque_begin(&r, 1,
                 STR("{\"type\":\"server_tool_use\",\"id\":\"s\",\"input\":{}, \"n\":1.50}"));
    grow(&r, OPAQUE_INPUT, "{\"q\":");
    grow(&r, OPAQUE_INPUT, " \"w\"}");
    opaque_end(&r, 1);
    opaque_begin(&r, 1, STR("{\"type\":\"server_tool_use\",\"input\":{}}"));
    opaque_end(&r, 1);
    opaque_begin(&r, 1, STR("{\"type\":\"result\",\"content\":[{\"text\":\"\"}]}"));
    opaque_end(&r, 1);
    opaque_begin(&r, 1, STR("{\"type\":\"text\",\"text\":\" \"}"));
    opaque_end(&r, 1);
    opaque_begin(&r, 1, STR("{\"type\":\"text\",\"citations\":[7],\"text\":\"c\"}"));
    grow(&r, OPAQUE_CITATIONS, "8");
    opaque_end(&r, 1);
    CHECK_STR(buf_c(&r.turn),
              "[{\"type\":\"text\",\"text\":\"a\\\"b\",\"citations\":[{\"n\":1},{\"n\":2}]},"
              "{\"type\":\"server_tool_use\",\"id\":\"s\",\"n\":1.50,\"input\":{\"q\":\"w\"}},"
              "{\"type\":\"server_tool_use\",\"input\":{}},"
              "{\"type\":\"result\",\"content\":[{\"text\":\"\"}]},"
              "{\"type\":\"text\",\"text\":\"c\",\"citations\":[7,8]}]");
    CHECK(opaque_is_whole(&r));
    CHECK_INT(r.thinking.len, 0);
    /* A block that does not end is missing. */
    opaque_begin(&r, 1, STR("{\"type\":\"x\"}"));
    CHECK(!opaque_is_whole(&r));
    opaque_begin(&r, 2, STR("{\"type\":\"y\"}"));
    opaque_end(&r, 2);
    CHECK(!opaque_is_whole(&r));
    opaque_release(&r);
}

TEST(an_input_that_is_none)
{
    struct opaque_blocks r;

    opaque_init(&r);
    opaque_begin(&r, 1, STR("{\"type\":\"tool_use\",\"input\":{}}"));
    grow(&r, OPAQUE_INPUT, "{\"q\":");
    opaque_end(&r, 1);
    CHECK_STR(buf_c(&r.turn), "[{\"type\":\"tool_use\",\"input\":{}}]");
    opaque_release(&r);
}

/* A block that is too long is dropped, and the following ones are kept. */
TEST(blocks_that_do_not_fit)
{
    size_t n = (size_t)1 << 20;
    char *text = malloc(n);
    struct opaque_blocks r;

    if (!CHECK(text))
        return;
    memset(text, 'x', n);
    text[0] = text[n - 1] = '"';
    opaque_init(&r);
    opaque_begin(&r, 1, STR("{\"type\":\"thinking\",\"signature\":\"s\"}"));
    for (size_t i = 0; i < 2 * OPAQUE_TURN_MAX / n; i++)
        opaque_grow(&r, 1, OPAQUE_THINKING, (struct str){text, n});
    opaque_end(&r, 1);
    CHECK_INT(r.thinking.len, 0);
    CHECK(!opaque_is_whole(&r));
    opaque_begin(&r, 1, STR("{\"type\":\"thinking\",\"signature\":\"s\"}"));
    opaque_end(&r, 1);
    CHECK_STR(buf_c(&r.thinking), "[{\"type\":\"thinking\",\"signature\":\"s\"}]");
    CHECK(!opaque_is_whole(&r));
    opaque_release(&r);
    free(text);
}

static void replay_is(const char *blocks, const char *wanted, int line)
{
    struct opaque_blocks r;
    struct buf out = BUF_INIT(BUF_SMALL);
    int64_t index = 0;

    opaque_init(&r);
    for (struct json_iter it = json_iter(str_of(blocks)); json_next(&it); index++) {
        opaque_begin(&r, index, it.value);
        opaque_end(&r, index);
    }
    opaque_add_replay(&r, &out);
    test_check_str(buf_c(&out), wanted, "replay", __FILE__, line);
    buf_clear(&out);
    r.before = 0xabcdef0123456789;
    opaque_add_replay(&r, &out);
    if (*wanted) {
        uint64_t before = 0;

        test_check_int(opaque_bound(buf_str(&out), &before), true, "bound", __FILE__, line);
        test_check_int(before == 0xabcdef0123456789, true, "before", __FILE__, line);
        test_check_int(opaque_has_all(buf_str(&out)), opaque_has_all(str_of(wanted)), "has all",
                       __FILE__, line);
        test_check_str(buf_c(&out) + strlen("[{'type':'bound','before':'abcdef0123456789'},"),
                       wanted + 1, "bound replay", __FILE__, line);
    } else {
        test_check_int((long long)out.len, 0, "bound replay", __FILE__, line);
    }
    buf_release(&out);
    opaque_release(&r);
}
#define REPLAY_IS(blocks, wanted) replay_is(blocks, wanted, __LINE__)

/* What follows from the text and the calls is not stored twice. */
TEST(blocks_are_stored_whole_if_their_order_says_something)
{
#define THINK "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s\"}"
#define REDACTED "{\"type\":\"redacted_thinking\",\"data\":\"d\"}"
#define SAY "{\"type\":\"text\",\"text\":\"t\"}"
#define USE "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}"
#define CITE "{\"type\":\"text\",\"text\":\"t\",\"citations\":[1]}"
#define FOUND "{\"type\":\"web_search_tool_result\"}"
#define SEARCH "{\"type\":\"server_tool_use\",\"id\":\"b\"}"
    uint64_t before;

    REPLAY_IS("[" SAY "]", "");
    REPLAY_IS("[" SAY "," USE "," USE "]", "");
    REPLAY_IS("[" THINK "]", "[" THINK "]");
    REPLAY_IS("[" THINK "," REDACTED "," SAY "," USE "," USE "]", "[" THINK "," REDACTED "]");
    REPLAY_IS("[" THINK "," USE "," REDACTED "]", "[" THINK "," USE "," REDACTED "]");
    REPLAY_IS("[" SAY "," THINK "]", "[" SAY "," THINK "]");
    REPLAY_IS("[" SAY "," SAY "]", "[" SAY "," SAY "]");
    REPLAY_IS("[" USE "," SAY "]", "[" USE "," SAY "]");
    REPLAY_IS("[" CITE "]", "[" CITE "]");
    REPLAY_IS("[" SEARCH "," FOUND "]", "[" SEARCH "," FOUND "]");
    REPLAY_IS("[" THINK "," SAY "," SEARCH "]", ""); /* the result is missing */
    /* Nothing goes back of an answer that was cut off between its blocks. */
    struct opaque_blocks r;
    struct buf out = BUF_INIT(BUF_SMALL);

    opaque_init(&r);
    for (int64_t i = 0; i < 3; i++) {
        opaque_begin(&r, i, i == 1 ? STR(SAY) : STR(THINK));
        opaque_end(&r, i);
    }
    opaque_begin(&r, 3, STR(SAY));
    opaque_add_replay(&r, &out);
    CHECK_STR(buf_c(&out), "");
    opaque_release(&r);
    buf_release(&out);
    CHECK(!opaque_bound(STR("[" THINK "]"), &before));
    CHECK(!opaque_bound(STR("7"), &before));
}

static void details_are(const char *const *details, bool piece, const char *wanted)
{
    struct opaque_blocks r;

    opaque_init(&r);
    for (; *details; details++)
        opaque_add_detail(&r, "reasoning_details", str_of(*details), piece);
    opaque_finish(&r, true);
    CHECK_STR(buf_c(&r.thinking), wanted);
    opaque_release(&r);
}

#define BLOCK(details) "[{\"type\":\"reasoning_details\",\"reasoning_details\":[" details "]}]"

TEST(details_of_a_stream_are_put_together)
{
    static const char *const pieces[] = {
        "{\"type\":\"reasoning.text\",\"text\":\"Let\",\"signature\":null,\"format\":null,"
        "\"index\":0}",
        "{\"type\":\"reasoning.text\",\"text\":\" me\",\"format\":\"f\",\"index\":0}",
        "{\"type\":\"reasoning.text\",\"text\":null,\"signature\":\"c2l\\u006e\",\"id\":\"i\","
        "\"index\":0}",
        "{\"type\":\"reasoning.text\",\"text\":\"!\",\"id\":\"i\",\"index\":0}",
        "7",
        "{\"type\":\"reasoning.text\",\"text\":\"Next\",\"index\":1}",
        "{\"type\":\"reasoning.encrypted\",\"data\":\"a\",\"id\":\"x\",\"index\":1}",
        "{\"type\":\"reasoning.encrypted\",\"data\":\"b\",\"id\":\"y\",\"index\":1}",
        "{\"type\":\"reasoning.summary\",\"summary\":\"a\",\"index\":2}",
        "{\"type\":\"reasoning.summary\",\"summary\":\"b\",\"index\":2}",
        "{\"type\":\"reasoning.text\",\"text\":\"no\"}",
        "{\"type\":\"reasoning.text\",\"text\":\"index\"}",
        NULL,
    };

    details_are(pieces, true,
                BLOCK("{\"type\":\"reasoning.text\",\"text\":\"Let me!\","
                      "\"signature\":\"c2l\\u006e\",\"format\":\"f\",\"index\":0,\"id\":\"i\"},"
                      "{\"type\":\"reasoning.text\",\"text\":\"Next\",\"index\":1},"
                      "{\"type\":\"reasoning.encrypted\",\"data\":\"a\",\"id\":\"x\",\"index\":1},"
                      "{\"type\":\"reasoning.encrypted\",\"data\":\"b\",\"id\":\"y\",\"index\":1},"
                      "{\"type\":\"reasoning.summary\",\"summary\":\"ab\",\"index\":2},"
                      "{\"type\":\"reasoning.text\",\"text\":\"no\"},"
                      "{\"type\":\"reasoning.text\",\"text\":\"index\"}"));
}

TEST(details_of_a_whole_answer_stay_as_they_are)
{
    static const char *const details[] = {
        "{ \"type\":\"reasoning.text\",\"text\":\"a\",\"index\":0,\"n\":1.0}",
        "{\"type\":\"reasoning.text\",\"text\":\"b\",\"index\":0}",
        NULL,
    };

    details_are(details, false,
                BLOCK("{\"type\":\"reasoning.text\",\"text\":\"a\",\"index\":0,\"n\":1.0},"
                      "{\"type\":\"reasoning.text\",\"text\":\"b\",\"index\":0}"));
}

/* As LiteLLM streams the blocks of Anthropic. */
TEST(thinking_without_an_index_ends_with_its_signature)
{
    static const char *const pieces[] = {
        "{\"type\":\"thinking\",\"thinking\":\"Let\",\"signature\":null}",
        "{\"type\":\"thinking\",\"thinking\":\" me\",\"signature\":\"\"}",
        "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"c2ln\"}",
        "{\"type\":\"thinking\",\"thinking\":\"Next\"}",
        "{\"type\":\"redacted_thinking\",\"data\":\"RW5j\"}",
        NULL,
    };

    details_are(pieces, true,
                BLOCK("{\"type\":\"thinking\",\"thinking\":\"Let me\",\"signature\":\"c2ln\"},"
                      "{\"type\":\"thinking\",\"thinking\":\"Next\"},"
                      "{\"type\":\"redacted_thinking\",\"data\":\"RW5j\"}"));
}

/* Servers refuse details in pieces or in another sequence, and reasoning that was cut. */
TEST(reasoning_that_does_not_fit_goes_back_not_at_all)
{
    struct opaque_blocks r;
    struct buf large = BUF_INIT(4 * OPAQUE_THINKING_MAX);

    buf_add_c(&large, "{\"type\":\"reasoning.text\",\"text\":\"");
    memset(buf_room(&large, 2 * OPAQUE_THINKING_MAX), 'x', 2 * OPAQUE_THINKING_MAX);
    buf_grew(&large, 2 * OPAQUE_THINKING_MAX);
    buf_add_c(&large, "\"}");
    opaque_init(&r);
    opaque_add_detail(&r, "d", STR("{\"type\":\"reasoning.text\",\"text\":\"a\"}"), false);
    opaque_add_detail(&r, "d", buf_str(&large), false);
    opaque_add_reasoning(&r, "r", buf_str(&large));
    opaque_finish(&r, true);
    CHECK_INT(r.thinking.len, 0);
    /* The next response is not affected. */
    opaque_add_detail(&r, "d", STR("{\"type\":\"reasoning.text\",\"text\":\"a\"}"), false);
    opaque_add_reasoning(&r, "r", STR("b"));
    opaque_finish(&r, true);
    CHECK_STR(buf_c(&r.thinking), "[{\"type\":\"r\",\"text\":\"b\"},"
                                  "{\"type\":\"d\",\"d\":[{\"type\":\"reasoning.text\","
                                  "\"text\":\"a\"}]}]");
    opaque_release(&r);
    buf_release(&large);
}

TEST(details_of_an_answer_without_calls)
{
    struct opaque_blocks r;

    opaque_init(&r);
    opaque_add_detail(&r, "d", STR("{\"type\":\"reasoning.text\"}"), true);
    opaque_finish(&r, false);
    opaque_finish(&r, true);
    CHECK_INT(r.thinking.len, 0);
    opaque_release(&r);
}
