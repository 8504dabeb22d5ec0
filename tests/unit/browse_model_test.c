#include "browse/model.h"

#include <stdint.h>
#include <stdlib.h>

#include "test.h"
#include "browse/view.h"

/* ---- what is handed in */

/* Sessions s0, s1, … as the letters say, in that order; of one history. Without `all` other
 * histories are still being read. */
static void take_lists(struct browse *b, const char *letters, bool all)
{
    struct session_list list = {0};
    size_t left = strlen(letters);

    for (const char *letter = letters; *letter; letter++) {
        struct str id = {(char[]){'s', *letter}, 2};
        struct session *s = session_list_add(&list);

        s->id = s->preview = session_list_keep(&list, id);
        s->last_used = session_list_keep(&list, STR("2024-06-27T10:00:00+00:00"));
        s->count = 7;
        s->last_line = (off_t)left--;
    }
    browse_take_sessions(b, 0, &list);
    if (all)
        browse_take_all_sessions(b, b->sessions_number);
    b->wants.sessions = false;
    CHECK_INT(browse_go_on(b), BROWSE_NOTHING);
}

static void take_sessions(struct browse *b, const char *letters)
{
    take_lists(b, letters, true);
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
    while (browse_pane_is_counting(&b->pane))
        browse_pane_count(&b->pane);
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
        struct hit hit = {.message = &m,
                          .text = STR("one two words three"),
                          .in_content = true,
                          .at = 4,
                          .len = 3};

        snprintf(line, sizeof line,
                 "{\"id\":\"m%zu\",\"session_id\":\"s%zu\",\"timestamp\":\"t\",\"role\":\"user\","
                 "\"content\":\"x\"}",
                 i, i / 3);
        CHECK(message_parse(&m, str_of(line)));
        browse_hits_add(&hits, 0, &hit);
        message_release(&m);
    }
    browse_take_hits(b, number, &hits, BROWSE_FIT_MESSAGE, done);
    CHECK_INT(browse_go_on(b), BROWSE_NOTHING);
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
    size_t line;
    bool current;

    if (!browse_pane_line(&b->pane, row, &l, &line, &current))
        return NULL;
    snprintf(text, sizeof text, "%.*s", (int)l->at[line].n, buf_c(&l->text) + l->at[line].at);
    return text;
}

static bool chosen_is(const struct browse *b, const char *want)
{
    size_t history;
    struct str id;

    return browse_chosen(b, &history, &id) && str_eq_c(id, want);
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
    take_sessions(&b, "abc");
    CHECK(browse_chosen(&b, &history, &id) && str_eq_c(id, "sa"));
    CHECK(b.wants.thread);
    CHECK_STR(buf_c(&b.target.id), "sa");
    take_messages(&b, 2);
    CHECK_STR(seen(&b, 1), "one");
    CHECK_STR(buf_c(&b.shown.id), "sa");
    browse_release(&b);
}

TEST(keys_move_through_the_list)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "abcdefghijklmnopqrstuvwxyz");
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

static void check_title(const struct browse *b, const char *want)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    browse_title_list(&text, b);
    CHECK_STR(buf_c(&text), want);
    buf_release(&text);
}

/* Another order begins at its first line, and stays when the list is read again. */
TEST(a_key_changes_the_order_of_the_sessions)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "acb");
    check_title(&b, " sessions ");
    b.focus = BROWSE_LIST;
    press(&b, "jo");
    CHECK(chosen_is(&b, "sb"));
    CHECK_STR(buf_c(&b.status), "oldest first");
    check_title(&b, " sessions, oldest first ");
    press(&b, "j");
    take_sessions(&b, "dacb");
    CHECK(chosen_is(&b, "sc"));
    CHECK_INT(b.session_list.at, 1);
    press(&b, "o");
    check_title(&b, " sessions, longest first ");
    CHECK(chosen_is(&b, "sd"));
    press(&b, "o");
    check_title(&b, " sessions, by title ");
    CHECK(chosen_is(&b, "sa"));
    press(&b, "o");
    check_title(&b, " sessions ");
    CHECK(chosen_is(&b, "sd"));
    browse_release(&b);
}

