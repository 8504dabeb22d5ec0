#include "browse/model.h"

#include <stdint.h>
#include <stdlib.h>

#include "test.h"
#include "browse/view.h"

/* ---- what is passed in ---- */

/* Sessions s0, s1, … as the letters say, in that order. */
static void take_sessions(struct browse *b, const char *letters)
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
    browse_set_sessions(b, 0, &list);
    browse_finish_sessions(b);
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

/* Passes in a thread with its parts, and counts its hits. */
static void hand_in(struct browse *b, struct thread *t)
{
    struct browse_parts parts;

    browse_parts_make(&parts, t);
    browse_set_messages(b, t, &parts, false);
    while (browse_pane_is_counting(&b->pane))
        browse_pane_count(&b->pane);
}

/* Messages m0, m1, …: a header, three lines and a blank one each, user and assistant by turns. */
static void take_messages(struct browse *b, size_t count)
{
    struct thread t = {0};

    for (size_t i = 0; i < count; i++)
        add_message(&t, i, i % 2 ? "assistant" : "user", "one\\ntwo words\\nthree", "");
    hand_in(b, &t);
}

/* The next hits of the search: hit i is message m<from + i> of session s<i / 3>. */
static void take_hits(struct browse *b, size_t from, size_t count, bool done)
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
    browse_add_hits(b, &hits, BROWSE_FIT_MESSAGE, done);
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

static const char *chosen(const struct browse *b)
{
    static char text[24];
    size_t history;
    struct str id;

    if (!browse_chosen(b, &history, &id))
        return "none";
    snprintf(text, sizeof text, "%.*s", (int)id.n, id.p);
    return text;
}

/* ---- scripts ---- */

/* The keys that have to be pressed again when the command that is held was carried out. */
struct script {
    struct browse b;
    int32_t later[40];
    size_t later_count;
};

static void press_one(struct script *s, int32_t key)
{
    enum browse_command command = BROWSE_LATER;

    if (s->later_count == 0)
        command = browse_press(&s->b, key, 0);
    if (command == BROWSE_LATER)
        s->later[s->later_count++] = key;
    else
        CHECK_INT(command, BROWSE_NOTHING);
}

/* Does what the loop does when something was passed in. */
static void go_on(struct script *s)
{
    bool more = true;

    while (more) {
        int32_t later[40];
        size_t count = s->later_count;

        CHECK_INT(browse_go_on(&s->b), BROWSE_NOTHING);
        memcpy(later, s->later, sizeof later);
        s->later_count = 0;
        for (size_t i = 0; i < count; i++)
            press_one(s, later[i]);
        more = s->later_count < count;
    }
}

static void press_special(struct script *s, const char *word)
{
    static const struct {
        const char *name;
        int32_t key;
    } keys[] = {
        {"Down", BROWSE_KEY_DOWN},      {"Up", BROWSE_KEY_UP},      {"Page", BROWSE_KEY_PAGE_DOWN},
        {"PageUp", BROWSE_KEY_PAGE_UP}, {"Half", BROWSE_CTRL('d')}, {"Tab", BROWSE_KEY_TAB},
        {"Rub", BROWSE_KEY_BACKSPACE},  {"Esc", BROWSE_KEY_ESCAPE}, {"Enter", BROWSE_KEY_ENTER}};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(word, keys[i].name) == 0) {
            press_one(s, keys[i].key);
            return;
        }
    printf("no step '%s'\n", word);
    CHECK(false);
}

/* Checks a text, in which `_` stands for a blank. */
static void check_text(const char *got, const char *want)
{
    char text[200];

    snprintf(text, sizeof text, "%s", got ? got : "none");
    for (char *c = text; *c; c++)
        *c = *c == ' ' ? '_' : *c;
    CHECK_STR(text, want);
}

static void check_title(const struct browse *b, const char *want)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    browse_title_list(&text, b);
    check_text(buf_c(&text), want);
    buf_release(&text);
}

