#include "chathist/llm/replay.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "chathist/base/json.h"

static void grow(struct replay *r, enum replay_member member, const char *piece)
{
    struct buf string = BUF_INIT(BUF_SMALL);

    if (member == REPLAY_CITATIONS)
        buf_add_c(&string, piece);
    else
        json_add_string(&string, str_of(piece));
    replay_grow(r, 1, member, buf_str(&string));
    buf_release(&string);
}

/* A signature holds for the thinking as it was. */
TEST(a_character_that_comes_in_halves_is_one)
{
    struct replay r;

    replay_init(&r);
    replay_begin(&r, 1, STR("{\"type\":\"thinking\",\"thinking\":\"\"}"));
    replay_grow(&r, 1, REPLAY_THINKING, STR("\"a\\ud83d\""));
    replay_grow(&r, 1, REPLAY_THINKING, STR("\"\\ude00\""));
    grow(&r, REPLAY_SIGNATURE, "s");
    replay_end(&r, 1);
    CHECK_STR(buf_c(&r.thinking), "[{\"type\":\"thinking\",\"thinking\":\"a\xf0\x9f\x98\x80\","
                                  "\"signature\":\"s\"}]");
    replay_release(&r);
}

TEST(blocks_are_kept_as_they_came)
{
    struct replay r;

    replay_init(&r);
    CHECK(!replay_is_whole(&r));
    replay_begin(&r, 1, STR("{\"type\":\"text\",\"text\":\"\"}"));
    grow(&r, REPLAY_TEXT, "a\"");
    grow(&r, REPLAY_TEXT, "b");
    grow(&r, REPLAY_CITATIONS, "{\"n\":1}");
    grow(&r, REPLAY_CITATIONS, "{\"n\":2}");
    CHECK(!replay_is_whole(&r));
    replay_end(&r, 2); /* not that one */
    replay_end(&r, 1);
    replay_begin(&r, 1,
                 STR("{\"type\":\"server_tool_use\",\"id\":\"s\",\"input\":{}, \"n\":1.50}"));
    grow(&r, REPLAY_INPUT, "{\"q\":");
    grow(&r, REPLAY_INPUT, " \"w\"}");
    replay_end(&r, 1);
    replay_begin(&r, 1, STR("{\"type\":\"server_tool_use\",\"input\":{}}"));
    replay_end(&r, 1);
    replay_begin(&r, 1, STR("{\"type\":\"result\",\"content\":[{\"text\":\"\"}]}"));
    replay_end(&r, 1);
    replay_begin(&r, 1, STR("{\"type\":\"text\",\"text\":\" \"}"));
    replay_end(&r, 1);
    replay_begin(&r, 1, STR("{\"type\":\"text\",\"citations\":[7],\"text\":\"c\"}"));
    grow(&r, REPLAY_CITATIONS, "8");
    replay_end(&r, 1);
    CHECK_STR(buf_c(&r.turn),
              "[{\"type\":\"text\",\"text\":\"a\\\"b\",\"citations\":[{\"n\":1},{\"n\":2}]},"
              "{\"type\":\"server_tool_use\",\"id\":\"s\",\"n\":1.50,\"input\":{\"q\":\"w\"}},"
              "{\"type\":\"server_tool_use\",\"input\":{}},"
              "{\"type\":\"result\",\"content\":[{\"text\":\"\"}]},"
              "{\"type\":\"text\",\"text\":\"c\",\"citations\":[7,8]}]");
    CHECK(replay_is_whole(&r));
    CHECK_INT(r.thinking.len, 0);
    /* One that never ended is missing. */
    replay_begin(&r, 1, STR("{\"type\":\"x\"}"));
    CHECK(!replay_is_whole(&r));
    replay_begin(&r, 2, STR("{\"type\":\"y\"}"));
    replay_end(&r, 2);
    CHECK(!replay_is_whole(&r));
    replay_release(&r);
}

TEST(an_input_that_is_none)
{
    struct replay r;

    replay_init(&r);
    replay_begin(&r, 1, STR("{\"type\":\"tool_use\",\"input\":{}}"));
    grow(&r, REPLAY_INPUT, "{\"q\":");
    replay_end(&r, 1);
    CHECK_STR(buf_c(&r.turn), "[{\"type\":\"tool_use\",\"input\":{}}]");
    replay_release(&r);
}