TEST(messages_that_are_not_asked_for_any_more_are_dropped)
{
    struct browse b;
    struct thread t = {0};
    unsigned first;

    begin(&b);
    take_sessions(&b, "abc");
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
    take_sessions(&b, "abcdefghijklmnopqrst");
    b.focus = BROWSE_LIST;
    for (int i = 0; i < 12; i++)
        press(&b, "j");
    press(&b, "kk");
    CHECK_INT(b.session_list.at, 10);
    CHECK_INT(b.session_list.top, 3);
    take_messages(&b, 1);
    b.wants.thread = false;
    take_sessions(&b, "zyabcdefghijklmnopqrst");
    CHECK_INT(b.session_list.at, 12);
    CHECK_INT(b.session_list.top, 5);
    /* It is the same session, as it was. */
    CHECK(!b.wants.thread);
    /* At the top new sessions are seen. */
    press(&b, "g");
    take_sessions(&b, "xzyabcdefghijklmnopqrst");
    CHECK_INT(b.session_list.at, 1);
    CHECK_INT(b.session_list.top, 0);
    /* One that is gone leaves its place to another. */
    take_sessions(&b, "xyabc");
    CHECK_INT(b.session_list.at, 1);
    take_sessions(&b, "");
    CHECK_INT(b.session_list.at, 0);
    CHECK(seen(&b, 0) == NULL);
    browse_release(&b);
}

/* ---- messages */

TEST(messages_scroll_to_their_ends_and_not_beyond)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "a");
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
    take_sessions(&b, "a");
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
    take_sessions(&b, "a");
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

TEST(a_role_leaves_the_others_out)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "a");
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
    take_sessions(&b, "a");
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
    take_sessions(&b, "ab");
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
    take_sessions(&b, "01");
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
    take_sessions(&b, "01");
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
    /* Before the first one is the session above. */
    press(&b, "N");
    CHECK_STR(buf_c(&b.target.id), "s0");
    browse_release(&b);
}

TEST(another_size_keeps_the_message_of_the_hit)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "0");
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
    take_sessions(&b, "0");
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
    browse_changed(&b, 1);
    CHECK(!b.wants.thread && b.wants.sessions);
    browse_changed(&b, 0);
    CHECK(b.wants.thread);
    browse_release(&b);
}

TEST(an_empty_search_shows_the_sessions_again)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01");
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
    take_sessions(&b, "01");
    search(&b, "t");
    take_hits(&b, b.search_number, 0, 100, false);
    b.wants.hits = 0;
    b.focus = BROWSE_LIST;
    press(&b, "j");
    CHECK(b.wants.hits == 0);
    press(&b, "G");
    CHECK_INT(browse_go_on(&b), BROWSE_NOTHING);
    CHECK(b.wants.hits > 0);
    browse_release(&b);
}

/* The session of one hit is behind those of three; the top stays chosen while more are read. */
TEST(the_session_with_the_most_hits_is_first)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "0123");
    search(&b, "t");
    take_hits(&b, b.search_number, 2, 4, false);
    CHECK(chosen_is(&b, "s0"));
    check_title(&b, " hits ");
    b.focus = BROWSE_LIST;
    press(&b, "o");
    CHECK(chosen_is(&b, "s1"));
    check_title(&b, " hits, most hits first ");
    CHECK_STR(buf_c(&b.status), "the session with the most hits first");
    CHECK_INT(b.wants.hits, BROWSE_HITS_MAX);
    take_hits(&b, b.search_number, 6, 3, false);
    take_hits(&b, b.search_number, 6, 2, false);
    CHECK(chosen_is(&b, "s2"));
    CHECK_INT(b.hit_list.at, 0);
    press(&b, "j");
    CHECK_INT(b.waits.count, 1);
    take_hits(&b, b.search_number, 9, 1, true);
    CHECK_INT(b.waits.count, 0);
    CHECK_INT(b.hit_list.at, 1);
    press(&b, "o");
    CHECK(chosen_is(&b, "s0"));
    check_title(&b, " hits ");
    browse_release(&b);
}