/* A step that checks something. Returns false for another one. */
static bool check_step(struct browse *b, const char *word)
{
    unsigned number = 0;

    if (sscanf(word, "@%u", &number) == 1)
        CHECK_INT(b->pane.at, number);
    else if (sscanf(word, "#%u", &number) == 1)
        CHECK_INT(browse_list(b)->at, number);
    else if (sscanf(word, "^%u", &number) == 1)
        CHECK_INT(browse_list(b)->top, number);
    else if (sscanf(word, "count:%u", &number) == 1)
        CHECK_INT(browse_list_count(b), number);
    else if (sscanf(word, "hit:%u", &number) == 1)
        CHECK_INT(b->pane.has_hit ? b->pane.hit : SIZE_MAX, number);
    else if (word[0] >= '0' && word[0] <= '9')
        check_text(seen(b, (size_t)atoi(word)), strchr(word, ':') + 1);
    else if (word[0] == '=')
        check_text(chosen(b), word + 1);
    else if (word[0] == '>')
        check_text(buf_c(&b->shown.id), word + 1);
    else if (word[0] == '"')
        check_text(buf_c(&b->status), word + 1);
    else if (word[0] == '_')
        check_title(b, word);
    else if (strcmp(word, "held") == 0)
        CHECK(b->waiting != 0);
    else if (strcmp(word, "none") == 0)
        CHECK_INT(b->waiting, 0);
    else if (strcmp(word, "wanted") == 0)
        CHECK(b->wants.messages);
    else if (strcmp(word, "unwanted") == 0)
        CHECK(!b->wants.messages);
    else if (strcmp(word, "asked") == 0)
        CHECK(b->mode == BROWSE_ASKING || b->mode == BROWSE_NAMING);
    else if (strcmp(word, "helping") == 0)
        CHECK_INT(b->mode, BROWSE_HELPING);
    else if (strcmp(word, "normal") == 0)
        CHECK_INT(b->mode, BROWSE_NORMAL);
    else
        return false;
    return true;
}

static void step(struct script *s, const char *word)
{
    struct browse *b = &s->b;
    unsigned from = 0, count = 0;

    if (check_step(b, word))
        return;
    if (word[0] == '(') {
        char letters[40];

        snprintf(letters, sizeof letters, "%.*s", (int)strlen(word) - 2, word + 1);
        take_sessions(b, letters);
    } else if (sscanf(word, "hits:%u+%u", &from, &count) == 2) {
        take_hits(b, from, count, false);
    } else if (sscanf(word, "done:%u+%u", &from, &count) == 2) {
        take_hits(b, from, count, true);
    } else if (sscanf(word, "read:%u", &count) == 1) {
        take_messages(b, count);
    } else if (word[0] == ':') {
        for (word++; *word; word++)
            press_one(s, *word);
        return;
    } else if (strcmp(word, "list") == 0) {
        b->focus = BROWSE_LIST;
    } else if (strcmp(word, "text") == 0) {
        b->focus = BROWSE_TEXT;
    } else if (strcmp(word, "tick") == 0) {
        browse_tick(b, 1000000);
    } else if (strcmp(word, "again") == 0) {
        browse_search(b, true);
    } else {
        press_special(s, word);
        return;
    }
    go_on(s);
}

/* Plays steps, separated by blanks: a key by its name; `:xyz` letters; `(abc)` a list of sessions;
 * `hits:0+3` hits, `done:3+1` the last ones; `read:6` messages. `=sa` checks what is chosen, `>sa`
 * whose messages are shown or wanted, `#1` the chosen line, `^2` the first visible one, `count:3`
 * the number of lines, `@2` the current message, `hit:2` the one with the current hit, `0:text` a
 * row of the messages, `"text` the foot, `_text_` the title of the list. */
