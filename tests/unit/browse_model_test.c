#include "browse/model.h"

#include <stdint.h>
#include <stdlib.h>

#include "test.h"
#include "browse/view.h"

/* ---- what is handed in */

static void add_sessions(struct browse_sessions *s, const char *letters)
{
    for (const char *letter = letters; *letter; letter++) {
        char id[] = {'s', *letter, '\0'};
        char used[] = "2024-06-27T10:00:00+00:00";

        browse_sessions_add(s, 0,
                            &(struct session){.id = id,
                                              .id_len = 2,
                                              .preview = id,
                                              .preview_len = 2,
                                              .last_used = used,
                                              .last_used_len = 25,
                                              .count = 7,
                                              .last_line = 60,
                                              .end = 100});
    }
}

/* Sessions s0, s1, … as the letters say, in that order; of one history. */
static void take_sessions(struct browse *b, const char *letters, bool partial)
{
    static unsigned number;
    struct browse_sessions s = {
        .total = strlen(letters), .partial = partial, .number = partial ? 0 : ++number};

    add_sessions(&s, letters);
    browse_take_sessions(b, &s);
}

static void add_message(struct thread *t, size_t i, const char *role, const char *content,
                        const char *more)
{
    struct buf line = BUF_INIT(BUF_LINE);

    buf_addf(&line,
             "{\"id\":\"m%zu\",\"session_id\":\"s\",\"timestamp\":\"2024-06-27T10:00:00+00:00\","
             "\"role\":\"%s\",\"content\":\"%s\"%s}",
             i, role, content, more);
    thread_add(t, buf_str(&line));
    buf_release(&line);
}

/* With its parts. */
static void hand_in(struct browse *b, unsigned number, struct thread *t)
{
    struct browse_parts parts;

    browse_parts_make(&parts, t);
    browse_take_thread(b, number, t, &parts, false);
}

/* Messages m0, m1, …: a header, three lines and a blank one each, user and assistant by turns. */
static void take_messages(struct browse *b, size_t count)
{
    struct thread t = {0};

    for (size_t i = 0; i < count; i++)
        add_message(&t, i, i % 2 ? "assistant" : "user", "one\\ntwo words\\nthree", "");
    hand_in(b, b->thread_number, &t);
}

/* So many hits for the search that runs: hit i is message m<from + i> of session s<i / 3>. */
static void take_hits(struct browse *b, unsigned number, size_t from, size_t count, bool done)
{
    struct browse_hits hits = {0};

    for (size_t i = from; i < from + count; i++) {
        char line[300];
        struct message m = MESSAGE_INIT;
        struct hit hit = {.message = &m, .content = STR("one two words three"), .at = 4, .len = 3};

        snprintf(line, sizeof line,
                 "{\"id\":\"m%zu\",\"session_id\":\"s%zu\",\"timestamp\":\"t\",\"role\":\"user\","
                 "\"content\":\"x\"}",
                 i, i / 3);
        CHECK(message_parse(&m, str_of(line)));
        browse_hits_add(&hits, 0, &hit);
        message_release(&m);
    }
    browse_take_hits(b, number, &hits, done);
}

static void begin(struct browse *b)
{
    browse_init(b, 1);
    browse_resize(b, 13, 100); /* ten lines in each panel */
}

static void press(struct browse *b, const char *keys)
{
    for (; *keys; keys++)
        CHECK_INT(browse_press(b, *keys, 1000), BROWSE_NOTHING);
}

/* The panel of messages: the text of a line, NULL below the last. Borrowed until the next call. */
static const char *seen(struct browse *b, size_t row)
{
    static char text[200];
    const struct browse_lines *l;
    size_t line, end;
    bool current;

    if (!browse_pane_line(&b->pane, row, &l, &line, &current))
        return NULL;
    end = line + 1 < l->count ? l->at[line + 1].at : l->text.len;
    snprintf(text, sizeof text, "%.*s", (int)(end - l->at[line].at),
             buf_c(&l->text) + l->at[line].at);
    return text;
}

/* ---- the list */

TEST(it_begins_with_the_newest_session)
{
    struct browse b;
    size_t history;
    struct str id;

    begin(&b);
    CHECK(b.wants.sessions);
    CHECK_INT(b.focus, BROWSE_BOX);
    CHECK(!browse_chosen(&b, &history, &id));
    take_sessions(&b, "abc", false);
    CHECK(browse_chosen(&b, &history, &id) && str_eq_c(id, "sa"));
    CHECK(b.wants.thread);
    CHECK_STR(buf_c(&b.target.id), "sa");
    CHECK_INT(b.target.last_line, 60);
    take_messages(&b, 2);
    CHECK_STR(seen(&b, 1), "one");
    CHECK_STR(buf_c(&b.shown.id), "sa");
    browse_release(&b);
}

TEST(keys_move_through_the_list)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "abcdefghijklmnopqrstuvwxyz", false);
    CHECK_INT(browse_press(&b, BROWSE_KEY_DOWN, 0), BROWSE_NOTHING);
    CHECK_INT(b.session_list.at, 1);
    b.focus = BROWSE_LIST;
    press(&b, "jjk");
    CHECK_INT(b.session_list.at, 2);
    CHECK_INT(browse_press(&b, BROWSE_KEY_PAGE_DOWN, 0), BROWSE_NOTHING);
    CHECK_INT(b.session_list.at, 11);
    CHECK_INT(b.session_list.top, 2);
    press(&b, "G");
    CHECK_INT(b.session_list.at, 25);
    CHECK_INT(b.session_list.top, 16);
    press(&b, "j");
    CHECK_INT(b.session_list.at, 25);
    press(&b, "g");
    CHECK_INT(b.session_list.at, 0);
    CHECK_INT(browse_press(&b, BROWSE_CTRL('d'), 0), BROWSE_NOTHING);
    CHECK_INT(b.session_list.at, 5);
    browse_release(&b);
}

TEST(messages_that_are_not_asked_for_any_more_are_dropped)
{
    struct browse b;
    struct thread t = {0};
    unsigned first;

    begin(&b);
    take_sessions(&b, "abc", false);
    first = b.thread_number;
    b.focus = BROWSE_LIST;
    press(&b, "j");
    CHECK(b.thread_number != first);
    add_message(&t, 0, "user", "of the first", "");
    hand_in(&b, first, &t);
    CHECK(seen(&b, 0) == NULL);
    take_messages(&b, 1);
    CHECK_STR(buf_c(&b.shown.id), "sb");
    browse_release(&b);
}

TEST(a_list_that_grows_keeps_its_place)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "abcdefghijklmnopqrst", false);
    b.focus = BROWSE_LIST;
    for (int i = 0; i < 12; i++)
        press(&b, "j");
    press(&b, "kk");
    CHECK_INT(b.session_list.at, 10);
    CHECK_INT(b.session_list.top, 3);
    take_messages(&b, 1);
    b.wants.thread = false;
    take_sessions(&b, "zyabcdefghijklmnopqrst", false);
    CHECK_INT(b.session_list.at, 12);
    CHECK_INT(b.session_list.top, 5);
    /* It is the same session, as it was. */
    CHECK(!b.wants.thread);
    /* At the top new sessions are seen. */
    press(&b, "g");
    take_sessions(&b, "xzyabcdefghijklmnopqrst", false);
    CHECK_INT(b.session_list.at, 1);
    CHECK_INT(b.session_list.top, 0);
    /* One that is gone leaves its place to another. */
    take_sessions(&b, "xyabc", false);
    CHECK_INT(b.session_list.at, 1);
    take_sessions(&b, "", false);
    CHECK_INT(b.session_list.at, 0);
    CHECK(seen(&b, 0) == NULL);
    browse_release(&b);
}

