/*
 * The context of a request: built, cut and settled.
 */
#include "test.h"

#include "chathist/base/utf8.h"
#include "chathist/llm/context.h"
#include <stdlib.h>

/* Adds a history line with these members after the five that every line has. */
static bool add(struct context *c, const char *role, const char *content, const char *more)
{
    struct buf line = BUF_INIT(BUF_SMALL);
    struct message m = MESSAGE_INIT;
    bool added;

    buf_addf(
        &line,
        "{\"id\":\"1-0\",\"session_id\":\"s\",\"timestamp\":\"2024-06-27T15:00:00.000000+00:00\","
        "\"role\":\"%s\",\"content\":%s%s}",
        role, content, more);
    if (!CHECK(message_parse(&m, buf_str(&line))))
        fprintf(stderr, "    %s\n", buf_c(&line));
    added = context_add(c, &m);
    message_release(&m);
    buf_release(&line); /* nothing may be borrowed from it */
    return added;
}

static void call(struct context *c, const char *content, const char *ids)
{
    struct buf calls = BUF_INIT(BUF_SMALL);

    for (; *ids; ids++)
        buf_addf(&calls, "%s{\"id\":\"%c\",\"name\":\"f\",\"args\":{}}",
                 calls.len ? "," : ",\"tool_calls\":[", *ids);
    buf_add_c(&calls, "]");
    add(c, "assistant", content, buf_c(&calls));
    buf_release(&calls);
}

static void result(struct context *c, const char *content, char id)
{
    struct buf more = BUF_INIT(BUF_SMALL);

    buf_addf(&more, ",\"tool_call_id\":\"%c\"", id);
    add(c, "tool", content, buf_c(&more));
    buf_release(&more);
}

/* Adds lines in the form that `check` prints, separated by |: `u:content`, `a:content`,
 * `a*xy:content` with calls of the ids x and y, `t=x:result`, and `t:result` without an id. */
static void add_lines(struct context *c, const char *lines)
{
    struct str rest = str_of(lines);

    while (rest.n > 0) {
        struct str text = str_cut(&rest, '|'), head = str_cut(&text, ':');
        struct buf content = BUF_INIT(BUF_SMALL), ids = BUF_INIT(BUF_SMALL);

        buf_addf(&content, "\"%.*s\"", (int)text.n, text.n ? text.p : "");
        buf_add_str(&ids, str_skip(head, head.n > 1 ? 2 : 1));
        if (head.p[0] == 'a' && ids.len > 0)
            call(c, buf_c(&content), buf_c(&ids));
        else if (head.p[0] == 't' && ids.len > 0)
            result(c, buf_c(&content), buf_c(&ids)[0]);
        else
            add(c,
                head.p[0] == 'u'   ? "user"
                : head.p[0] == 'a' ? "assistant"
                                   : "tool",
                buf_c(&content), "");
        buf_release(&content);
        buf_release(&ids);
    }
}

/* Makes a context of these lines, and of a turn with this prompt, which may be NULL. */
static void begin_context(struct context *c, const char *lines, const char *prompt)
{
    context_init(c);
    add_lines(c, lines);
    context_begin_turn(c);
    if (prompt)
        context_add_text(c, ROLE_USER, str_of(prompt));
}

/* Checks the messages: `u:content` each, `a*:` with calls, `t=id:`, and `/` before this turn. */
static void check(const struct context *c, const char *want, int line)
{
    struct buf got = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < c->count; i++) {
        const struct context_message *m = &c->at[i];

        buf_add_c(&got, i == c->turn ? "/" : i > 0 ? " " : "");
        buf_add_byte(&got, m->role == ROLE_USER ? 'u' : m->role == ROLE_TOOL ? 't' : 'a');
        if (m->tool_calls)
            buf_add_byte(&got, '*');
        if (m->tool_call_id)
            buf_addf(&got, "=%s", m->tool_call_id);
        buf_addf(&got, ":%s", m->content);
        test_check_int((long long)m->n, (long long)strlen(m->content), "length", __FILE__, line);
    }
    if (c->turn == c->count)
        buf_add_byte(&got, '/');
    test_check_str(buf_c(&got), want, "context", __FILE__, line);
    buf_release(&got);
}
#define CHECK_CONTEXT(c, want) check(c, want, __LINE__)