TEST(the_same_search_again_keeps_the_place)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01");
    search(&b, "t");
    take_hits(&b, b.search_number, 10, 30, true);
    b.focus = BROWSE_LIST;
    for (int i = 0; i < 15; i++)
        press(&b, "j");
    CHECK_INT(b.hit_list.at, 15);
    CHECK_INT(b.hit_list.top, 6);
    browse_search(&b, true);
    CHECK_INT(browse_list_count(&b), 30);
    take_hits(&b, b.search_number, 8, 32, true);
    CHECK_INT(browse_list_count(&b), 32);
    CHECK_INT(b.hit_list.at, 17);
    CHECK_INT(b.hit_list.top, 8);
    /* One that is gone leaves its place to another. */
    browse_search(&b, true);
    take_hits(&b, b.search_number, 100, 40, true);
    CHECK_INT(b.hit_list.at, 17);
    browse_release(&b);
}

TEST(a_search_without_a_hit_is_told)
{
    struct browse b;
    struct buf text = BUF_INIT(BUF_SMALL);

    begin(&b);
    take_sessions(&b, "01");
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
    static const struct {
        int32_t key;
        enum browse_command command;
    } keys[] = {
        {'L', BROWSE_LOAD},
        {'p', BROWSE_PROMPT},
        {'y', BROWSE_COPY},
        {'v', BROWSE_PAGER},
        {'e', BROWSE_EDITOR},
        {'f', BROWSE_FORK},
        {'c', BROWSE_CHAT},
        {BROWSE_KEY_ENTER, BROWSE_LOAD},
        {BROWSE_KEY_ESCAPE, BROWSE_NOTHING},
        {BROWSE_KEY_ESCAPE, BROWSE_CLOSE},
        {BROWSE_CTRL('c'), BROWSE_CANCEL},
        {BROWSE_CTRL('z'), BROWSE_SUSPEND},
    };
    struct browse b;

    begin(&b);
    take_sessions(&b, "ab");
    take_messages(&b, 3);
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_NOTHING);
    CHECK_INT(b.focus, BROWSE_TEXT);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        CHECK_INT(browse_press(&b, keys[i].key, 0), keys[i].command);
    b.choosing = true;
    for (int focus = BROWSE_BOX; focus <= BROWSE_TEXT; focus++) {
        b.focus = (enum browse_focus)focus;
        CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_ENTER);
    }
    b.for_chat = true;
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_PROMPT);
    CHECK_INT(browse_press(&b, 'c', 0), BROWSE_LOAD);
    browse_release(&b);
}

TEST(to_delete_has_to_be_confirmed)
{
    struct browse b;
    struct buf text = BUF_INIT(BUF_SMALL);

    begin(&b);
    b.focus = BROWSE_LIST;
    take_sessions(&b, "");
    press(&b, "d");
    CHECK_INT(b.mode, BROWSE_NORMAL);
    take_sessions(&b, "ab");
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
    take_sessions(&b, "abc");
    press(&b, "jd");
    take_sessions(&b, "ac");
    browse_foot(&text, &b);
    CHECK_STR(buf_c(&text), "delete 'sb', for ever? y or n");
    CHECK_INT(browse_press(&b, 'y', 0), BROWSE_DELETE);
    CHECK_STR(buf_c(&b.subject.id), "sb");
    /* A fork that was made meanwhile is to be chosen. */
    take_sessions(&b, "abc");
    press(&b, "x");
    CHECK_STR(buf_c(&b.name.text), "sc.md");
    buf_add_c(&b.back.session, "sa");
    b.back.list = true;
    take_sessions(&b, "ab");
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_EXPORT);
    CHECK_STR(buf_c(&b.subject.id), "sc");
    browse_ask(&b, BROWSE_OVERWRITE);
    CHECK_INT(browse_press(&b, 'y', 0), BROWSE_OVERWRITE);
    CHECK_STR(buf_c(&b.subject.id), "sc");
    buf_release(&text);
    browse_release(&b);
}