/* ---- messages */

TEST(messages_scroll_to_their_ends_and_not_beyond)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "a", false);
    take_messages(&b, 6); /* 30 lines */
    b.focus = BROWSE_TEXT;
    CHECK_INT(b.pane.at, 0);
    press(&b, "jj");
    CHECK_STR(seen(&b, 0), "two words");
    press(&b, "kkkkk");
    CHECK(strncmp(seen(&b, 0), "user", 4) == 0);
    press(&b, "G");
    CHECK_STR(seen(&b, 9), "");
    CHECK_STR(seen(&b, 8), "three");
    CHECK_INT(b.pane.at, 5);
    press(&b, "jjjj");
    CHECK_STR(seen(&b, 8), "three");
    CHECK_INT(browse_press(&b, BROWSE_KEY_PAGE_UP, 0), BROWSE_NOTHING);
    CHECK_INT(b.pane.top, 2);
    CHECK_INT(b.pane.top_line, 1);
    press(&b, "g");
    CHECK_INT(b.pane.top, 0);
    browse_release(&b);
}

TEST(the_message_that_is_acted_on_is_seen)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "a", false);
    take_messages(&b, 6);
    b.focus = BROWSE_TEXT;
    press(&b, "J");
    CHECK_INT(b.pane.at, 1);
    CHECK_INT(b.pane.top, 0);
    press(&b, "JJ");
    CHECK_INT(b.pane.at, 3);
    CHECK_INT(b.pane.top, 2);
    for (int i = 0; i < 15; i++)
        press(&b, "k");
    CHECK_INT(b.pane.at, 1);
    press(&b, "KK");
    CHECK_INT(b.pane.at, 0);
    CHECK(str_eq_c(browse_message(&b)->id, "m0"));
    browse_release(&b);
}

TEST(a_session_that_grows_keeps_its_place)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "a", false);
    take_messages(&b, 6);
    b.focus = BROWSE_TEXT;
    press(&b, "jjjjjjj");
    CHECK_INT(b.pane.top, 1);
    CHECK_INT(b.pane.top_line, 2);
    b.thread_number++;
    take_messages(&b, 9);
    CHECK_INT(b.pane.top, 1);
    CHECK_INT(b.pane.top_line, 2);
    CHECK_INT(b.pane.thread.count, 9);
    browse_release(&b);
}

TEST(tools_are_folded_to_a_line)
{
    struct browse b;
    struct thread t = {0};

    begin(&b);
    take_sessions(&b, "a", false);
    add_message(&t, 0, "assistant", "",
                ",\"tool_calls\":[{\"id\":\"c\",\"name\":\"read\",\"args\":{\"path\":\"a\\nb\"}}]");
    add_message(&t, 1, "tool", "line one\\nline two", ",\"tool_call_id\":\"c\"");
    hand_in(&b, b.thread_number, &t);
    b.focus = BROWSE_TEXT;
    CHECK_STR(seen(&b, 1), "▸ read {\"path\":\"a\\nb\"}");
    CHECK_STR(seen(&b, 4), "▸ result line one line two");
    press(&b, "z");
    CHECK_STR(seen(&b, 1), "▾ read");
    CHECK_STR(seen(&b, 2), "path: a");
    CHECK_STR(seen(&b, 3), "b");
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_NOTHING);
    CHECK_STR(seen(&b, 1), "▸ read {\"path\":\"a\\nb\"}");
    press(&b, "Z");
    CHECK_STR(seen(&b, 1), "▾ read");
    CHECK_STR(seen(&b, 6), "▾ result");
    CHECK_STR(seen(&b, 7), "line one");
    browse_release(&b);
}

TEST(a_role_leaves_the_others_out)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "a", false);
    take_messages(&b, 6);
    b.focus = BROWSE_TEXT;
    press(&b, "r");
    CHECK_STR(b.role, "user");
    CHECK(strncmp(seen(&b, 5), "user", 4) == 0);
    press(&b, "J");
    CHECK_INT(b.pane.at, 2);
    press(&b, "r");
    CHECK_STR(b.role, "assistant");
    CHECK(strncmp(seen(&b, 0), "assistant", 9) == 0);
    CHECK_INT(b.pane.at % 2, 1);
    press(&b, "r");
    CHECK_STR(b.role, "system");
    CHECK(seen(&b, 0) == NULL);
    CHECK(browse_message(&b) == NULL);
    press(&b, "JKjkgGnz");
    press(&b, "rr");
    CHECK(b.role == NULL);
    CHECK(browse_message(&b) != NULL);
    browse_release(&b);
}

TEST(another_width_keeps_the_text_at_the_top)
{
    struct browse b;
    struct thread t = {0};
    struct buf long_text = BUF_INIT(BUF_SMALL);

    begin(&b);
    take_sessions(&b, "a", false);
    for (int i = 0; i < 300; i++)
        buf_addf(&long_text, "%d ", i);
    add_message(&t, 0, "user", buf_c(&long_text), "");
    hand_in(&b, b.thread_number, &t);
    b.focus = BROWSE_TEXT;
    press(&b, "jjjjjjjjjj");
    {
        int top = atoi(seen(&b, 0)), then;

        CHECK(top > 50);
        browse_resize(&b, 10, 40);
        then = atoi(seen(&b, 0));
        CHECK(then <= top && then > top - 20);
        browse_resize(&b, 60, 400);
        CHECK(seen(&b, 0) != NULL);
    }
    buf_release(&long_text);
    browse_release(&b);
}

/* ---- searching */

TEST(a_pause_in_typing_starts_one_search)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "ab", false);
    browse_press(&b, 't', 1000);
    browse_press(&b, 'w', 1030);
    browse_tick(&b, 1070);
    CHECK(!b.wants.search);
    browse_tick(&b, 1090);
    CHECK(b.wants.search);
    CHECK_STR(buf_c(&b.searched), "tw");
    CHECK_INT(b.search_due, 0);
    b.wants.search = false;
    browse_tick(&b, 5000);
    CHECK(!b.wants.search);
    browse_release(&b);
}

static void search(struct browse *b, const char *text)
{
    b->focus = BROWSE_BOX;
    for (; *text; text++)
        browse_press(b, *text, 0);
    browse_tick(b, 1000);
}

TEST(hits_of_an_older_search_are_dropped)
{
    struct browse b;
    unsigned older;

    begin(&b);
    take_sessions(&b, "01", false);
    search(&b, "t");
    older = b.search_number;
    search(&b, "wo");
    take_hits(&b, older, 0, 5, true);
    CHECK_INT(browse_list_count(&b), 2);
    CHECK(!b.searching);
    take_hits(&b, b.search_number, 0, 3, false);
    CHECK(b.searching);
    CHECK_INT(browse_list_count(&b), 3);
    take_hits(&b, older, 0, 5, true);
    CHECK_INT(browse_list_count(&b), 3);
    take_hits(&b, b.search_number, 3, 2, true);
    CHECK_INT(browse_list_count(&b), 5);
    CHECK(b.hits_done);
    browse_release(&b);
}

