#include "chathist/chat/turn.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "chathist/history/thread.h"
#include "llm/provider_wire.h"
#include "scratch.h"

/* Stores the prompt without a request. */
static int store_prompt(struct turn *t, struct err *e)
{
    turn_store_prompt_begin(t);
    return turn_store_prompt_end(t, e);
}

static struct history h;

static void enter(void)
{
    struct locate_from from = {.explicit_file = "h.jsonl", .cwd = scratch_dir};

    scratch_enter();
    CHECK_INT(locate(&h, &from, NULL), 0);
    h.sync = false;
}

static void leave(void)
{
    history_release(&h);
    scratch_leave();
}

static struct turn make(const char *prompt)
{
    return (struct turn){
        .history = &h,
        .provider = &provider_echo,
        .ask = {.model = "echo", .stream = true, .limits = {.cancel_fd = -1}},
        .session = STR("s1"),
        .prompt = str_of(prompt),
        .limits = CONTEXT_LIMITS_NONE,
    };
}

/* A whole turn; gives what turn_ask gave. */
static int take_turn(struct turn *t, struct err *e)
{
    int result;

    CHECK_INT(turn_prepare(t, e), 0);
    CHECK_INT(store_prompt(t, e), 0);
    result = turn_ask(t, NULL, e);
    CHECK_INT(turn_store_answer(t, NULL), 0);
    return result;
}

static void check_line(const struct message *m, enum role role, const char *content)
{
    struct buf scratch = BUF_INIT(BUF_LINE), got = BUF_INIT(BUF_LINE);

    CHECK_INT(m->role, role);
    buf_add_str(&got, message_content(m, &scratch));
    CHECK_STR(buf_c(&got), content);
    buf_release(&scratch);
    buf_release(&got);
}

TEST(a_turn_is_two_lines_that_belong_together)
{
    struct turn t = make("hello");
    struct thread thread;
    struct buf reply_to = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    enter();
    CHECK_INT(take_turn(&t, &e), 0);
    CHECK(t.is_new);
    CHECK_INT(thread_find(&thread, &h, STR("s1"), false, NULL), 0);
    if (CHECK_INT(thread.count, 2)) {
        check_line(&thread.at[0], ROLE_USER, "hello");
        check_line(&thread.at[1], ROLE_ASSISTANT, "hello\n[1 message]");
        CHECK(str_eq(message_text(&thread.at[1], FIELD_REPLY_TO, &reply_to), thread.at[0].id));
        CHECK(str_eq(thread.at[0].id, buf_str(&t.prompt_id)));
        CHECK(str_eq(thread.at[1].id, buf_str(&t.answer_id)));
        CHECK(str_eq(thread.at[1].field[FIELD_FINISH_REASON], STR("\"stop\"")));
        CHECK(str_eq(thread.at[1].field[FIELD_MODEL], STR("\"echo\"")));
        CHECK(str_eq(thread.at[1].field[FIELD_PROVIDER], STR("\"echo\"")));
    }
    thread_release(&thread);
    turn_release(&t);
    buf_release(&reply_to);
    leave();
}

TEST(the_next_turn_brings_the_earlier_messages)
{
    struct turn first = make("one"), second = make("two");
    struct err e = ERR_INIT;

    enter();
    CHECK_INT(take_turn(&first, &e), 0);
    CHECK_INT(take_turn(&second, &e), 0);
    CHECK(!second.is_new);
    CHECK_STR(buf_c(&second.answer.text), "two\n[3 messages]");
    turn_release(&first);
    turn_release(&second);
    leave();
}

TEST(a_turn_in_memory_leaves_the_history_alone)
{
    struct buf memory = BUF_INIT(BUF_LINE), last = BUF_INIT(BUF_LINE);
    struct turn first = make("one"), second = make("two"), again = make("");
    struct err e = ERR_INIT;

    enter();
    first.memory = second.memory = again.memory = &memory;
    again.kind = TURN_AGAIN;
    CHECK_INT(take_turn(&first, &e), 0);
    CHECK_INT(take_turn(&second, &e), 0);
    CHECK_STR(buf_c(&second.answer.text), "two\n[3 messages]");
    CHECK_INT(take_turn(&again, &e), 0);
    CHECK_STR(buf_c(&again.answer.text), "two\n[3 messages]");
    CHECK_INT(turn_last_prompt(&h, &memory, STR("s1"), &last, &e), 1);
    CHECK_STR(buf_c(&last), "two");
    CHECK(access(h.path, F_OK) < 0);
    turn_release(&first);
    turn_release(&second);
    turn_release(&again);
    buf_release(&memory);
    buf_release(&last);
    leave();
}