#define NONE "no result is known"
#define BAD "no result: the call was not carried out, its arguments are not a valid JSON object"

TEST(the_newest_system_line_is_the_prompt)
{
    struct context c;

    context_init(&c);
    CHECK(add(&c, "system", "\"one\"", ""));
    CHECK(add(&c, "user", "\"a\"", ""));
    CHECK(add(&c, "system", "\"t\\u0000wo\"", ",\"reset\":true"));
    CHECK_INT(c.count, 1);
    CHECK_MEM(c.system, c.system_len, "t\0wo", 4);
    CHECK(add(&c, "system", "\"\"", ""));
    CHECK(c.system == NULL);
    context_set_system(&c, STR("three"));
    CHECK_STR(c.system, "three");
    context_release(&c);
}

/* Adds a line by its letter: u and v are prompts with these ids. These answer u: f failed, i cut, l
 * at the length limit, d done, e done without text, c a call, r its result. F and I do the same for
 * v. x failed without a prompt, s is a system prompt. */
static void add_letter(struct context *c, char letter)
{
    static const struct {
        char letter;
        const char *role, *content, *more;
    } lines[] = {
        {'u', "user", "\"u\"", ",\"id\":\"u\""},
        {'v', "user", "\"v\"", ",\"id\":\"v\""},
        {'f', "assistant", "\"\"", ",\"reply_to\":\"u\",\"finish_reason\":\"error\""},
        {'F', "assistant", "\"\"", ",\"reply_to\":\"v\",\"finish_reason\":\"interrupted\""},
        {'i', "assistant", "\"i\"", ",\"reply_to\":\"u\",\"finish_reason\":\"interrupted\""},
        {'I', "assistant", "\"I\"", ",\"reply_to\":\"v\",\"finish_reason\":\"interrupted\""},
        {'l', "assistant", "\"l\"", ",\"reply_to\":\"u\",\"finish_reason\":\"length\""},
        {'d', "assistant", "\"d\"", ",\"reply_to\":\"u\",\"finish_reason\":\"stop\""},
        {'e', "assistant", "\"\"", ",\"reply_to\":\"u\",\"finish_reason\":\"stop\""},
        {'c', "assistant", "\"\"",
         ",\"reply_to\":\"u\",\"tool_calls\":[{\"id\":\"k\",\"name\":\"f\",\"args\":{}}]"},
        {'r', "tool", "\"r\"", ",\"reply_to\":\"u\",\"tool_call_id\":\"k\""},
        {'x', "assistant", "\"\"", ",\"finish_reason\":\"error\""},
        {'s', "system", "\"s\"", ""},
    };

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (lines[i].letter == letter)
            add(c, lines[i].role, lines[i].content, lines[i].more);
}