TEST(a_hit_shows_its_message)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01", false);
    take_messages(&b, 6);
    search(&b, "two");
    take_hits(&b, b.search_number, 0, 6, true);
    CHECK_STR(buf_c(&b.target.id), "s0");
    b.focus = BROWSE_LIST;
    press(&b, "jj");
    CHECK_INT(b.pane.at, 2);
    CHECK(b.pane.has_hit);
    CHECK_INT(b.pane.hit, 2);
    press(&b, "j");
    CHECK_STR(buf_c(&b.target.id), "s1");
    take_messages(&b, 6);
    CHECK_INT(b.pane.hit, 3);
    CHECK_INT(b.pane.at, 3);
    /* From hit to hit, round the end. */
    press(&b, "nn");
    CHECK_INT(b.pane.hit, 5);
    press(&b, "n");
    CHECK_INT(b.pane.hit, 0);
    press(&b, "N");
    CHECK_INT(b.pane.hit, 5);
    browse_release(&b);
}

TEST(another_size_keeps_the_message_of_the_hit)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "0", false);
    take_messages(&b, 6);
    search(&b, "two");
    take_hits(&b, b.search_number, 0, 3, true);
    take_messages(&b, 6);
    b.focus = BROWSE_LIST;
    press(&b, "j");
    CHECK_INT(b.pane.at, 1);
    browse_resize(&b, 6, 100);
    CHECK_INT(b.pane.at, 1);
    browse_resize(&b, 7, 40);
    CHECK_INT(b.pane.at, 1);
    browse_resize(&b, 13, 100);
    CHECK_INT(b.pane.at, 1);
    CHECK_INT(b.pane.hit, 1);
    browse_release(&b);
}

TEST(a_hit_that_was_replaced_is_asked_for_among_every_line)
{
    struct browse_parts parts;
    struct thread t = {0};
    struct browse b;

    begin(&b);
    take_sessions(&b, "0", false);
    take_messages(&b, 2);
    search(&b, "two");
    take_hits(&b, b.search_number, 0, 3, true);
    CHECK_STR(buf_c(&b.target.id), "s0");
    take_messages(&b, 2);
    b.wants.thread = false;
    b.focus = BROWSE_LIST;
    press(&b, "j");
    CHECK(!b.wants.thread);
    press(&b, "j");
    CHECK(b.wants.thread);
    CHECK_STR(buf_c(&b.target.hit), "m2");
    for (size_t i = 0; i < 4; i++)
        add_message(&t, i, "user", "one two", "");
    browse_parts_make(&parts, &t);
    browse_take_thread(&b, b.thread_number, &t, &parts, true);
    CHECK(b.every);
    CHECK_INT(b.pane.at, 2);
    CHECK_INT(b.pane.hit, 2);
    /* Another one may be of the thread, and no hit is. */
    b.wants.thread = false;
    press(&b, "k");
    CHECK(b.wants.thread);
    CHECK_STR(buf_c(&b.target.hit), "m1");
    CHECK_INT(b.pane.at, 1);
    take_messages(&b, 2);
    CHECK(!b.every);
    CHECK_INT(b.pane.at, 1);
    /* One that is nowhere is asked for once. */
    press(&b, "j");
    take_messages(&b, 2);
    b.wants.thread = false;
    browse_choose(&b, 2);
    CHECK(!b.wants.thread);
    /* What was changed is read again, of that history alone. */
    browse_reread(&b, 1);
    CHECK(!b.wants.thread);
    browse_reread(&b, 0);
    CHECK(b.wants.thread);
    browse_release(&b);
}

TEST(an_empty_search_shows_the_sessions_again)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01", false);
    browse_press(&b, BROWSE_KEY_DOWN, 0);
    search(&b, "t");
    take_hits(&b, b.search_number, 0, 6, true);
    browse_press(&b, BROWSE_KEY_BACKSPACE, 0);
    browse_tick(&b, 1000);
    CHECK(!b.searching);
    CHECK(b.wants.search); /* the one that runs is ended */
    CHECK_INT(browse_list_count(&b), 2);
    CHECK_INT(b.session_list.at, 1);
    CHECK_STR(buf_c(&b.target.id), "s1");
    CHECK(!b.pane.has_hit);
    browse_release(&b);
}

TEST(more_hits_are_asked_for_near_the_end)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01", false);
    search(&b, "t");
    take_hits(&b, b.search_number, 0, 100, false);
    b.wants.more = false;
    b.focus = BROWSE_LIST;
    press(&b, "j");
    CHECK(!b.wants.more);
    press(&b, "G");
    CHECK(b.wants.more);
    browse_release(&b);
}

TEST(the_same_search_again_keeps_the_place)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01", false);
    search(&b, "t");
    take_hits(&b, b.search_number, 10, 30, true);
    b.focus = BROWSE_LIST;
    for (int i = 0; i < 15; i++)
        press(&b, "j");
    CHECK_INT(b.hit_list.at, 15);
    CHECK_INT(b.hit_list.top, 6);
    browse_search(&b, true);
    /* Until there are as many, the old ones are shown. */
    take_hits(&b, b.search_number, 8, 10, false);
    CHECK_INT(browse_list_count(&b), 30);
    CHECK(str_eq_c(b.hits.at[0].message, "m10"));
    take_hits(&b, b.search_number, 18, 22, true);
    CHECK_INT(browse_list_count(&b), 32);
    CHECK_INT(b.hit_list.at, 17);
    CHECK_INT(b.hit_list.top, 8);
    browse_release(&b);
}

TEST(many_new_hits_at_once_keep_the_place)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01", false);
    search(&b, "t");
    take_hits(&b, b.search_number, 500, 10, true);
    b.focus = BROWSE_LIST;
    press(&b, "jj");
    browse_search(&b, true);
    take_hits(&b, b.search_number, 400, 100, false);
    CHECK_INT(browse_list_count(&b), 10);
    CHECK(b.wants.more);
    take_hits(&b, b.search_number, 500, 10, true);
    CHECK_INT(browse_list_count(&b), 110);
    CHECK_INT(b.hit_list.at, 102);
    CHECK_INT(b.hit_list.top, 100);
    /* One that is gone is not waited for. */
    browse_search(&b, true);
    take_hits(&b, b.search_number, 1000, 10000, false);
    CHECK_INT(browse_list_count(&b), 110);
    take_hits(&b, b.search_number, 11000, 110, false);
    CHECK_INT(browse_list_count(&b), 10110);
    CHECK_INT(b.hit_list.at, 102);
    browse_release(&b);
}

TEST(a_search_without_a_hit_is_told)
{
    struct browse b;
    struct buf text = BUF_INIT(BUF_SMALL);

    begin(&b);
    take_sessions(&b, "01", false);
    take_messages(&b, 3);
    search(&b, "nowhere");
    take_hits(&b, b.search_number, 0, 0, true);
    browse_title_list(&text, &b);
    CHECK_STR(buf_c(&text), " no hit ");
    CHECK(seen(&b, 0) == NULL);
    b.focus = BROWSE_TEXT;
    press(&b, "nNjkJKgGzZ");
    buf_release(&text);
    browse_release(&b);
}

/* ---- what is left to the caller */

TEST(commands_are_given_back)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "ab", false);
    take_messages(&b, 3);
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_NOTHING);
    CHECK_INT(b.focus, BROWSE_LIST);
    CHECK_INT(browse_press(&b, 'L', 0), BROWSE_LOAD);
    CHECK_INT(browse_press(&b, 'p', 0), BROWSE_PROMPT);
    CHECK_INT(browse_press(&b, 'y', 0), BROWSE_COPY);
    CHECK_INT(browse_press(&b, 'v', 0), BROWSE_PAGER);
    CHECK_INT(browse_press(&b, 'e', 0), BROWSE_EDITOR);
    CHECK_INT(browse_press(&b, 'f', 0), BROWSE_FORK);
    CHECK_INT(browse_press(&b, BROWSE_KEY_ESCAPE, 0), BROWSE_CLOSE);
    CHECK_INT(browse_press(&b, BROWSE_CTRL('c'), 0), BROWSE_CANCEL);
    CHECK_INT(browse_press(&b, BROWSE_CTRL('z'), 0), BROWSE_SUSPEND);
    b.choosing = true;
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_ENTER);
    b.focus = BROWSE_BOX;
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_ENTER);
    b.focus = BROWSE_TEXT;
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_NOTHING);
    browse_release(&b);
}