TEST(a_system_prompt_is_stored_when_it_is_new)
{
    static const int lines[] = {3, 5, 8};
    static const char *const systems[] = {"be brief", "be brief", "be long"};
    struct err e = ERR_INIT;

    enter();
    for (size_t i = 0; i < 3; i++) {
        struct turn t = make("x");
        struct thread thread;

        t.system = str_of(systems[i]);
        CHECK_INT(take_turn(&t, &e), 0);
        CHECK_STR(t.context.system, systems[i]);
        CHECK_INT(thread_find(&thread, &h, STR("s1"), true, NULL), 0);
        CHECK_INT(thread.count, lines[i]);
        thread_release(&thread);
        turn_release(&t);
    }
    leave();
}

TEST(a_failure_before_any_text_stores_a_mark)
{
    struct ask_option status = {"status", STR("500"), ASK_FLAG};
    struct turn t = make("x");
    struct thread thread;
    struct err e = ERR_INIT;

    enter();
    t.ask.options = &status;
    t.ask.options_count = 1;
    CHECK_INT(take_turn(&t, &e), -1);
    CHECK_INT(e.kind, ERR_BUSY);
    CHECK_INT(thread_find(&thread, &h, STR("s1"), true, NULL), 0);
    if (CHECK_INT(thread.count, 2)) {
        check_line(&thread.at[1], ROLE_ASSISTANT, "");
        CHECK(str_eq(thread.at[1].field[FIELD_FINISH_REASON], STR("\"error\"")));
        CHECK(str_eq(thread.at[1].id, buf_str(&t.answer_id)));
    }
    thread_release(&thread);
    turn_release(&t);
    err_release(&e);
    leave();
}

TEST(a_broken_answer_is_kept)
{
    struct ask_option cut = {"cut", STR("3"), ASK_FLAG};
    struct turn t = make("abcdef");
    struct thread thread;
    struct err e = ERR_INIT;

    enter();
    t.ask.options = &cut;
    t.ask.options_count = 1;
    CHECK_INT(take_turn(&t, &e), -1);
    CHECK_INT(e.kind, ERR_INCOMPLETE);
    CHECK_INT(thread_find(&thread, &h, STR("s1"), true, NULL), 0);
    if (CHECK_INT(thread.count, 2)) {
        check_line(&thread.at[1], ROLE_ASSISTANT, "abc");
        CHECK(str_eq(thread.at[1].field[FIELD_FINISH_REASON], STR("\"error\"")));
    }
    thread_release(&thread);
    turn_release(&t);
    err_release(&e);
    leave();
}

TEST(a_prompt_that_could_not_be_stored_is_stored_with_the_answer)
{
    struct turn t = make("x");
    struct thread thread;
    struct err e = ERR_INIT;

    enter();
    CHECK_INT(mkdir("h.jsonl", 0700), 0);
    rmdir("h.jsonl");
    CHECK_INT(turn_prepare(&t, &e), 0);
    CHECK_INT(mkdir("h.jsonl", 0700), 0);
    CHECK_INT(store_prompt(&t, &e), -1);
    CHECK_INT(e.kind, ERR_UNSAVED);
    CHECK(!t.prompt_stored);
    rmdir("h.jsonl");
    CHECK_INT(turn_ask(&t, NULL, &e), 0);
    CHECK_INT(turn_store_answer(&t, NULL), 0);
    CHECK_INT(thread_find(&thread, &h, STR("s1"), true, NULL), 0);
    if (CHECK_INT(thread.count, 2)) {
        check_line(&thread.at[0], ROLE_USER, "x");
        check_line(&thread.at[1], ROLE_ASSISTANT, "x\n[1 message]");
    }
    thread_release(&thread);
    turn_release(&t);
    err_release(&e);
    leave();
}