TEST(a_file_to_export_to_is_asked_for)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "ab");
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

TEST(blanks_are_no_search_and_a_bad_query_is_reported)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "ab");
    press(&b, "  ");
    browse_tick(&b, INT64_MAX);
    CHECK(!b.searching && b.search_due == 0 && b.searched.len == 0);
    press(&b, "since:never");
    browse_tick(&b, INT64_MAX);
    CHECK(b.wrong.len > 0 && b.searched.len == 0);
    CHECK(chosen_is(&b, "sa"));
    CHECK_INT(browse_press(&b, BROWSE_CTRL('u'), 0), BROWSE_NOTHING);
    press(&b, "role:user word");
    browse_tick(&b, INT64_MAX);
    CHECK_INT(b.wrong.len, 0);
    CHECK_STR(buf_c(&b.searched), "role:user word");
    browse_release(&b);
}

/* Esc goes back: from what was found in the session, from the messages, from the search with its
 * session, from the role. */
TEST(back_goes_one_step_at_a_time)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "0123");
    press(&b, "one");
    browse_tick(&b, INT64_MAX);
    take_hits(&b, b.search_number, 0, 9, true);
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_NOTHING);
    CHECK_INT(b.focus, BROWSE_TEXT);
    take_messages(&b, 3);
    browse_set_role(&b, "user");
    take_hits(&b, b.search_number, 3, 6, true);
    take_messages(&b, 3);
    press(&b, "/two");
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_NOTHING);
    CHECK(b.found);
    press(&b, "+");
    CHECK(b.zoomed && browse_areas(&b).list.rows == 0);
    press(&b, "q");
    CHECK(!b.zoomed && b.found);
    press(&b, "q");
    CHECK(!b.found && b.focus == BROWSE_TEXT);
    press(&b, "q");
    CHECK(b.focus == BROWSE_LIST && b.searching);
    press(&b, "q");
    CHECK(!b.searching && b.query.text.len == 0 && b.role);
    CHECK(chosen_is(&b, "s1"));
    press(&b, "q");
    CHECK(!b.role);
    CHECK_INT(browse_press(&b, 'q', 0), BROWSE_CLOSE);
    browse_release(&b);
}

TEST(the_help_screen_scrolls_and_closes)
{
    struct browse b;
    struct browse_lines help = {0};

    begin(&b);
    b.focus = BROWSE_TEXT;
    press(&b, "?jj");
    CHECK_INT(b.mode, BROWSE_HELPING);
    CHECK_INT(b.help_top, 2);
    for (int i = 0; i < 10; i++)
        press(&b, " ");
    browse_help(&help, b.columns);
    CHECK_INT(b.help_top, help.count - 11);
    browse_lines_release(&help);
    press(&b, "kx");
    CHECK_INT(b.mode, BROWSE_NORMAL);
    browse_release(&b);
}