TEST(to_delete_has_to_be_confirmed)
{
    struct browse b;
    struct buf text = BUF_INIT(BUF_SMALL);

    begin(&b);
    b.focus = BROWSE_LIST;
    take_sessions(&b, "", false);
    press(&b, "d");
    CHECK_INT(b.mode, BROWSE_NORMAL);
    take_sessions(&b, "ab", false);
    press(&b, "d");
    CHECK_INT(b.mode, BROWSE_ASKING);
    browse_foot(&text, &b);
    CHECK_STR(buf_c(&text), "delete 'sa', 7 messages, for ever? y or n");
    press(&b, "n");
    CHECK_INT(b.mode, BROWSE_NORMAL);
    press(&b, "d");
    CHECK_INT(browse_press(&b, BROWSE_KEY_ESCAPE, 0), BROWSE_NOTHING);
    press(&b, "d");
    CHECK_INT(browse_press(&b, 'y', 0), BROWSE_DELETE);
    buf_release(&text);
    browse_release(&b);
}

/* Whatever becomes of the list meanwhile. */
TEST(a_question_is_about_the_session_that_was_chosen)
{
    struct browse b;
    struct buf text = BUF_INIT(BUF_SMALL);

    begin(&b);
    b.focus = BROWSE_LIST;
    take_sessions(&b, "abc", false);
    press(&b, "jd");
    take_sessions(&b, "ac", false);
    browse_foot(&text, &b);
    CHECK_STR(buf_c(&text), "delete 'sb', for ever? y or n");
    CHECK_INT(browse_press(&b, 'y', 0), BROWSE_DELETE);
    CHECK_STR(buf_c(&b.subject.id), "sb");
    /* A fork that was made meanwhile is to be chosen. */
    take_sessions(&b, "abc", false);
    press(&b, "x");
    CHECK_STR(buf_c(&b.name.text), "sc.md");
    buf_add_c(&b.back.session, "sa");
    b.back.list = true;
    take_sessions(&b, "ab", false);
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_EXPORT);
    CHECK_STR(buf_c(&b.subject.id), "sc");
    browse_ask(&b, BROWSE_OVERWRITE);
    CHECK_INT(browse_press(&b, 'y', 0), BROWSE_OVERWRITE);
    CHECK_STR(buf_c(&b.subject.id), "sc");
    buf_release(&text);
    browse_release(&b);
}

static void add_hit(struct browse_hits *hits, size_t history, const char *session)
{
    struct message m = MESSAGE_INIT;
    struct hit hit = {.message = &m, .content = STR("one"), .len = 3};
    char line[200];

    snprintf(line, sizeof line,
             "{\"id\":\"m\",\"session_id\":\"%s\",\"timestamp\":\"t\",\"role\":\"user\","
             "\"content\":\"x\"}",
             session);
    CHECK(message_parse(&m, str_of(line)));
    browse_hits_add(hits, history, &hit);
    message_release(&m);
}

/* A copied history has the same ids. */
TEST(a_hit_is_one_of_its_history_and_session)
{
    struct browse_hits hits = {0}, again = {0};

    add_hit(&hits, 0, "s");
    add_hit(&hits, 0, "t");
    add_hit(&hits, 1, "s");
    CHECK_INT(browse_hits_find(&hits, 1, STR("s"), STR("m")), 2);
    CHECK_INT(browse_hits_find(&hits, 0, STR("t"), STR("m")), 1);
    CHECK_INT(browse_hits_find(&hits, BROWSE_ANY_HISTORY, STR("s"), STR("m")), 0);
    CHECK(browse_hits_find(&hits, 1, STR("t"), STR("m")) == SIZE_MAX);
    for (size_t i = 0; i < 3; i++)
        add_hit(&again, 0, "s");
    CHECK(!browse_hits_caught_up(&again, &hits, 2));
    CHECK(browse_hits_caught_up(&again, &hits, 0));
    browse_hits_release(&hits);
    browse_hits_release(&again);
}

TEST(a_file_to_export_to_is_asked_for)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "ab", false);
    b.focus = BROWSE_LIST;
    press(&b, "x");
    CHECK_STR(buf_c(&b.name.text), "sa.md");
    CHECK_INT(browse_press(&b, BROWSE_CTRL('u'), 0), BROWSE_NOTHING);
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_NOTHING);
    CHECK_INT(b.mode, BROWSE_NORMAL);
    press(&b, "x");
    press(&b, "q");
    CHECK_STR(buf_c(&b.name.text), "sa.mdq");
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_EXPORT);
    press(&b, "x");
    CHECK_INT(browse_press(&b, BROWSE_KEY_ESCAPE, 0), BROWSE_NOTHING);
    CHECK_INT(b.mode, BROWSE_NORMAL);
    browse_release(&b);
}

TEST(to_overwrite_a_file_has_to_be_confirmed)
{
    struct browse b;
    struct buf text = BUF_INIT(BUF_SMALL);

    begin(&b);
    take_sessions(&b, "ab", false);
    b.focus = BROWSE_LIST;
    press(&b, "x");
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_EXPORT);
    browse_ask(&b, BROWSE_OVERWRITE);
    browse_foot(&text, &b);
    CHECK_STR(buf_c(&text), "sa.md is there: overwrite it? y or n");
    CHECK_INT(browse_press(&b, 'n', 0), BROWSE_NOTHING);
    CHECK_INT(b.mode, BROWSE_NORMAL);
    browse_ask(&b, BROWSE_OVERWRITE);
    CHECK_INT(browse_press(&b, 'y', 0), BROWSE_OVERWRITE);
    CHECK_INT(b.mode, BROWSE_NORMAL);
    /* The next question is its own. */
    press(&b, "d");
    CHECK_INT(browse_press(&b, 'y', 0), BROWSE_DELETE);
    buf_release(&text);
    browse_release(&b);
}

TEST(the_help_screen_scrolls_and_closes)
{
    struct browse b;

    begin(&b);
    b.focus = BROWSE_TEXT;
    press(&b, "?jj");
    CHECK_INT(b.mode, BROWSE_HELPING);
    CHECK_INT(b.help_top, 2);
    for (int i = 0; i < 10; i++)
        press(&b, " ");
    CHECK_INT(b.help_top, browse_help_count(b.columns) - 11);
    press(&b, "kx");
    CHECK_INT(b.mode, BROWSE_NORMAL);
    browse_release(&b);
}