TEST(only_the_newest_messages_are_sent)
{
    struct err e = ERR_INIT;

    enter();
    for (int i = 0; i < 4; i++) {
        struct turn t = make("x");

        t.limits.messages = 3;
        CHECK_INT(take_turn(&t, &e), 0);
        if (i == 3) {
            CHECK_INT(t.context.dropped, 4); /* the third newest is an answer */
            CHECK_INT(t.context.count, 3);
        }
        turn_release(&t);
    }
    leave();
}

/* The `replaces` of the newest line. */
static void check_replaces(const char *want)
{
    struct thread thread;

    CHECK_INT(thread_find(&thread, &h, STR("s1"), true, NULL), 0);
    if (CHECK(thread.count > 0)) {
        struct str got = thread.at[thread.count - 1].field[FIELD_REPLACES];

        CHECK_MEM(got.p, got.n, want, want ? strlen(want) : 0);
    }
    thread_release(&thread);
}

TEST(a_turn_again_replaces_the_answer_when_it_is_finished)
{
    struct turn first = make("x"), failed = make(""), again = make("");
    struct ask_option cut = {"cut", STR("1"), ASK_FLAG};
    struct buf want = BUF_INIT(BUF_SMALL), last = BUF_INIT(BUF_SMALL);
    struct thread thread;
    struct err e = ERR_INIT;

    enter();
    CHECK_INT(turn_last_prompt(&h, NULL, STR("s1"), &last, &e), 0);
    CHECK_INT(take_turn(&first, &e), 0);
    failed.kind = again.kind = TURN_AGAIN;
    failed.ask.options = &cut;
    failed.ask.options_count = 1;
    CHECK_INT(take_turn(&failed, &e), -1);
    CHECK(!failed.finished);
    check_replaces(NULL);
    CHECK_INT(take_turn(&again, NULL), 0);
    CHECK(again.finished);
    CHECK_INT(again.context.count, 1);
    CHECK(str_eq(buf_str(&again.prompt_id), buf_str(&first.prompt_id)));
    buf_addf(&want, "[\"%s\",\"%s\"]", buf_c(&first.answer_id), buf_c(&failed.answer_id));
    check_replaces(buf_c(&want));
    CHECK_INT(thread_find(&thread, &h, STR("s1"), false, NULL), 0);
    if (CHECK_INT(thread.count, 2)) {
        check_line(&thread.at[0], ROLE_USER, "x");
        check_line(&thread.at[1], ROLE_ASSISTANT, "x\n[1 message]");
    }
    thread_release(&thread);
    CHECK_INT(turn_last_prompt(&h, NULL, STR("s1"), &last, &e), 1);
    CHECK_STR(buf_c(&last), "x");
    turn_release(&first);
    turn_release(&failed);
    turn_release(&again);
    err_release(&e);
    buf_release(&want);
    buf_release(&last);
    leave();
}

TEST(an_edit_replaces_the_prompt_and_its_answer)
{
    struct turn first = make("x"), edit = make("y");
    struct buf want = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    enter();
    CHECK_INT(take_turn(&first, &e), 0);
    edit.kind = TURN_EDIT;
    CHECK_INT(turn_prepare(&edit, &e), 0);
    CHECK_INT(edit.context.count, 1);
    CHECK_INT(store_prompt(&edit, &e), 0);
    buf_addf(&want, "[\"%s\",\"%s\"]", buf_c(&first.prompt_id), buf_c(&first.answer_id));
    check_replaces(buf_c(&want));
    turn_release(&first);
    turn_release(&edit);
    buf_release(&want);
    leave();
}

TEST(there_is_no_turn_to_take_the_place_of)
{
    for (int kind = TURN_AGAIN; kind <= TURN_EDIT; kind++) {
        struct turn t = make("x");
        struct err e = ERR_INIT;

        enter();
        t.kind = (enum turn_kind)kind;
        CHECK_INT(turn_prepare(&t, &e), -1);
        CHECK_INT(e.kind, ERR_USAGE);
        CHECK_STR(err_text(&e), "session 's1' has no prompt yet");
        turn_release(&t);
        err_release(&e);
        leave();
    }
}