static void play(const char *steps, const char *back)
{
    struct script s = {.later_count = 0};
    char words[400], *rest = words;

    begin(&s.b);
    if (back) {
        buf_add_c(&s.b.back.session, back);
        s.b.back.list = true;
    }
    snprintf(words, sizeof words, "%s", steps);
    for (char *word; !test_failed && (word = strsep(&rest, " "));) {
        step(&s, word);
        if (test_failed)
            printf("at '%s' of '%s'\n", word, steps);
    }
    browse_release(&s.b);
}

static void play_all(const char *const *scripts, size_t count)
{
    for (size_t i = 0; i < count && !test_failed; i++)
        play(scripts[i], NULL);
}

#define PLAY(...)                                                                                  \
    play_all((const char *const[]){__VA_ARGS__},                                                   \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- the list ---- */

TEST(keys_move_through_the_list)
{
    PLAY("=none (abc) =sa >sa wanted read:2 unwanted 1:one",
         "(abcdefghijklmnopqrstuvwxyz) Down #1 list :jjk #2 Page #11 ^2 :G #25 ^16 :j #25 :g #0 "
         "Half #5");
}

/* Another order begins at its first line, and stays when the list is read again. */
TEST(a_key_changes_the_order_of_the_sessions)
{
    PLAY("(acb) _sessions_ list :jo =sb \"oldest_first _sessions,_oldest_first_ :j (dacb) =sc #1 "
         ":o _sessions,_longest_first_ =sd :o _sessions,_by_title_ =sa :o _sessions_ =sd");
}

/* At the top new sessions are seen; one that is gone leaves its place to another. */
TEST(a_list_that_grows_keeps_its_place)
{
    PLAY("(abcdefghijklmnopqrst) list :jjjjjjjjjjjjkk #10 ^3 read:1 (zyabcdefghijklmnopqrst) #12 "
         "^5 unwanted :g (xzyabcdefghijklmnopqrst) #1 ^0 (xyabc) #1 () #0 0:none");
}

/* ---- messages ---- */

TEST(messages_scroll_to_their_ends_and_not_beyond)
{
    PLAY("(a) read:6 text @0 :jj 0:two_words :kkkkk 1:one :G 9: 8:three @5 :jjjj 8:three PageUp "
         "0:one :g 1:one",
         /* The message that is acted on is seen. */
         "(a) read:6 text :J @1 1:one :JJ @3 1:one :kkkkkkkkkkkkkkk @1 :KK @0",
         /* A session that grows keeps its place. */
         "(a) read:6 text :jjjjjjj 0:two_words read:9 0:two_words @1");
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
    hand_in(&b, &t);
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

/* ---- searching ---- */

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

TEST(a_hit_shows_its_message)
{
    /* From hit to hit, round the end; before the first one is the session above. */
    PLAY("(01) read:6 :two tick _searching…_ done:0+6 >s0 read:6 list :jj @2 hit:2 :j >s1 read:6 "
         "hit:3 @3 :nn hit:5 :n hit:0 :N >s0",
         /* The hits of a search take the place of those of the one before. */
         "(01) :t tick count:2 hits:0+3 count:3 done:3+2 count:5 :w tick count:5 done:0+1 count:1",
         /* An empty search shows the sessions again. */
         "(01) Down :t tick done:0+6 Rub tick count:2 #1 >s1",
         "(01) read:3 :x tick done:0+0 _no_hit_ 0:none text :nNjkJKgGzZ");
}

TEST(another_size_keeps_the_message_of_the_hit)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "0");
    press(&b, "two");
    browse_tick(&b, INT64_MAX);
    take_hits(&b, 0, 3, true);
    take_messages(&b, 6);
    b.focus = BROWSE_LIST;
    press(&b, "j");
    for (size_t rows = 6; rows < 14; rows++) {
        browse_resize(&b, rows, rows * 7);
        CHECK_INT(b.pane.at, 1);
        CHECK_INT(b.pane.hit, 1);
    }
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
    press(&b, "two");
    browse_tick(&b, INT64_MAX);
    take_hits(&b, 0, 3, true);
    CHECK_STR(buf_c(&b.shown.id), "s0");
    take_messages(&b, 2);
    b.focus = BROWSE_LIST;
    press(&b, "j");
    CHECK(!b.wants.messages);
    press(&b, "j");
    CHECK(b.wants.messages);
    CHECK(str_eq(browse_chosen_hit(&b), STR("m2")));
    for (size_t i = 0; i < 4; i++)
        add_message(&t, i, "user", "one two", "");
    browse_parts_make(&parts, &t);
    browse_set_messages(&b, &t, &parts, true);
    CHECK(b.every);
    CHECK_INT(b.pane.at, 2);
    CHECK_INT(b.pane.hit, 2);
    /* Another one may be of the thread, and no hit is. */
    press(&b, "k");
    CHECK(b.wants.messages);
    CHECK(str_eq(browse_chosen_hit(&b), STR("m1")));
    CHECK_INT(b.pane.at, 1);
    take_messages(&b, 2);
    CHECK(!b.every);
    CHECK_INT(b.pane.at, 1);
    /* What was changed is read again, of that history alone. */
    browse_changed(&b, 1);
    CHECK(!b.wants.messages);
    browse_changed(&b, 0);
    CHECK(b.wants.messages);
    browse_release(&b);
}