TEST(the_mouse_chooses_and_scrolls)
{
    struct browse b;
    struct browse_areas a;

    begin(&b);
    take_sessions(&b, "abcdefghijklmnopqrst", false);
    a = browse_areas(&b);
    CHECK_INT(browse_click(&b, a.list.row + 3, 2, false, 0), BROWSE_NOTHING);
    CHECK_INT(b.session_list.at, 3);
    CHECK_INT(b.focus, BROWSE_LIST);
    take_messages(&b, 6);
    browse_wheel(&b, a.text.row + 1, a.text.column + 1, 3);
    CHECK_STR(seen(&b, 0), "three");
    browse_click(&b, a.text.row + 3, a.text.column, false, 0);
    CHECK_INT(b.focus, BROWSE_TEXT);
    CHECK_INT(b.pane.at, 1);
    browse_wheel(&b, a.list.row, 0, 3);
    CHECK_INT(b.session_list.at, 6);
    CHECK_INT(browse_click(&b, 0, 5, false, 0), BROWSE_NOTHING);
    CHECK_INT(b.focus, BROWSE_BOX);
    CHECK_INT(browse_click(&b, a.list.row, 2, true, 0), BROWSE_NOTHING);
    CHECK_INT(b.focus, BROWSE_TEXT);
    b.choosing = true;
    CHECK_INT(browse_click(&b, a.list.row, 2, true, 0), BROWSE_ENTER);
    browse_release(&b);
}

/* ---- the screen */

static bool is_inside(struct browse_rect r, const struct browse *b)
{
    return r.row + r.rows <= b->rows && r.column + r.columns <= b->columns;
}

TEST(panels_fit_every_screen)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "abcdefghijklmnopqrst", false);
    take_messages(&b, 9);
    for (size_t rows = 4; rows <= 100; rows += rows < 20 ? 1 : 17)
        for (size_t columns = 20; columns <= 400; columns += columns < 100 ? 1 : 41) {
            struct browse_areas a;

            browse_resize(&b, rows, columns);
            a = browse_areas(&b);
            CHECK(is_inside(a.list, &b) && is_inside(a.text, &b) && is_inside(a.foot, &b));
            CHECK_INT(a.stacked, columns < 80);
            if (rows >= 10)
                CHECK(a.list.rows >= 2 && a.text.rows >= 4);
            CHECK(a.list.rows >= 1);
        }
    browse_release(&b);
}

TEST(a_row_shows_the_match_whatever_the_width)
{
    struct buf content = BUF_INIT(BUF_SMALL);
    struct browse_hits hits = {0};
    struct message m = MESSAGE_INIT;
    struct hit hit = {.message = &m};

    for (int i = 0; i < 60; i++)
        buf_addf(&content, "word%d ", i);
    CHECK(
        message_parse(&m, STR("{\"id\":\"m\",\"session_id\":\"sess_1_abcdef\",\"timestamp\":\"t\","
                              "\"role\":\"assistant\",\"content\":\"x\"}")));
    hit.content = buf_str(&content);
    hit.at = (size_t)(str_find(hit.content, STR("word40")) - hit.content.p);
    hit.len = 6;
    browse_hits_add(&hits, 0, &hit);
    for (size_t width = 30; width < 100; width++) {
        struct browse_lines l;
        bool marked = false;

        browse_lines_init(&l);
        browse_row_hit(&l, &hits.at[0], width);
        CHECK(str_starts(buf_str(&l.text), STR("abcdef asst ")));
        CHECK(browse_line_columns(&l, 0) <= width);
        for (size_t r = 0, at = 0; r < l.run_count; at += l.runs[r++].n)
            marked = marked || (l.runs[r].styles == BROWSE_HIT && l.runs[r].n == 6 &&
                                memcmp(l.text.data + at, "word40", 6) == 0);
        CHECK(marked);
        browse_lines_release(&l);
    }
    browse_hits_release(&hits);
    message_release(&m);
    buf_release(&content);
}

/* Keys of all kinds in any order, with results between them: nothing breaks, and what is chosen and
 * acted on stays inside. */
TEST(random_keys_do_no_harm)
{
    static const char keys[] = "jkJKgGhlnNzZrs/?dxyt wo\t\r\x7f\x15\x04\x0e\x10";
    unsigned state = 7;
    struct browse b;

    begin(&b);
    for (int i = 0; i < 20000; i++) {
        int32_t key;

        state = state * 1103515245U + 12345U;
        key = (unsigned char)keys[(state >> 16) % (sizeof keys - 1)];
        if (key == '\r')
            key = BROWSE_KEY_ENTER;
        if (key == '\t')
            key = BROWSE_KEY_TAB;
        if (key == 0x7f)
            key = BROWSE_KEY_BACKSPACE;
        (void)browse_press(&b, key, i * 10);
        browse_tick(&b, i * 10);
        if (state % 7 == 0)
            take_sessions(&b, state % 3 ? "abcdefghijklmnopqrstuv" : "cde", false);
        if (state % 5 == 0 && b.wants.thread) {
            take_messages(&b, (state >> 20) % 9);
            b.wants.thread = false;
        }
        if (state % 4 == 0 && b.wants.search) {
            take_hits(&b, b.search_number, 0, (state >> 18) % 40, state % 2);
            b.wants.search = false;
        }
        if (state % 11 == 0)
            browse_resize(&b, 5 + (state >> 17) % 40, 30 + (state >> 19) % 200);
        CHECK(browse_list(&b)->at == 0 || browse_list(&b)->at < browse_list_count(&b));
        CHECK(b.pane.at == 0 || b.pane.at < b.pane.thread.count);
        CHECK(b.pane.top == 0 || b.pane.top < b.pane.thread.count);
        for (size_t row = 0; row < b.rows; row++)
            (void)seen(&b, row);
        if (test_failed)
            break;
    }
    browse_release(&b);
}

TEST(a_session_of_which_the_end_was_seen_first_begins_at_its_beginning)
{
    struct browse b;
    struct thread t = {0};

    begin(&b);
    take_sessions(&b, "a", true);
    CHECK_INT(b.target.end, 100);
    add_message(&t, 4, "user", "one", "");
    hand_in(&b, b.thread_number, &t);
    take_sessions(&b, "a", false);
    CHECK_INT(b.target.end, -1);
    take_messages(&b, 9);
    CHECK_INT(b.pane.at, 0);
    CHECK_INT(b.pane.top, 0);
    browse_release(&b);
}

/* ---- lists of which a part is there */

/* Sessions `first` and so on of a list of so many, each named by its number. */
static void take_part(struct browse *b, unsigned number, size_t total, const char *keep,
                      size_t place)
{
    struct browse_sessions s = {.total = total, .number = number};
    struct browse_wish wish;

    browse_wish(b, &wish);
    s.first = wish.first;
    if (keep)
        browse_sought_set(&s.keep, 0, str_of(keep));
    s.keep.place = place;
    if (keep && place != SIZE_MAX)
        s.first = place > wish.count / 2 ? place - wish.count / 2 : 0;
    if (s.first + wish.count > total)
        s.first = total > wish.count ? total - wish.count : 0;
    for (size_t i = s.first; i < total && i < s.first + wish.count; i++) {
        char id[24], used[] = "2024-06-27T10:00:00+00:00";

        /* The oldest one is s0, whatever comes before it. */
        snprintf(id, sizeof id, "s%zu", total - 1 - i);
        browse_sessions_add(&s, 0,
                            &(struct session){.id = id,
                                              .id_len = strlen(id),
                                              .last_used = used,
                                              .last_used_len = 25,
                                              .count = 1});
    }
    browse_wish_release(&wish);
    b->wants.sessions = false;
    browse_take_sessions(b, &s);
}

static const char *chosen(const struct browse *b)
{
    static char text[24];
    size_t history;
    struct str id;

    if (!browse_chosen(b, &history, &id))
        return NULL;
    snprintf(text, sizeof text, "%.*s", (int)id.n, id.p);
    return text;
}