TEST(the_mouse_chooses_and_scrolls)
{
    struct browse b;
    struct browse_areas a;

    begin(&b);
    take_sessions(&b, "abcdefghijklmnopqrst");
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
    take_messages(&b, 1);
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
    take_sessions(&b, "abcdefghijklmnopqrst");
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
    CHECK(message_parse(&m, STR("{\"id\":\"m\",\"session_id\":\"sess_1_abcdef\","
                                "\"timestamp\":\"2024-06-27T12:00:00+00:00\","
                                "\"role\":\"assistant\",\"content\":\"x\"}")));
    hit.text = buf_str(&content);
    hit.at = (size_t)(str_find(hit.text, STR("word40")) - hit.text.p);
    hit.len = 6;
    browse_hits_add(&hits, 0, &hit);
    for (size_t width = 30; width < 100; width++) {
        struct browse_lines l = {0};
        struct buf marked = BUF_INIT(BUF_SMALL);

        browse_row_hit(&l, &hits.at[0], false, &(struct browse_rows){.columns = width});
        CHECK(str_starts(buf_str(&l.text),
                         width < 40 ? STR("24-06-27 asst ") : STR("2024-06-27 asst ")));
        CHECK(browse_line_columns(&l, 0) <= width);
        for (size_t i = 0; i < l.text.len; i++)
            if (l.styles[i] == BROWSE_HIT)
                buf_add_byte(&marked, l.text.data[i]);
        CHECK_STR(buf_c(&marked), "word40");
        buf_release(&marked);
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
    static const char keys[] = "jkJKgGhlnNzZrs/?dxYt woqY+Fi\t\r\x7f\x15\x04\x0e\x10";
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
            take_sessions(&b, state % 3 ? "abcdefghijklmnopqrstuv" : "cde");
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

/* ---- keys before the data is there */

static void press_special(struct browse *b, const char *word)
{
    static const struct {
        const char *name;
        int32_t key;
    } keys[] = {{"Down", BROWSE_KEY_DOWN},      {"Up", BROWSE_KEY_UP},
                {"Page", BROWSE_KEY_PAGE_DOWN}, {"Tab", BROWSE_KEY_TAB},
                {"Rub", BROWSE_KEY_BACKSPACE},  {"Esc", BROWSE_KEY_ESCAPE},
                {"Enter", BROWSE_KEY_ENTER}};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(word, keys[i].name) == 0) {
            CHECK_INT(browse_press(b, keys[i].key, 0), BROWSE_NOTHING);
            return;
        }
    printf("no step '%s'\n", word);
    CHECK(false);
}

static void check_text(const char *got, const char *want)
{
    CHECK_STR(got ? got : "none", want);
}

/* Does one step of `play`. */
static void step(struct browse *b, const char *word)
{
    unsigned from = 0, count = 0;

    if (word[0] == '(' || word[0] == '[') {
        char letters[40];

        snprintf(letters, sizeof letters, "%.*s", (int)strlen(word) - 2, word + 1);
        take_lists(b, letters, word[0] == '(');
    } else if (sscanf(word, "hits:%u+%u", &from, &count) == 2) {
        take_hits(b, b->search_number, from, count, false);
    } else if (sscanf(word, "done:%u+%u", &from, &count) == 2) {
        take_hits(b, b->search_number, from, count, true);
    } else if (sscanf(word, "read:%u", &count) == 1) {
        take_messages(b, count);
        do
            CHECK_INT(browse_go_on(b), BROWSE_NOTHING);
        while (browse_pane_is_counting(&b->pane));
    } else if (sscanf(word, "@%u", &count) == 1) {
        CHECK_INT(b->pane.at, count);
    } else if (sscanf(word, "#%u", &count) == 1) {
        CHECK_INT(browse_list(b)->at, count);
    } else if (word[0] == ':') {
        press(b, word + 1);
    } else if (word[0] == '=') {
        check_text(chosen(b), word + 1);
    } else if (word[0] == '>') {
        check_text(buf_c(&b->target.id), word + 1);
    } else if (strcmp(word, "list") == 0) {
        b->focus = BROWSE_LIST;
    } else if (strcmp(word, "text") == 0) {
        b->focus = BROWSE_TEXT;
    } else if (strcmp(word, "tick") == 0) {
        browse_tick(b, 1000000);
        CHECK_INT(browse_go_on(b), BROWSE_NOTHING);
    } else if (strcmp(word, "again") == 0) {
        browse_search(b, true);
    } else if (strcmp(word, "wait") == 0) {
        CHECK(b->waits.count > 0);
    } else if (strcmp(word, "none") == 0) {
        CHECK_INT(b->waits.count, 0);
    } else if (strcmp(word, "asked") == 0) {
        CHECK(b->mode == BROWSE_ASKING || b->mode == BROWSE_NAMING);
    } else if (strcmp(word, "normal") == 0) {
        CHECK_INT(b->mode, BROWSE_NORMAL);
    } else {
        press_special(b, word);
    }
}

/* Steps, separated by blanks: a key by its name; `:xyz` letters; `(abc)` a list of sessions, `[ab]`
 * one while other histories are still being read; `hits:0+3` hits, `done:3+1` the last ones;
 * `read:6` messages; `=sa` what is chosen, `>sa` whose messages are requested, `#1` its line, `@2`
 * the current message. */
static void play(struct browse *b, const char *steps)
{
    char words[400], *rest = words;

    snprintf(words, sizeof words, "%s", steps);
    for (char *word; (word = strsep(&rest, " "));) {
        step(b, word);
        if (test_failed) {
            printf("at '%s' of '%s'\n", word, steps);
            return;
        }
    }
}

static void play_new(const char *steps, const char *back)
{
    struct browse b;

    begin(&b);
    if (back) {
        buf_add_c(&b.back.session, back);
        b.back.list = true;
    }
    play(&b, steps);
    browse_release(&b);
}

TEST(keys_wait_for_what_they_need)
{
    static const char *const scripts[] = {
        /* The sessions: once, and nothing is above the first line and below the last. */
        "Down wait (abc) =sb >sb none (abc) =sb",
        "Up Up Down Down Up (abc) =sb",
        "Page Page () none (abc) =sa",
        "list :Gjkk (abcde) =sc",
        "list :jGgj (abcde) =sb",
        "list (abcde) :G =se",
        /* Hits, which come one by one at first; what is typed, or another role, is another list. */
        "(01) :t Down wait =s0 tick Down Down Down wait hits:0+1 hits:1+1 hits:2+1 hits:3+1 #3 "
        "wait "
        "done:4+3 #4 none :w Down Down :o Down tick done:0+9 #1 list :r Down Down :rrrr Down "
        "done:0+9 #1",
        "(012) Down Down :t tick Down hits:0+0 wait done:0+0 none Rub Up tick =s1",
        /* The last one, but not for ever. */
        "(01) :t tick list :G hits:0+1 hits:1+99 #0 wait hits:100+100000 #100099 none "
        "hits:100100+100 "
        "#100099",
        /* A search that is repeated waits for nothing, but not before its first answer. */
        "(01) :t tick again Down wait done:10+5 #1 again Down #2 none again Down #3 done:9+6 #4",
        "(01) :t tick done:0+5 :w tick again Down wait hits:20+2 #1",
        /* Messages: those of the session before are not meant, those of one that is left not
         * wanted. */
        "Down Tab Tab :JJK (abc) :Jj wait Tab read:6 none =sb @2",
        "(abc) read:6 Tab Tab :hjlJ @0 :hjlJ read:6 >sc @1",
        "(01) :two tick list :nn done:0+3 read:6 @2",
        "(01) :two tick list :J :r done:0+3 read:6 @0",
        /* A hit that was replaced is not in the messages that are there; one that is gone is not
         * awaited. */
        "(01) read:1 :two tick done:0+4 list Down text :Z wait read:3 none list Down Down text :Z "
        "wait "
        "read:3 none",
        /* A question, whose answer is no command, and which can be taken back. */
        "list Down :x normal (ab) asked",
        "list :d () normal none",
        "list :xjob.qed.md Enter (ab) asked",
        "list :dy (ab) asked",
        "list :d Esc none (ab) normal",
    };
    static const char *const left[][2] = {
        /* Keys continue from where the list was left; a list that is seen is moved in at once. */
        {"sc", "Up (abcde) =sb"},
        {"sd", "Down [abc] wait (abcdef) =se"},
        {"sd", "list :gj (abcdef) =sb"},
        {"sd", "[abc] Down =sb (abcdef) =sb"},
    };

    for (size_t i = 0; i < sizeof scripts / sizeof *scripts && !test_failed; i++)
        play_new(scripts[i], NULL);
    for (size_t i = 0; i < sizeof left / sizeof *left && !test_failed; i++)
        play_new(left[i][1], left[i][0]);
}

TEST(what_is_too_much_to_be_kept_is_lost)
{
    struct browse b;

    begin(&b);
    b.focus = BROWSE_TEXT;
    for (int i = 0; i < 2 * BROWSE_WAITS_MAX; i++)
        press(&b, "J");
    take_sessions(&b, "a");
    take_messages(&b, 2 * BROWSE_WAITS_MAX);
    browse_go_on(&b);
    CHECK_INT(b.pane.at, BROWSE_WAITS_MAX);
    browse_release(&b);
}

/* The next key cancels it, and so does the choice of another session by what happens to the
 * list. */
TEST(an_action_waits_for_its_message)
{
    struct browse b;

    begin(&b);
    play(&b, "list :y wait (ab) wait");
    take_messages(&b, 2);
    CHECK_INT(browse_go_on(&b), BROWSE_COPY);
    play(&b, ":j :f wait :n wait read:2 none");
    CHECK_STR(buf_c(&b.status), "there is nothing to look for: / finds in these messages");
    play(&b, "(abc) :j :L wait (ab) none");
    CHECK_STR(buf_c(&b.status), "given up: another session is chosen");
    browse_release(&b);
}

TEST(a_message_stays_chosen_when_more_of_the_file_is_read)
{
    play_new("list [a] read:2 :J (a) read:2 @1", NULL);
}

TEST(a_click_on_what_is_replaced_chooses_nothing)
{
    struct browse b;
    struct browse_areas a;

    begin(&b);
    b.choosing = true;
    take_sessions(&b, "0abc");
    take_messages(&b, 2);
    a = browse_areas(&b);
    browse_press(&b, 't', 0);
    CHECK_INT(browse_click(&b, a.list.row + 2, a.list.column + 1, true, 1000), BROWSE_NOTHING);
    CHECK_STR(chosen(&b), "s0");
    browse_release(&b);
    begin(&b);
    take_sessions(&b, "ab");
    take_messages(&b, 6);
    b.focus = BROWSE_LIST;
    press(&b, "j");
    (void)browse_click(&b, a.text.row + 6, a.text.column + 1, true, 0);
    CHECK_INT(b.waits.count, 0);
    browse_release(&b);
}

/* It was closed before its hits came: no message was chosen. */
TEST(a_search_that_was_left_early_shows_its_first_hit)
{
    struct browse b;

    begin(&b);
    buf_add_c(&b.back.session, "s1");
    b.back.list = true;
    browse_edit_set(&b.query, STR("two"));
    b.searching = true;
    browse_search(&b, false);
    play(&b, "(01) hits:0+1 =s0 >s0");
    CHECK(!b.back.list);
    browse_release(&b);
}

TEST(the_help_is_wrapped)
{
    struct browse_lines narrow = {0}, wide = {0};

    browse_help(&narrow, 40);
    browse_help(&wide, 200);
    CHECK(narrow.count > wide.count && wide.count > 20);
    for (size_t i = 0; i < narrow.count; i++)
        CHECK(browse_line_columns(&narrow, i) <= 40);
    browse_lines_release(&narrow);
    browse_lines_release(&wide);
}

TEST(the_hints_fit_and_tell_how_to_leave)
{
    for (int focus = BROWSE_BOX; focus <= BROWSE_TEXT; focus++) {
        size_t before = 0;

        for (size_t columns = 20; columns < 140; columns++) {
            struct buf text = BUF_INIT(BUF_SMALL);

            browse_hints(&text, (enum browse_focus)focus, false, false, columns);
            CHECK(text.len <= columns);
            CHECK(str_ends(buf_str(&text), STR("Esc close")));
            CHECK(strstr(buf_c(&text), "  Esc close") || columns < 26);
            before = text.len > before ? text.len : before;
            buf_release(&text);
        }
        CHECK(before > 50);
    }
}