/* What does not fit is not kept, and what comes after it is. */
TEST(blocks_that_do_not_fit)
{
    size_t n = (size_t)1 << 20;
    char *text = malloc(n);
    struct replay r;

    if (!CHECK(text))
        return;
    memset(text, 'x', n);
    text[0] = text[n - 1] = '"';
    replay_init(&r);
    replay_begin(&r, 1, STR("{\"type\":\"thinking\",\"signature\":\"s\"}"));
    for (size_t i = 0; i < 2 * REPLAY_TURN_MAX / n; i++)
        replay_grow(&r, 1, REPLAY_THINKING, (struct str){text, n});
    replay_end(&r, 1);
    CHECK_INT(r.thinking.len, 0);
    CHECK(!replay_is_whole(&r));
    replay_begin(&r, 1, STR("{\"type\":\"thinking\",\"signature\":\"s\"}"));
    replay_end(&r, 1);
    CHECK_STR(buf_c(&r.thinking), "[{\"type\":\"thinking\",\"signature\":\"s\"}]");
    CHECK(!replay_is_whole(&r));
    replay_release(&r);
    free(text);
}

static void details_are(const char *const *details, bool piece, const char *wanted)
{
    struct replay r;

    replay_init(&r);
    r.keep_details = true;
    for (; *details; details++)
        replay_add_detail(&r, str_of(*details), piece);
    replay_settle(&r, true);
    CHECK_STR(buf_c(&r.thinking), wanted);
    replay_release(&r);
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
                BLOCK("{\"type\":\"reasoning.text\",\"index\":0,\"text\":\"Let me!\","
                      "\"signature\":\"c2l\\u006e\",\"format\":\"f\",\"id\":\"i\"},"
                      "{\"type\":\"reasoning.text\",\"text\":\"Next\",\"index\":1},"
                      "{\"type\":\"reasoning.encrypted\",\"data\":\"a\",\"id\":\"x\",\"index\":1},"
                      "{\"type\":\"reasoning.encrypted\",\"data\":\"b\",\"id\":\"y\",\"index\":1},"
                      "{\"type\":\"reasoning.summary\",\"index\":2,\"summary\":\"ab\"},"
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

/* In pieces or in another sequence they would be refused; cut reasoning is another's. */
TEST(reasoning_that_does_not_fit_goes_back_not_at_all)
{
    struct replay r;
    struct buf large = BUF_INIT(4 * REPLAY_THINKING_MAX);

    buf_add_c(&large, "{\"type\":\"reasoning.text\",\"text\":\"");
    memset(buf_room(&large, 2 * REPLAY_THINKING_MAX), 'x', 2 * REPLAY_THINKING_MAX);
    buf_grew(&large, 2 * REPLAY_THINKING_MAX);
    buf_add_c(&large, "\"}");
    replay_init(&r);
    r.keep_details = r.keep_reasoning = true;
    replay_add_detail(&r, STR("{\"type\":\"reasoning.text\",\"text\":\"a\"}"), false);
    replay_add_detail(&r, buf_str(&large), false);
    replay_add_reasoning(&r, buf_str(&large));
    replay_settle(&r, true);
    CHECK_INT(r.thinking.len, 0);
    /* The next answer's are not affected. */
    replay_add_detail(&r, STR("{\"type\":\"reasoning.text\",\"text\":\"a\"}"), false);
    replay_add_reasoning(&r, STR("b"));
    replay_settle(&r, true);
    CHECK(r.thinking.len > 0);
    replay_release(&r);
    buf_release(&large);
}

TEST(details_that_nobody_wants)
{
    struct replay r;

    replay_init(&r);
    replay_add_detail(&r, STR("{\"type\":\"reasoning.text\"}"), true);
    replay_settle(&r, true);
    CHECK_INT(r.thinking.len, 0);
    r.keep_details = true;
    replay_add_detail(&r, STR("{\"type\":\"reasoning.text\"}"), true);
    replay_settle(&r, false);
    replay_settle(&r, true);
    CHECK_INT(r.thinking.len, 0);
    replay_release(&r);
}