TEST(of_a_long_list_only_what_is_near_is_held)
{
    struct browse b;

    begin(&b);
    take_part(&b, 1, 100000, NULL, SIZE_MAX);
    CHECK(!b.wants.sessions);
    CHECK_INT(browse_list_count(&b), 100000);
    CHECK_STR(chosen(&b), "s99999");
    /* What is held does not depend on how long it is. */
    CHECK(b.sessions.count < 300);
    b.focus = BROWSE_LIST;
    press(&b, "G");
    CHECK_INT(b.session_list.at, 99999);
    CHECK(b.wants.sessions);
    /* Nothing is known of it yet, and what was shown stays. */
    CHECK(chosen(&b) == NULL);
    CHECK_STR(buf_c(&b.target.id), "s99999");
    take_part(&b, 1, 100000, NULL, SIZE_MAX);
    CHECK(!b.wants.sessions);
    CHECK_STR(chosen(&b), "s0");
    CHECK_STR(buf_c(&b.target.id), "s0");
    CHECK(b.sessions.count < 300);
    /* Each line that is seen is there before it is: page by page up to the beginning. */
    for (int i = 0; i < 500; i++) {
        CHECK_INT(browse_press(&b, BROWSE_KEY_PAGE_UP, 0), BROWSE_NOTHING);
        CHECK(chosen(&b) != NULL);
        if (b.wants.sessions)
            take_part(&b, 1, 100000, NULL, SIZE_MAX);
        CHECK(!b.wants.sessions);
    }
    browse_release(&b);
}

TEST(a_long_list_that_grows_keeps_its_place)
{
    struct browse b;

    begin(&b);
    take_part(&b, 1, 1000, NULL, SIZE_MAX);
    b.focus = BROWSE_LIST;
    press(&b, "Gkkkk");
    take_part(&b, 1, 1000, NULL, SIZE_MAX);
    CHECK_STR(chosen(&b), "s4");
    CHECK_INT(b.session_list.at - b.session_list.top, 5);
    /* 500 sessions come, which is told of the one that was asked for. */
    take_part(&b, 2, 1500, "s4", 1495);
    CHECK_STR(chosen(&b), "s4");
    CHECK_INT(b.session_list.at, 1495);
    CHECK_INT(b.session_list.at - b.session_list.top, 5);
    CHECK(!b.wants.sessions);
    /* Of another one it says nothing, and is asked for again. */
    press(&b, "kkk");
    take_part(&b, 3, 5000, "s4000", 999);
    CHECK(b.wants.sessions);
    CHECK_STR(chosen(&b), "s7");
    CHECK_INT(browse_list_count(&b), 1500);
    take_part(&b, 3, 5000, "s7", 4992);
    CHECK_STR(chosen(&b), "s7");
    /* It is gone. */
    take_part(&b, 4, 3, "s7", SIZE_MAX);
    CHECK_STR(chosen(&b), "s0");
    browse_release(&b);
}

/* ---- keys before the list is there */

static void keys(struct browse *b, int32_t key, int count)
{
    while (count-- > 0)
        CHECK_INT(browse_press(b, key, 0), BROWSE_NOTHING);
}

TEST(keys_wait_for_the_sessions)
{
    struct browse b;

    begin(&b);
    CHECK(browse_awaits_list(&b));
    keys(&b, BROWSE_KEY_DOWN, 1);
    take_sessions(&b, "abc", false);
    CHECK(!browse_awaits_list(&b));
    CHECK_STR(chosen(&b), "sb");
    CHECK_STR(buf_c(&b.target.id), "sb");
    /* Once. */
    take_sessions(&b, "abc", false);
    CHECK_STR(chosen(&b), "sb");
    browse_release(&b);
    /* Nothing is above the first line, and below the last one. */
    begin(&b);
    keys(&b, BROWSE_KEY_UP, 3);
    keys(&b, BROWSE_KEY_DOWN, 2);
    keys(&b, BROWSE_KEY_UP, 1);
    take_sessions(&b, "abc", false);
    CHECK_STR(chosen(&b), "sb");
    browse_release(&b);
    begin(&b);
    keys(&b, BROWSE_KEY_PAGE_DOWN, 5);
    take_sessions(&b, "", false);
    CHECK(!browse_ahead_any(&b.ahead));
    take_sessions(&b, "abc", false);
    CHECK_STR(chosen(&b), "sa");
    browse_release(&b);
}

TEST(keys_wait_for_the_rest_of_a_list)
{
    struct browse b;

    begin(&b);
    keys(&b, BROWSE_KEY_DOWN, 2);
    take_sessions(&b, "", true);
    CHECK(browse_awaits_list(&b));
    take_sessions(&b, "ab", true);
    CHECK_STR(chosen(&b), "sb");
    keys(&b, BROWSE_KEY_DOWN, 1);
    take_sessions(&b, "abcde", false);
    CHECK_STR(chosen(&b), "sd");
    CHECK(!browse_ahead_any(&b.ahead));
    browse_release(&b);
    /* Another one moves in what is seen. */
    begin(&b);
    keys(&b, BROWSE_KEY_DOWN, 3);
    take_sessions(&b, "ab", true);
    keys(&b, BROWSE_KEY_UP, 1);
    CHECK_STR(chosen(&b), "sa");
    take_sessions(&b, "abcde", false);
    CHECK_STR(chosen(&b), "sa");
    browse_release(&b);
}

TEST(the_ends_of_a_list_wait_for_it)
{
    struct browse b;

    begin(&b);
    b.focus = BROWSE_LIST;
    press(&b, "G");
    take_sessions(&b, "ab", true);
    CHECK_STR(chosen(&b), "sb");
    take_sessions(&b, "abcde", false);
    CHECK_STR(chosen(&b), "se");
    browse_release(&b);
    begin(&b);
    b.focus = BROWSE_LIST;
    press(&b, "Gjkk");
    take_sessions(&b, "abcde", false);
    CHECK_STR(chosen(&b), "sc");
    browse_release(&b);
    begin(&b);
    b.focus = BROWSE_LIST;
    press(&b, "jGgj");
    take_sessions(&b, "abcde", false);
    CHECK_STR(chosen(&b), "sb");
    browse_release(&b);
}

/* As it was left, with the session `id` chosen. */
static void begin_back(struct browse *b, const char *id)
{
    begin(b);
    buf_add_c(&b->back.session, id);
    b->back.list = true;
}

TEST(keys_go_on_from_where_the_list_was_left)
{
    struct browse b;

    begin_back(&b, "sc");
    keys(&b, BROWSE_KEY_UP, 1);
    take_sessions(&b, "abcde", false);
    CHECK_STR(chosen(&b), "sb");
    browse_release(&b);
    begin_back(&b, "sd");
    keys(&b, BROWSE_KEY_DOWN, 1);
    /* It is further back in the file. */
    take_sessions(&b, "abc", true);
    take_sessions(&b, "abcdef", false);
    CHECK_STR(chosen(&b), "se");
    browse_release(&b);
    begin_back(&b, "sd");
    b.focus = BROWSE_LIST;
    press(&b, "gj");
    take_sessions(&b, "abcdef", false);
    CHECK_STR(chosen(&b), "sb");
    browse_release(&b);
    /* A list that is seen is moved in at once. */
    begin_back(&b, "sd");
    take_sessions(&b, "abc", true);
    keys(&b, BROWSE_KEY_DOWN, 1);
    CHECK_STR(chosen(&b), "sb");
    take_sessions(&b, "abcdef", false);
    CHECK_STR(chosen(&b), "sb");
    browse_release(&b);
}