TEST(more_hits_are_wanted_near_the_end)
{
    struct browse b;

    begin(&b);
    take_sessions(&b, "01");
    press(&b, "t");
    browse_tick(&b, INT64_MAX);
    CHECK_INT(b.hits_wanted, BROWSE_HITS_FIRST);
    take_hits(&b, 0, 300, false);
    b.focus = BROWSE_LIST;
    press(&b, "j");
    CHECK_INT(b.hits_wanted, BROWSE_HITS_FIRST);
    press(&b, "G");
    CHECK_INT(browse_go_on(&b), BROWSE_NOTHING);
    CHECK_INT(b.hits_wanted, BROWSE_HITS_MAX);
    browse_release(&b);
}

/* The session of one hit is after those of three; the top stays chosen while more are read. */
TEST(the_session_with_the_most_hits_is_first)
{
    PLAY("(0123) :t tick hits:2+4 =s0 _hits_ list :o =s1 _hits,_most_hits_first_ "
         "\"the_session_with_the_most_hits_first hits:6+3 hits:6+2 =s2 #0 :j held done:9+1 none #1 "
         ":o =s0 _hits_");
}

/* A hit that is gone leaves its place to another. */
TEST(the_same_search_again_keeps_the_place)
{
    PLAY("(01) :t tick done:10+30 list :jjjjjjjjjjjjjjj #15 ^6 again count:30 done:8+32 count:32 "
         "#17 ^8 again done:100+40 #17");
}

/* ---- what is left to the caller ---- */

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
    CHECK_STR(chosen(&b), "sa");
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
    take_hits(&b, 0, 9, true);
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_NOTHING);
    CHECK_INT(b.focus, BROWSE_TEXT);
    take_messages(&b, 3);
    press(&b, "r");
    take_hits(&b, 3, 6, true);
    take_messages(&b, 3);
    press(&b, "/two");
    CHECK_INT(browse_press(&b, BROWSE_KEY_ENTER, 0), BROWSE_NOTHING);
    CHECK(b.found && browse_is_looking(&b));
    while (browse_pane_is_counting(&b.pane))
        browse_pane_count(&b.pane);
    CHECK_INT(browse_go_on(&b), BROWSE_NOTHING);
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
    CHECK_STR(chosen(&b), "s1");
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