TEST(what_failed_is_not_sent_again)
{
    static const struct {
        const char *lines, *want;
    } cases[] = {
        /* A prompt that failed is dropped with its mark, however often it failed. One without a
         * mark is kept. */
        {"uf", "/u:n"},
        {"uff", "/u:n"},
        {"ufv", "u:v /u:n"},
        {"vuf", "u:v /u:n"},
        {"udvF", "u:u a:d /u:n"},
        {"vFud", "u:u a:d /u:n"},
        {"suf", "/u:n"},
        {"u", "u:u /u:n"},
        {"ux", "u:u /u:n"},
        {"uF", "u:u /u:n"},
        {"vuF", "u:v u:u /u:n"},
        /* It is kept if another attempt had a result, or if its calls were carried out. */
        {"ufd", "u:u a:d /u:n"},
        {"udf", "u:u a:d /u:n"},
        {"ufi", "u:u a:i /u:n"},
        {"uif", "u:u a:i /u:n"},
        {"ue", "u:u a: /u:n"},
        {"uef", "u:u a: /u:n"},
        {"ucrf", "u:u a*: t=k:r /u:n"},
        /* Of several answers that were cut, the last is sent, unless there is a whole one. */
        {"ui", "u:u a:i /u:n"},
        {"uil", "u:u a:l /u:n"},
        {"uili", "u:u a:i /u:n"},
        {"uilf", "u:u a:l /u:n"},
        {"udi", "u:u a:d /u:n"},
        {"udil", "u:u a:d /u:n"},
        {"ucri", "u:u a*: t=k:r a:i /u:n"},
        {"uicrl", "u:u a*: t=k:r a:l /u:n"},
        {"uivI", "u:u a:i u:v a:I /u:n"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct context c;
        struct buf want = BUF_INIT(BUF_SMALL);

        context_init(&c);
        for (const char *at = cases[i].lines; *at; at++)
            add_letter(&c, *at);
        context_begin_turn(&c);
        context_add_text(&c, ROLE_USER, STR("n"));
        context_cut(&c, CONTEXT_ALL, CONTEXT_ALL);
        /* The space before this turn is the separator. */
        for (const char *at = cases[i].want; *at; at++)
            if (*at != ' ' || at[1] != '/')
                buf_add_byte(&want, *at);
        CHECK_CONTEXT(&c, buf_c(&want));
        CHECK_INT(c.dropped, 0);
        context_release(&c);
        buf_release(&want);
    }
}

TEST(a_prompt_that_failed_takes_no_place)
{
    struct context c;

    context_init(&c);
    for (const char *at = "udvFvF"; *at; at++)
        add_letter(&c, *at);
    context_begin_turn(&c);
    context_add_text(&c, ROLE_USER, STR("n"));
    context_cut(&c, 2, CONTEXT_ALL);
    context_finish(&c);
    CHECK_CONTEXT(&c, "u:u a:d/u:n");
    CHECK_INT(c.dropped, 0);
    context_release(&c);
}

TEST(unknown_roles_are_passed_over)
{
    struct context c;

    context_init(&c);
    CHECK(!add(&c, "developer", "\"a\"", ""));
    CHECK_INT(c.count, 0);
    context_release(&c);
}

TEST(content_may_hold_nul_or_be_null)
{
    struct context c;

    context_init(&c);
    add(&c, "user", "\"a\\u0000b\"", "");
    add(&c, "assistant", "null", "");
    CHECK_MEM(c.at[0].content, c.at[0].n, "a\0b", 3);
    CHECK_MEM(c.at[1].content, c.at[1].n, "", 0);
    context_release(&c);
}

TEST(calls_are_taken_in_one_strict_form)
{
    struct context c;

    context_init(&c);
    add(&c, "assistant", "\"\"",
        ",\"tool_calls\":[{\"args\": {\"n\": 1.0} ,\"x\":1,\"name\":\"f\",\"id\":\"a\"},"
        "{\"id\":\"b\",\"name\":\"f\",\"args\":\"{bad\"},{\"id\":\"c\",\"name\":\"f\"},"
        "{\"id\":\"\",\"name\":\"f\"},{\"id\":\"d\"},7,"
        "{\"type\":\"tool_use\",\"id\":\"e\",\"name\":\"g\",\"input\":{\"p\":1}}]");
    CHECK_STR(c.at[0].tool_calls, "[{\"id\":\"a\",\"name\":\"f\",\"args\":{\"n\":1.0}},"
                                  "{\"id\":\"b\",\"name\":\"f\",\"args\":\"{bad\"},"
                                  "{\"id\":\"c\",\"name\":\"f\",\"args\":{}},"
                                  "{\"id\":\"e\",\"name\":\"g\",\"args\":{\"p\":1}}]");
    add(&c, "assistant", "\"x\"", ",\"tool_calls\":[]");
    add(&c, "assistant", "\"x\"", ",\"tool_calls\":[{\"name\":\"f\"}]");
    CHECK(c.at[1].tool_calls == NULL);
    CHECK(c.at[2].tool_calls == NULL);
    context_release(&c);
}

/* ---- the cut ---- */

static void add_pairs(struct context *c, int count)
{
    for (int i = 0; i < count; i++)
        add(c, i % 2 ? "assistant" : "user", i % 2 ? "\"bb\"" : "\"aa\"", "");
    context_begin_turn(c);
    context_add_text(c, ROLE_USER, STR("prompt"));
}

TEST(the_cut_keeps_the_newest_messages)
{
    struct context c;

    context_init(&c);
    add_pairs(&c, 25);
    context_cut(&c, 20, CONTEXT_ALL);
    CHECK_INT(c.count, 20);
    CHECK_INT(c.turn, 19);
    CHECK_INT(c.dropped, 6); /* the twentieth message is the model's, but the user must begin */
    CHECK_INT(c.at[0].role, ROLE_USER);
    context_cut(&c, CONTEXT_ALL, CONTEXT_ALL);
    CHECK_INT(c.count, 20);
    context_cut(&c, 0, CONTEXT_ALL);
    CHECK_CONTEXT(&c, "/u:prompt");
    CHECK_INT(c.dropped, 25);
    context_release(&c);
}

/* What goes of these lines if the limits are that many messages, or bytes (at least `from`, at most
 * `to`): the oldest turns, then the oldest rounds of the newest turn, each with its results. */
TEST(the_cut_leaves_what_belongs_together)
{
#define ROUNDS "u:o|a:old|u:a|a*a:|t=a:1|a*b:|t=b:2|a*c:|t=c:3|a:done"
#define LAST "a*: t=c:3 a:done/u:p"
    static const struct {
        const char *lines, *prompt;
        size_t from, to;
        bool bytes;
        const char *want;
        size_t dropped;
    } rows[] = {
        {"u:aa|a:bb|u:aa|a:bb", "p", 8, 9, true, "u:aa a:bb u:aa a:bb/u:p", 0},
        {"u:aa|a:bb|u:aa|a:bb", "p", 1, 7, true, "u:aa a:bb/u:p", 2},
        {"u:aa|a:bb|u:aa|a:bb", "p", 0, 0, true, "/u:p", 4},
        /* If a message does not fit, no older one takes its place, but the newest answer and its
         * prompt are always sent. */
        {"u:x|a:y|u:a|a:much too long|u:b", NULL, 5, 5, true, "u:a a:much too long u:b/", 2},
        {"u:a|a*xy:|t=x:1|t=y:2|a:done", "p", 0, 0, false, "/u:p", 5},
        {"u:a|a*xy:|t=x:1|t=y:2|a:done", "p", 1, 4, false, "u:a a:done/u:p", 3},
        {"u:a|a*xy:|t=x:1|t=y:2|a:done", "p", 5, 5, false, "u:a a*: t=x:1 t=y:2 a:done/u:p", 0},
        {ROUNDS, "p", 1, 3, false, "u:a a:done/u:p", 8},
        {ROUNDS, "p", 4, 5, false, "u:a " LAST, 6},
        {ROUNDS, "p", 6, 7, false, "u:a a*: t=b:2 " LAST, 4},
        {ROUNDS, "p", 8, 9, false, "u:a a*: t=a:1 a*: t=b:2 " LAST, 2},
        /* Without an answer, the last prompt and the newest round are sent, and the newest answer
         * with its prompt. */
        {"u:o|a:old|u:a|a*x:|t=x:1|a*x:|t=x:1|a*x:|t=x:1", "p", 1, 1, true,
         "u:o a:old u:a a*: t=x:1/u:p", 4},
        {"u:o|a:old|u:a|a*x:|t=x:1|a*x:|t=x:1|a*x:|t=x:1", "p", 1, 1, false,
         "u:o a:old u:a a*: t=x:1/u:p", 4},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t most = rows[i].from; most <= rows[i].to; most++) {
            struct context c;

            begin_context(&c, rows[i].lines, rows[i].prompt);
            context_cut(&c, rows[i].bytes ? CONTEXT_ALL : most, rows[i].bytes ? most : CONTEXT_ALL);
            CHECK_CONTEXT(&c, rows[i].want);
            CHECK_INT(c.dropped, rows[i].dropped);
            context_release(&c);
        }
}

/* Adds a prompt and an answer of 10 bytes together to a conversation of `before` turns, and returns
 * the number of the first prompt that is sent. */
static int first_sent(int before, size_t window)
{
    struct context c;
    char text[16], id[32];
    int first;

    context_init(&c);
    for (int i = 0; i < before; i++) {
        snprintf(text, sizeof text, "\"%05d\"", i);
        snprintf(id, sizeof id, ",\"id\":\"%d\"", i);
        add(&c, "user", text, id);
        add(&c, "assistant", "\"abcde\"", "");
    }
    context_begin_turn(&c);
    context_add_text(&c, ROLE_USER, STR("54321"));
    context_cut_in_steps(&c, window, window);
    CHECK_INT(c.at[0].role, ROLE_USER);
    CHECK_INT((int)c.count, (int)(2 * before + 1) - (int)c.dropped);
    CHECK(c.count * 5 <= window || c.count == 3);
    first = c.turn > 0 ? atoi(c.at[0].content) : before;
    context_release(&c);
    return first;
}

TEST(the_beginning_moves_in_steps)
{
    static const int firsts[] = {0, 0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8};
    int moves = 0, last = 0;

    for (int i = 0; i < 12; i++)
        CHECK_INT(first_sent(i, 49), firsts[i]);
    /* The same in a session that is many windows long, where it does not begin with the first
     * message. Each step leaves between a half and the whole of the window. */
    for (int i = 100; i < 200; i++) {
        int first = first_sent(i, 205);

        CHECK(first >= last && i - first >= 9 && i - first <= 20);
        moves += first != last;
        last = first;
    }
    CHECK(moves >= 8 && moves <= 14);
    CHECK_INT(first_sent(3, 20), 2); /* the newest answer is sent in any case */
}

TEST(a_window_of_tokens_counts_reasoning)
{
    struct context c;

    context_init(&c);
    for (int i = 0; i < 4; i++) {
        add(&c, "user", "\"u\"", "");
        add(&c, "assistant", "\"a\"",
            ",\"provider\":\"p\",\"thinking\":[{\"type\":\"reasoning\",\"text\":\"xxxxxxxxxx\"}]");
    }
    context_begin_turn(&c);
    context_add_text(&c, ROLE_USER, STR("u"));
    context_cut_in_steps(&c, 120, 120);
    CHECK_INT((int)c.count, 5);
    context_release(&c);
}

TEST(a_request_that_was_refused_is_halved)
{
    struct context c;

    context_init(&c);
    add_pairs(&c, 8);
    CHECK(context_fit(&c, 21, 21));
    CHECK_CONTEXT(&c, "u:aa a:bb/u:prompt");
    CHECK_INT(c.dropped, 6);
    CHECK(!context_fit(&c, 9, 9)); /* too short for a middle that could be left out */
    context_release(&c);
}

TEST(a_running_turn_makes_room_for_itself)
{
    struct context c;

    context_init(&c);
    add_pairs(&c, 4);
    for (int i = 0; i < 3; i++) {
        call(&c, "\"\"", "x");
        result(&c, "\"a result that is rather long, for a test\"", 'x');
    }
    context_finish(&c);
    CHECK(!context_fit(&c, SIZE_MAX, SIZE_MAX));
    /* A small window for earlier turns does not touch this one. */
    CHECK(context_fit(&c, 60, SIZE_MAX));
    CHECK_INT(c.dropped, 2);
    CHECK_INT(c.count, 9);
    CHECK(context_fit(&c, 60, 220));
    CHECK_CONTEXT(&c, "u:aa a:bb/u:prompt a*: t=x:[left out] a*: t=x:[left out] a*: t=x:a result "
                      "that is rather long, for a test");
    CHECK(context_fit(&c, 60, 100));
    CHECK_CONTEXT(&c, "u:aa a:bb/u:prompt a*: t=x:a result that is rather long, for a test");
    context_release(&c);
}

TEST(the_middle_of_a_long_answer_is_left_out)
{
    struct buf text = BUF_INIT(4096);
    struct context c;

    context_init(&c);
    buf_add_byte(&text, '"');
    for (int i = 0; i < 300; i++)
        buf_add_c(&text, "\u00e4");
    buf_add_byte(&text, '"');
    add(&c, "user", "\"a\"", "");
    add(&c, "assistant", buf_c(&text), "");
    context_begin_turn(&c);
    context_add_text(&c, ROLE_USER, STR("p"));
    CHECK(context_fit(&c, 203, 203));
    CHECK(c.at[1].n <= 203 && c.at[1].n > 150);
    CHECK_INT(utf8_valid((struct str){c.at[1].content, c.at[1].n}), c.at[1].n);
    CHECK(str_find((struct str){c.at[1].content, c.at[1].n}, STR("\n[left out]\n")) != NULL);
    CHECK_STR(c.at[2].content, "p");
    context_release(&c);
    buf_release(&text);
}

TEST(this_turn_is_always_whole)
{
    struct context c;

    context_init(&c);
    add(&c, "user", "\"a\"", "");
    context_begin_turn(&c);
    context_add_text(&c, ROLE_USER, STR("a long prompt"));
    call(&c, "\"\"", "x");
    result(&c, "\"r\"", 'x');
    context_cut(&c, 1, 1);
    context_finish(&c);
    CHECK_CONTEXT(&c, "/u:a\n\na long prompt a*: t=x:r");
    context_cut(&c, 0, 0);
    CHECK_CONTEXT(&c, "/u:a\n\na long prompt a*: t=x:r");
    context_release(&c);
}

TEST(tool_fields_weigh)
{
    struct context c;

    context_init(&c);
    call(&c, "\"abc\"", "x");
    result(&c, "\"abcd\"", 'x');
    CHECK_INT(context_weight(&c, 0, 1), 3 + strlen("[{\"id\":\"x\",\"name\":\"f\",\"args\":{}}]"));
    CHECK_INT(context_weight(&c, 1, 2), 4 + 1);
    context_release(&c);
}

/* ---- the shape ---- */

TEST(messages_get_the_shape_that_servers_take)
{
    static const struct {
        const char *lines, *prompt, *want;
    } rows[] = {
        /* Results follow their calls in order. One for which there is no call is dropped. */
        {"u:a|a*xyz:|u:b|t=z:3|t=x:1|t=x:again|t=q:whose?|t:no id", "p",
         "u:a a*: t=x:1 t=y:" NONE " t=z:3/u:b\n\np"},
        {"t=x:early|u:a|a*x:", "p", "u:a a*: t=x:" NONE "/u:p"},
        /* Some servers use the same ids in every response. Each call gets its own result. */
        {"a*x:1|a*x:2|t=x:two|a*xx:3|t=x:three|t=x:four", NULL,
         "a*:1 t=x:" NONE " a*:2 t=x:two a*:3 t=x:three t=x:four/"},
        /* Neighbours of the same role are merged. */
        {"u:a|u:b|a:c|a:d|a*x:e|t=x:f|a:g", "p", "u:a\n\nb a*:c\n\nd\n\ne t=x:f a:g/u:p"},
        {"u:a|a:b|u:c", "p", "u:a a:b/u:c\n\np"},
        /* Blank text is dropped, but not that of this turn. */
        {"u:a|a: \\n|u:|a*x:|t=x:|a:", " ", "u:a a*: t=x:/u: "},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct context c;

        begin_context(&c, rows[i].lines, rows[i].prompt);
        context_finish(&c);
        CHECK_CONTEXT(&c, rows[i].want);
        context_release(&c);
    }
}

/* A call that was cut has arguments that are not JSON. The model is told why there is no result. */
TEST(a_call_with_bad_arguments_is_completed)
{
    struct context c;

    context_init(&c);
    add(&c, "user", "\"a\"", "");
    add(&c, "assistant", "\"\"",
        ",\"tool_calls\":[{\"id\":\"x\",\"name\":\"f\",\"args\":\"{bad\"}]");
    context_begin_turn(&c);
    context_add_text(&c, ROLE_USER, STR("p"));
    context_finish(&c);
    CHECK_CONTEXT(&c, "u:a a*: t=x:" BAD "/u:p");
    context_release(&c);
}

TEST(without_a_turn_everything_is_earlier)
{
    struct context c;

    context_init(&c);
    add_lines(&c, "u:a|a:b");
    context_cut(&c, 2, CONTEXT_ALL);
    context_finish(&c);
    CHECK_CONTEXT(&c, "u:a a:b/");
    context_release(&c);
    context_cut(&c, 1, 1);
    context_finish(&c);
    CHECK_INT(c.count, 0);
    CHECK_INT(c.turn, 0);
    context_release(&c);
}

#define A_CALL ",\"tool_calls\":[{\"id\":\"x\",\"name\":\"f\",\"args\":{}}]"

/* chat stores a result for each call, or marks the answer as failed, unless it is killed. */
TEST(a_call_without_a_result_may_have_run)
{
    static const struct {
        const char *more, *want;
    } rows[] = {
        {A_CALL ",\"provider\":\"p\"", "unknown: chat was killed while it ran"},
        {A_CALL ",\"provider\":\"p\",\"finish_reason\":\"tool_calls\"",
         "unknown: chat was killed while it ran"},
        {A_CALL ",\"provider\":\"p\",\"finish_reason\":\"length\"", NONE},
        {A_CALL ",\"provider\":\"p\",\"finish_reason\":\"interrupted\"", NONE},
        {A_CALL ",\"provider\":\"p\",\"origin\":\"codex:x\"", NONE},
        {A_CALL ",\"provider\":\"p\",\"failed\":true", NONE},
        {A_CALL, NONE},
        {",\"tool_calls\":[{\"id\":\"x\",\"name\":\"f\",\"args\":\"{\"}],\"provider\":\"p\"", BAD},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf want = BUF_INIT(BUF_SMALL);
        struct context c;

        context_init(&c);
        add(&c, "user", "\"a\"", "");
        add(&c, "assistant", "\"\"", rows[i].more);
        context_finish(&c);
        buf_addf(&want, "u:a a*: t=x:%s/", rows[i].want);
        CHECK_CONTEXT(&c, buf_c(&want));
        CHECK(c.at[2].failed);
        buf_release(&want);
        context_release(&c);
    }
}

TEST(a_failed_result_is_marked)
{
    struct context c;

    context_init(&c);
    add(&c, "assistant", "\"\"", A_CALL);
    add(&c, "tool", "\"r\"", ",\"tool_call_id\":\"x\",\"failed\":true");
    add(&c, "assistant", "\"\"", A_CALL);
    add(&c, "tool", "\"s\"", ",\"tool_call_id\":\"x\",\"failed\":false");
    context_finish(&c);
    CHECK(c.at[1].failed);
    CHECK(!c.at[3].failed);
    context_release(&c);
}

#define THOUGHT ",\"thinking\":[ {\"type\":\"thinking\"}],\"provider\":\"p\""

TEST(thinking_travels_with_its_message)
{
    struct context c;

    context_init(&c);
    add(&c, "user", "\"a\"", THOUGHT);
    add(&c, "assistant", "\"b\"", THOUGHT);
    add(&c, "user", "\"c\"", "");
    add(&c, "assistant", "\"\"", A_CALL THOUGHT);
    result(&c, "\"r\"", 'x');
    add(&c, "assistant", "\"\"", A_CALL ",\"thinking\":[]");
    add(&c, "assistant", "\"\"", A_CALL ",\"thinking\":\"\",\"provider\":\"p\"");
    context_finish(&c);
    CHECK_CONTEXT(&c, "u:a a:b u:c a*: t=x:r a*: t=x:no result is known a*: "
                      "t=x:unknown: chat was killed while it ran/");
    for (size_t i = 0; i < c.count; i++) {
        CHECK_STR(c.at[i].thinking, i == 1 || i == 3 ? "[ {\"type\":\"thinking\"}]" : NULL);
        CHECK_STR(c.at[i].provider, i == 1 || i == 3 ? "p" : NULL);
    }
    CHECK_INT(context_weight(&c, 3, 4), strlen(c.at[3].tool_calls));
    context_release(&c);
    /* Texts that are merged lose it, because it belongs to one of them. */
    add(&c, "user", "\"a\"", "");
    add(&c, "assistant", "\"b\"", THOUGHT);
    add_lines(&c, "a:c|u:d");
    add(&c, "assistant", "\"e\"", THOUGHT);
    add(&c, "assistant", "\"f\"", A_CALL THOUGHT);
    context_finish(&c);
    CHECK(c.at[1].thinking == NULL);
    CHECK_STR(c.at[3].thinking, "[ {\"type\":\"thinking\"}]");
    context_release(&c);
}

TEST(a_loop_of_calls_ends_with_the_users_next_message)
{
    struct context c;

    context_init(&c);
    CHECK(context_in_loop(&c, 0));
    add(&c, "user", "\"a\"", "");
    call(&c, "\"\"", "x");
    result(&c, "\"r\"", 'x');
    CHECK(!context_in_loop(&c, 0));
    CHECK(context_in_loop(&c, 1));
    call(&c, "\"\"", "y");
    result(&c, "\"r\"", 'y');
    CHECK(context_in_loop(&c, 1));
    context_add_text(&c, ROLE_USER, STR("b"));
    CHECK(!context_in_loop(&c, 1));
    CHECK(!context_in_loop(&c, 3));
    context_release(&c);
}

/* ---- messages ---- */

/* Reads a text and checks the messages: `r:content` each, where r is the first letter of the role,
 * with `|` after each. The system prompt comes first as `s:`. */
static void text_check(struct str text, const char *want, size_t bad, int line)
{
    struct buf got = BUF_INIT(BUF_SMALL);
    struct context c;

    context_init(&c);
    test_check_int((long long)messages_add(&c, text), (long long)bad, "bad", __FILE__, line);
    if (c.system)
        buf_addf(&got, "s:%s|", c.system);
    for (size_t i = 0; i < c.count; i++) {
        buf_addf(&got, "%c:", role_name(c.at[i].role)[0]);
        buf_add(&got, c.at[i].content, c.at[i].n);
        if (c.at[i].tool_calls)
            buf_add_c(&got, c.at[i].tool_calls);
        if (c.at[i].tool_call_id)
            buf_addf(&got, "<%s>", c.at[i].tool_call_id);
        buf_add_byte(&got, '|');
    }
    test_check_str(buf_c(&got), want, "messages", __FILE__, line);
    buf_release(&got);
    context_release(&c);
}

#define READS(text, want, bad) text_check(STR(text), want, bad, __LINE__)

#define U(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define A(text) "{\"role\":\"assistant\",\"content\":\"" text "\"}"

TEST(an_array)
{
    READS("[" U("a") "," A("b") "]", "u:a|a:b|", 0);
    READS("\xef\xbb\xbf \n[\n  " U("a") ",\n  " A("b") "\n]\n", "u:a|a:b|", 0);
    READS("[{\"content\":\"p\",\"role\":\"system\",\"x\":[1]}," U("a") "]", "s:p|u:a|", 0);
}

TEST(lines)
{
    READS(U("a") "\n" A("b") "\n", "u:a|a:b|", 0);
    READS(U("a") "\r\n\r\n" A("b"), "u:a|a:b|", 0);
    READS("{\"id\":\"1\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\",\"content\":"
          "\"a\","
          "\"model\":1}\n",
          "u:a|", 0);
    READS("{\n\"role\": \"user\",\n\"content\": \"a\"\n}\n", "u:a|", 0);
}

TEST(text_of_any_kind)
{
    READS(U("\\u00e4\\n\\ud83d\\ude00 \\ud800"), "u:\xc3\xa4\n\xf0\x9f\x98\x80 \xef\xbf\xbd|", 0);
    READS(U("a\xff"), "u:a\xef\xbf\xbd|", 0);
}

TEST(what_is_no_message_is_counted)
{
    READS("[1,null,\"x\",[],{}," U("a") ",{\"role\":\"user\"}]", "u:a|", 6);
    READS("[{\"role\":\"narrator\",\"content\":\"a\"},{\"role\":7,\"content\":\"a\"}]", "", 2);
    READS("[{\"role\":\"user\",\"content\":[\"a\"]},{\"role\":\"user\",\"content\":null}]", "", 2);
    READS("[{\"role\":\"assistant\",\"content\":null}]", "", 1);
    READS("not JSON\n" U("a") "\n{\"role\":\"us\n" U("b") U("c") "\n[" U("d") "]\n", "u:a|u:d|", 3);
    READS("[" U("a") "," A("b") "\n", "", 1);
    READS("7", "", 1);
    READS("{}", "", 1);
}

TEST(the_last_of_a_repeated_key_counts)
{
    READS("{\"role\":\"x\",\"role\":\"user\",\"content\":\"a\",\"content\":\"b\"}", "u:b|", 0);
    READS("{\"role\":\"user\",\"content\":\"a\",\"content\":1}", "", 1);
    READS("{\"ro\\u006ce\":\"user\",\"content\":\"a\",\"CONTENT\":1}", "u:a|", 0);
}