TEST(keys_wait_for_the_hits)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01", false);
    browse_press(&b, 't', 0);
    CHECK(browse_awaits_list(&b));
    keys(&b, BROWSE_KEY_DOWN, 1);
    CHECK_STR(chosen(&b), "s0");
    browse_tick(&b, 1000);
    keys(&b, BROWSE_KEY_DOWN, 3);
    CHECK(browse_awaits_list(&b));
    /* They come one by one at first. */
    for (size_t i = 0; i < 4; i++)
        take_hits(&b, b.search_number, i, 1, false);
    CHECK_INT(b.hit_list.at, 3);
    take_hits(&b, b.search_number, 4, 3, true);
    CHECK_INT(b.hit_list.at, 4);
    /* What is typed, or another role, is another list. */
    browse_press(&b, 'w', 0);
    keys(&b, BROWSE_KEY_DOWN, 3);
    browse_press(&b, 'o', 0);
    keys(&b, BROWSE_KEY_DOWN, 1);
    browse_tick(&b, 1000);
    take_hits(&b, b.search_number, 0, 9, true);
    CHECK_INT(b.hit_list.at, 1);
    browse_set_role(&b, "user");
    keys(&b, BROWSE_KEY_DOWN, 2);
    browse_set_role(&b, NULL);
    keys(&b, BROWSE_KEY_DOWN, 1);
    take_hits(&b, b.search_number, 0, 9, true);
    CHECK_INT(b.hit_list.at, 1);
    browse_release(&b);
}

TEST(no_hit_ends_the_wait)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "012", false);
    keys(&b, BROWSE_KEY_DOWN, 2);
    search(&b, "t");
    keys(&b, BROWSE_KEY_DOWN, 2);
    take_hits(&b, b.search_number, 0, 0, false);
    CHECK(browse_awaits_list(&b));
    take_hits(&b, b.search_number, 0, 0, true);
    CHECK(!browse_awaits_list(&b) && !browse_ahead_any(&b.ahead));
    /* The list of the sessions is as it was, and goes on from there. */
    browse_press(&b, BROWSE_KEY_BACKSPACE, 0);
    keys(&b, BROWSE_KEY_UP, 1);
    browse_tick(&b, 1000);
    CHECK_STR(chosen(&b), "s1");
    browse_release(&b);
}

TEST(the_last_hit_is_gone_to_as_they_come_but_not_for_ever)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01", false);
    search(&b, "t");
    b.focus = BROWSE_LIST;
    press(&b, "G");
    take_hits(&b, b.search_number, 0, 1, false);
    take_hits(&b, b.search_number, 1, 99, false);
    CHECK_INT(b.hit_list.at, 99);
    take_hits(&b, b.search_number, 100, 2000, false);
    CHECK_INT(b.hit_list.at, 2099);
    take_hits(&b, b.search_number, 2100, 100, false);
    CHECK_INT(b.hit_list.at, 2099);
    browse_release(&b);
}

TEST(a_search_that_is_done_again_waits_for_nothing)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01", false);
    search(&b, "t");
    /* Before the first answer there is nothing to be kept. */
    browse_search(&b, true);
    CHECK(browse_awaits_list(&b));
    take_hits(&b, b.search_number, 10, 5, true);
    CHECK_INT(browse_list_count(&b), 5);
    browse_search(&b, true);
    CHECK(!browse_awaits_list(&b));
    keys(&b, BROWSE_KEY_DOWN, 2);
    CHECK_INT(b.hit_list.at, 2);
    browse_search(&b, true);
    keys(&b, BROWSE_KEY_DOWN, 1);
    CHECK_INT(b.hit_list.at, 3);
    take_hits(&b, b.search_number, 9, 6, true);
    CHECK_INT(browse_list_count(&b), 6);
    CHECK_INT(b.hit_list.at, 4);
    /* Nor are the hits of another text taken for old ones of this. */
    search(&b, "w");
    browse_search(&b, true);
    CHECK(browse_awaits_list(&b));
    keys(&b, BROWSE_KEY_DOWN, 1);
    take_hits(&b, b.search_number, 20, 2, false);
    CHECK_INT(browse_list_count(&b), 2);
    CHECK_INT(b.hit_list.at, 1);
    browse_release(&b);
}

TEST(keys_wait_for_the_messages)
{
    struct browse b;

    begin(&b);
    keys(&b, BROWSE_KEY_DOWN, 1);
    keys(&b, BROWSE_KEY_TAB, 2);
    CHECK_INT(b.focus, BROWSE_TEXT);
    press(&b, "JJK");
    CHECK(!browse_is_settled(&b));
    take_sessions(&b, "abc", false);
    press(&b, "Jj");
    CHECK(!browse_go_on(&b) && !browse_is_settled(&b));
    keys(&b, BROWSE_KEY_TAB, 1);
    take_messages(&b, 6);
    CHECK(!browse_is_settled(&b));
    CHECK(!browse_go_on(&b) && browse_is_settled(&b));
    CHECK_STR(chosen(&b), "sb");
    CHECK_INT(b.focus, BROWSE_BOX);
    CHECK_INT(b.pane.at, 2);
    CHECK_INT(b.pane.top * 10 + b.pane.top_line, 11);
    /* Those of the session before are not meant; keys for one that was left are forgotten. */
    keys(&b, BROWSE_KEY_TAB, 2);
    press(&b, "hklJJ");
    CHECK_INT(b.pane.at, 2);
    press(&b, "hjjlJ");
    take_messages(&b, 6);
    browse_go_on(&b);
    CHECK_STR(buf_c(&b.shown.id), "sc");
    CHECK_INT(b.pane.at, 1);
    browse_release(&b);
}

TEST(a_question_waits_for_the_session)
{
    struct browse b;

    begin(&b);
    keys(&b, BROWSE_KEY_DOWN, 1);
    b.focus = BROWSE_LIST;
    press(&b, "x");
    CHECK_INT(b.mode, BROWSE_NORMAL);
    take_sessions(&b, "ab", false);
    browse_go_on(&b);
    CHECK_INT(b.mode, BROWSE_NAMING);
    CHECK_STR(buf_c(&b.name.text), "sb.md");
    browse_release(&b);
    begin(&b);
    b.focus = BROWSE_LIST;
    press(&b, "d");
    take_sessions(&b, "", false);
    browse_go_on(&b);
    CHECK_INT(b.mode, BROWSE_NORMAL);
    CHECK(browse_is_settled(&b));
    browse_release(&b);
}

TEST(folds_and_hits_wait_for_the_messages)
{
    struct browse b;
    struct thread t = {0};

    begin(&b);
    b.focus = BROWSE_TEXT;
    press(&b, "z");
    take_sessions(&b, "a", false);
    add_message(&t, 0, "tool", "line one\\nline two", ",\"tool_call_id\":\"c\"");
    hand_in(&b, b.thread_number, &t);
    CHECK_STR(seen(&b, 1), "▸ result line one line two");
    browse_go_on(&b);
    CHECK_STR(seen(&b, 1), "▾ result");
    browse_release(&b);
    begin(&b);
    take_sessions(&b, "0", false);
    search(&b, "two");
    b.focus = BROWSE_LIST;
    press(&b, "nn");
    take_hits(&b, b.search_number, 0, 3, true);
    take_messages(&b, 6);
    while (browse_go_on(&b))
        continue;
    CHECK_INT(b.pane.hit, 2);
    browse_release(&b);
}