/* ---- the screen ---- */

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
        if (state % 5 == 0 && b.wants.messages)
            take_messages(&b, (state >> 20) % 9);
        if (state % 4 == 0 && b.wants.search) {
            take_hits(&b, 0, (state >> 18) % 40, state % 2);
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

/* ---- keys before the data is there ---- */

TEST(a_key_waits_for_what_it_needs)
{
    PLAY(/* The sessions; nothing is above the first line and below the last. */
         "Down held (abc) =sb >sb none", "Up Up Down Down Up (abc) =sb",
         "Page Page () none =none (abc) =sa", "list :Gjkk (abcde) =sc", "list :jGgj (abcde) =sb",
         /* Hits, in the order of the keys. Typing another text drops the key. */
         "(01) :t Down held =s0 tick Down Down Down hits:0+1 #0 held hits:1+1 #1 hits:2+1 hits:3+1 "
         "#3 held done:4+3 #4 none :w Down :o none tick done:0+9 #0 list :r Down done:0+9 #1",
         "(012) Down Down :t tick Down held done:0+0 none Rub Up tick =s1",
         /* The last one, of as many as are read, unless the first one is wanted instead. */
         "(01) :t tick list :G hits:0+1 hits:1+99 :kkj #0 held done:100+3 #101 none",
         "(01) :t tick list :jjG :gj hits:0+9 #1 none :G held Esc none #0",
         "(01) :t tick list :G hits:0+1 hits:1+99 #0 held hits:100+100000 #100099 none "
         "hits:100100+100 #100099",
         /* A search that is repeated keeps its list, but not before its first answer. */
         "(01) :t tick again Down held done:10+5 #1 again Down #2 none again Down #3 done:9+6 #4",
         "(01) :t tick done:0+5 :w tick again Down held done:20+2 #1",
         /* Messages, also when another key was pressed first. */
         "Down Tab Tab :JJK (abc) read:6 none =sb @1", "(abc) read:6 Tab Tab :hjlJ read:6 >sb @1",
         "(01) :two tick list :nn done:0+3 read:6 @2",
         /* A hit that was replaced is not in the messages that are there. */
         "(01) read:1 :two tick done:0+4 read:1 list Down wanted text :Z held read:3 none",
         /* A question, whose answer is no command, and which can be taken back. */
         "list Down :x normal (ab) asked", "list :d () normal none",
         "list :xjob.qed.md Enter (ab) asked", "list :dy (ab) asked",
         "list :d Esc none (ab) normal",
         /* The help screen comes at once; the key waits until it is closed. */
         "list :J? (ab) helping :q normal read:3 none @1");
}

/* Keys continue from where the list was left. */
TEST(the_line_of_the_last_visit_comes_first)
{
    play("Up (abcde) =sb", "sc");
    play("list :gj (abcdef) =sb", "sd");
    play("(abc) =sa Down =sb (abcdef) =sb", "sd");
}

TEST(the_next_key_cancels_an_action_that_is_held)
{
    struct browse b;

    begin(&b);
    b.focus = BROWSE_LIST;
    press(&b, "y");
    take_sessions(&b, "ab");
    CHECK_INT(browse_go_on(&b), BROWSE_NOTHING);
    take_messages(&b, 2);
    CHECK_INT(browse_go_on(&b), BROWSE_COPY);
    press(&b, "jf");
    CHECK_INT(b.waiting, 'f');
    press(&b, "n");
    CHECK_INT(b.waiting, 'n');
    take_messages(&b, 2);
    CHECK_INT(browse_go_on(&b), BROWSE_NOTHING);
    CHECK_STR(buf_c(&b.status), "there is nothing to look for: / finds in these messages");
    browse_release(&b);
}

TEST(a_click_on_a_list_that_is_replaced_chooses_nothing)
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
    CHECK_INT(b.waiting, 0);
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
    take_sessions(&b, "01");
    take_hits(&b, 0, 1, false);
    CHECK_STR(chosen(&b), "s0");
    CHECK_STR(buf_c(&b.shown.id), "s0");
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