TEST(what_is_too_much_to_be_kept_is_lost)
{
    struct browse b;

    begin(&b);
    b.focus = BROWSE_TEXT;
    keys(&b, 'J', 2 * BROWSE_AHEAD_MAX);
    take_sessions(&b, "a", false);
    take_messages(&b, 2 * BROWSE_AHEAD_MAX);
    browse_go_on(&b);
    CHECK_INT(b.pane.at, BROWSE_AHEAD_MAX);
    browse_release(&b);
}

/* A hit that was replaced is not in the messages that are there. */
TEST(a_hit_that_is_still_to_be_read_is_waited_for)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01", false);
    take_messages(&b, 1);
    search(&b, "two");
    take_hits(&b, b.search_number, 0, 4, true);
    CHECK(browse_is_settled(&b));
    b.focus = BROWSE_LIST;
    keys(&b, BROWSE_KEY_DOWN, 1);
    CHECK(!browse_is_settled(&b));
    take_messages(&b, 3);
    CHECK(browse_is_settled(&b));
    /* One that is gone by now is not. */
    keys(&b, BROWSE_KEY_DOWN, 2);
    CHECK(!browse_is_settled(&b));
    take_messages(&b, 3);
    CHECK(browse_is_settled(&b));
    browse_release(&b);
}

TEST(the_answer_to_a_question_that_waits_is_no_command)
{
    struct browse b;

    begin(&b);
    b.focus = BROWSE_LIST;
    press(&b, "x");
    press(&b, "job.qed.md");
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_NOTHING);
    take_sessions(&b, "ab", false);
    browse_go_on(&b);
    CHECK_INT(b.mode, BROWSE_NAMING);
    CHECK_STR(buf_c(&b.name.text), "sa.md");
    browse_release(&b);
    begin(&b);
    b.focus = BROWSE_LIST;
    press(&b, "dy");
    take_sessions(&b, "ab", false);
    browse_go_on(&b);
    CHECK_INT(b.mode, BROWSE_ASKING);
    browse_release(&b);
    /* It can be taken back. */
    begin(&b);
    b.focus = BROWSE_LIST;
    press(&b, "d");
    CHECK_INT(browse_press(&b, BROWSE_KEY_ESCAPE, 0), BROWSE_NOTHING);
    CHECK_INT(browse_press(&b, BROWSE_CTRL('c'), 0), BROWSE_CANCEL);
    take_sessions(&b, "ab", false);
    browse_go_on(&b);
    CHECK_INT(b.mode, BROWSE_NORMAL);
    browse_release(&b);
}

TEST(a_question_waits_for_a_line_that_is_still_to_be_read)
{
    struct browse b;
    struct browse_sessions s = {.total = 1000, .number = 900};

    begin(&b);
    b.focus = BROWSE_LIST;
    add_sessions(&s, "abcdefghij");
    browse_take_sessions(&b, &s);
    press(&b, "G");
    press(&b, "x");
    CHECK_INT(b.mode, BROWSE_NORMAL);
    s = (struct browse_sessions){.total = 1000, .number = 900, .first = 990};
    add_sessions(&s, "ABCDEFGHIJ");
    browse_take_sessions(&b, &s);
    browse_go_on(&b);
    CHECK_INT(b.mode, BROWSE_NAMING);
    CHECK_STR(buf_c(&b.name.text), "sJ.md");
    browse_release(&b);
}

TEST(the_end_of_a_list_that_is_read_in_parts_is_the_last_line)
{
    struct browse b;

    begin(&b);
    b.focus = BROWSE_LIST;
    take_sessions(&b, "abc", true);
    press(&b, "G");
    CHECK_STR(chosen(&b), "sc");
    CHECK(!browse_is_settled(&b));
    take_sessions(&b, "abcdef", false);
    CHECK_STR(chosen(&b), "sf");
    browse_release(&b);
}

TEST(a_message_stays_chosen_when_more_of_the_file_is_read)
{
    struct browse b;

    begin(&b);
    b.focus = BROWSE_LIST;
    take_sessions(&b, "a", true);
    take_messages(&b, 2);
    press(&b, "J");
    take_sessions(&b, "a", false);
    take_messages(&b, 2);
    CHECK_INT(b.pane.at, 1);
    browse_release(&b);
}

TEST(another_list_has_no_use_for_keys_that_wait)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01", false);
    search(&b, "two");
    b.focus = BROWSE_LIST;
    press(&b, "J");
    press(&b, "r");
    take_hits(&b, b.search_number, 0, 3, true);
    take_messages(&b, 6);
    browse_go_on(&b);
    CHECK_INT(b.pane.at, 0);
    browse_release(&b);
}

TEST(a_click_on_what_is_replaced_chooses_nothing)
{
    struct browse b;
    struct browse_areas a;

    begin(&b);
    b.choosing = true;
    take_sessions(&b, "0abc", false);
    take_messages(&b, 2);
    a = browse_areas(&b);
    browse_press(&b, 't', 0);
    CHECK_INT(browse_click(&b, a.list.row + 2, a.list.column + 1, true, 1000), BROWSE_NOTHING);
    CHECK_STR(chosen(&b), "s0");
    browse_release(&b);
    begin(&b);
    take_sessions(&b, "ab", false);
    take_messages(&b, 6);
    b.focus = BROWSE_LIST;
    press(&b, "j");
    (void)browse_click(&b, a.text.row + 6, a.text.column + 1, true, 0);
    CHECK_INT(b.text_ahead.count, 0);
    browse_release(&b);
}

/* It was closed before its hits came: no message was chosen. */
TEST(a_search_that_was_left_early_shows_its_first_hit)
{
    struct browse b;

    begin_back(&b, "s1");
    browse_edit_set(&b.query, STR("two"));
    b.searching = true;
    browse_search(&b, false);
    take_sessions(&b, "01", false);
    take_hits(&b, b.search_number, 0, 1, false);
    CHECK(!b.back.list);
    CHECK_STR(buf_c(&b.target.id), "s0");
    browse_release(&b);
}

TEST(the_help_is_wrapped)
{
    size_t narrow = browse_help_count(40), wide = browse_help_count(200);
    struct buf text = BUF_INIT(BUF_SMALL), all[2];
    size_t columns[] = {40, 200};

    CHECK(narrow > wide && wide > 20);
    CHECK(!browse_help_line(&text, wide, 200));
    /* Nothing is lost by it. */
    for (size_t k = 0; k < 2; k++) {
        buf_init(&all[k], BUF_LINE);
        for (size_t i = 0; i < browse_help_count(columns[k]); i++) {
            buf_clear(&text);
            CHECK(browse_help_line(&text, i, columns[k]));
            CHECK(text.len <= columns[k]);
            for (size_t at = 0; at < text.len; at++)
                if (text.data[at] != ' ')
                    buf_add_byte(&all[k], text.data[at]);
        }
    }
    CHECK_STR(buf_c(&all[0]), buf_c(&all[1]));
    buf_release(&all[0]);
    buf_release(&all[1]);
    buf_release(&text);
}

TEST(the_hints_fit_and_tell_how_to_leave)
{
    for (int focus = BROWSE_BOX; focus <= BROWSE_TEXT; focus++) {
        size_t before = 0;

        for (size_t columns = 20; columns < 140; columns++) {
            struct buf text = BUF_INIT(BUF_SMALL);

            browse_hints(&text, (enum browse_focus)focus, columns);
            CHECK(text.len <= columns);
            CHECK(str_ends(buf_str(&text), STR("Esc close")));
            CHECK(strstr(buf_c(&text), "  Esc close") || columns < 26);
            before = text.len > before ? text.len : before;
            buf_release(&text);
        }
        CHECK(before > 50);
    }
}
