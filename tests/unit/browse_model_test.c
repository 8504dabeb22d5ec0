#include "browse/model.h"

#include <stdint.h>
#include <stdlib.h>

#include "test.h"
#include "browse/view.h"

/* ---- data ---- */

/* Sessions s0, s1, … as the letters say, in that order. */
static void take_sessions(struct browse *b, const char *letters)
{
    struct session_list list = {0};
    size_t left = strlen(letters);

    for (const char *letter = letters; *letter; letter++) {
        struct str id = {(char[]){'s', *letter}, 2};
        struct session *s = session_list_add(&list);

        s->id = s->preview = session_list_copy(&list, id);
        s->last_used = session_list_copy(&list, STR("2024-06-27T10:00:00+00:00"));
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
static void hand_in(struct browse *b, struct thread *t, bool every)
{
    struct browse_parts parts;

    browse_parts_make(&parts, t);
    browse_set_messages(b, t, &parts, every);
    while (browse_pane_is_counting(&b->pane))
        browse_pane_count(&b->pane);
}

/* Messages m0, m1, …: a header, three lines and a blank one each, user and assistant by turns. */
static void take_messages(struct browse *b, size_t count, bool every)
{
    struct thread t = {0};

    for (size_t i = 0; i < count; i++)
        add_message(&t, i, i % 2 ? "assistant" : "user", "one\\ntwo words\\nthree", "");
    hand_in(b, &t, every);
}

/* The next hits of the search: hit i is message m<from + i> of session s<i / 3>. */
static void take_hits_of(struct browse *b, size_t from, size_t count, bool done, const char *role)
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
                 "{\"id\":\"m%zu\",\"session_id\":\"s%zu\",\"timestamp\":\"t\",\"role\":\"%s\","
                 "\"content\":\"x\"}",
                 i, i / 3, role);
        CHECK(message_parse(&m, str_of(line)));
        browse_hits_add(&hits, 0, &hit);
        message_release(&m);
    }
    browse_add_hits(b, &hits, BROWSE_FIT_MESSAGE, done);
}

static void take_hits(struct browse *b, size_t from, size_t count, bool done)
{
    take_hits_of(b, from, count, done, "user");
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

struct script {
    struct browse b;
    enum browse_command command; /* the last one that was returned; a step has to check it */
    int64_t now;
};

static void press_one(struct script *s, int32_t key)
{
    CHECK_INT(s->command, BROWSE_NOTHING);
    s->command = browse_press(&s->b, key, s->now);
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

static void check_line(const struct browse *b, void (*add)(struct buf *out, const struct browse *b),
                       const char *want)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    add(&text, b);
    check_text(buf_c(&text), want);
    buf_release(&text);
}

/* Names of numbers in steps. */
struct name {
    const char *name;
    int32_t number;
};
#define NAME(name, number)                                                                         \
    {                                                                                              \
        name, (int32_t)(number)                                                                    \
    }

static const struct name key_names[] = {
    NAME("Down", BROWSE_KEY_DOWN),      NAME("Up", BROWSE_KEY_UP),
    NAME("Page", BROWSE_KEY_PAGE_DOWN), NAME("PageUp", BROWSE_KEY_PAGE_UP),
    NAME("Half", BROWSE_CTRL('d')),     NAME("Tab", BROWSE_KEY_TAB),
    NAME("Rub", BROWSE_KEY_BACKSPACE),  NAME("Esc", BROWSE_KEY_ESCAPE),
    NAME("Enter", BROWSE_KEY_ENTER),    NAME("Blank", ' '),
    NAME("Cut", BROWSE_CTRL('u')),      NAME("Stop", BROWSE_CTRL('z')),
    NAME("Ctrl-C", BROWSE_CTRL('c')),   NAME("Redraw", BROWSE_CTRL('l')),
};
static const struct name commands[] = {
    NAME("!load", BROWSE_LOAD),
    NAME("!prompt", BROWSE_PROMPT),
    NAME("!copy", BROWSE_COPY),
    NAME("!pager", BROWSE_PAGER),
    NAME("!editor", BROWSE_EDITOR),
    NAME("!fork", BROWSE_FORK),
    NAME("!chat", BROWSE_CHAT),
    NAME("!close", BROWSE_CLOSE),
    NAME("!cancel", BROWSE_CANCEL),
    NAME("!suspend", BROWSE_SUSPEND),
    NAME("!enter", BROWSE_ENTER),
    NAME("!delete", BROWSE_DELETE),
    NAME("!export", BROWSE_EXPORT),
    NAME("!overwrite", BROWSE_OVERWRITE),
    NAME("!copy-code", BROWSE_COPY_CODE),
    NAME("!copy-id", BROWSE_COPY_ID),
    NAME("!copy-session", BROWSE_COPY_SESSION),
    NAME("!redraw", BROWSE_REDRAW),
};
static const struct name modes[] = {
    NAME("normal", BROWSE_NORMAL), NAME("helping", BROWSE_HELPING), NAME("asking", BROWSE_ASKING),
    NAME("naming", BROWSE_NAMING), NAME("finding", BROWSE_FINDING), NAME("copying", BROWSE_COPYING),
};
static const struct name focuses[] = {NAME("in-box", BROWSE_BOX), NAME("in-list", BROWSE_LIST),
                                      NAME("in-text", BROWSE_TEXT)};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static const struct name *find_name(const struct name *names, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i].name, word) == 0)
            return &names[i];
    return NULL;
}

static size_t count_subjects(const struct browse *b)
{
    size_t count = 0, history;
    struct str id;

    while (browse_subject(b, count, &history, &id))
        count++;
    return count;
}

/* A step that checks a number. Returns false for another one. */
static bool check_number(const struct browse *b, const char *word)
{
    const struct {
        const char *prefix;
        size_t is;
    } numbers[] = {
        {"@", b->pane.at},
        {"#", browse_list(b)->at},
        {"^", browse_list(b)->top},
        {"count:", browse_list_count(b)},
        {"hit:", b->pane.has_hit ? b->pane.hit : SIZE_MAX},
        {"wants:", b->hits_wanted},
        {"help:", b->help_top},
        {"marked:", b->marks.marked},
        {"deleted:", b->marks.deleted},
        {"subjects:", count_subjects(b)},
    };
    const struct name *name;

    for (size_t i = 0; i < COUNT(numbers); i++)
        if (strncmp(word, numbers[i].prefix, strlen(numbers[i].prefix)) == 0) {
            CHECK_INT(numbers[i].is, atoi(word + strlen(numbers[i].prefix)));
            return true;
        }
    if ((name = find_name(modes, COUNT(modes), word)))
        CHECK_INT(b->mode, name->number);
    else if ((name = find_name(focuses, COUNT(focuses), word)))
        CHECK_INT(b->focus, name->number);
    return name != NULL;
}

/* A step that checks a condition. Returns false for another one. */
static bool check_condition(const struct browse *b, const char *word)
{
    const struct {
        const char *name;
        bool is;
    } conditions[] = {
        {"waits", b->ahead_count > 0}, {"none", b->ahead_count == 0},
        {"wanted", b->wants.messages}, {"unwanted", !b->wants.messages},
        {"search", b->wants.search},   {"no-search", !b->wants.search},
        {"every", b->every},           {"thread", !b->every},
        {"zoomed", b->zoomed},         {"unzoomed", !b->zoomed},
        {"found", b->found},           {"unfound", !b->found},
        {"searching", b->searching},   {"sessions", !b->searching},
        {"wrong", b->wrong.len > 0},   {"right", b->wrong.len == 0},
        {"back", b->back.list},        {"no-back", !b->back.list},
        {"deletes", b->deletes},       {"stays", !b->deletes},
    };

    for (size_t i = 0; i < COUNT(conditions); i++)
        if (strcmp(conditions[i].name, word) == 0) {
            CHECK(conditions[i].is);
            return true;
        }
    return false;
}

/* A step that checks a text. Returns false for another one. */
static bool check_words(struct browse *b, const char *word)
{
    const char *value = strchr(word, ':');
    const struct {
        const char *prefix, *is;
    } texts[] = {
        {"role:", b->role},
        {"name:", buf_c(&b->name.text)},
        {"subject:", buf_c(&b->subject.id)},
        {"searched:", buf_c(&b->searched)},
        {"=", chosen(b)},
        {">", buf_c(&b->shown.id)},
        {"\"", buf_c(&b->status)},
    };

    for (size_t i = 0; i < COUNT(texts); i++)
        if (strncmp(word, texts[i].prefix, strlen(texts[i].prefix)) == 0) {
            check_text(texts[i].is, word + strlen(texts[i].prefix));
            return true;
        }
    if (word[0] >= '0' && word[0] <= '9')
        check_text(seen(b, (size_t)atoi(word)), value + 1);
    else if (word[0] == '_')
        check_line(b, browse_title_list, word);
    else if (strncmp(word, "foot:", 5) == 0)
        check_line(b, browse_foot, value + 1);
    else if (strncmp(word, "box:", 4) == 0)
        check_line(b, browse_title_box, value + 1);
    else
        return false;
    return true;
}

/* A step that passes something in. Returns false for another one. */
static bool pass_in(struct script *s, const char *word)
{
    struct browse *b = &s->b;
    unsigned from = 0, count = 0;

    if (word[0] == '(') {
        char letters[40];

        snprintf(letters, sizeof letters, "%.*s", (int)strlen(word) - 2, word + 1);
        take_sessions(b, letters);
    } else if (sscanf(word, "hits:%u+%u", &from, &count) == 2) {
        take_hits(b, from, count, false);
    } else if (sscanf(word, "tools:%u+%u", &from, &count) == 2) {
        take_hits_of(b, from, count, false, "tool");
    } else if (sscanf(word, "done:%u+%u", &from, &count) == 2) {
        take_hits(b, from, count, true);
    } else if (sscanf(word, "read:%u", &count) == 1) {
        take_messages(b, count, false);
    } else if (sscanf(word, "read-all:%u", &count) == 1) {
        take_messages(b, count, true);
    } else if (sscanf(word, "changed:%u", &from) == 1) {
        browse_changed(b, from);
    } else if (strcmp(word, "tick") == 0) {
        browse_tick(b, INT64_MAX);
    } else if (sscanf(word, "tick:%u", &from) == 1) {
        browse_tick(b, from);
    } else if (strcmp(word, "again") == 0) {
        browse_search(b, true);
    } else if (sscanf(word, "size:%ux%u", &from, &count) == 2) {
        browse_resize(b, from, count);
    } else {
        return false;
    }
    if (s->command == BROWSE_NOTHING)
        s->command = browse_go_on(b);
    return true;
}

static void step(struct script *s, const char *word)
{
    const struct name *name = find_name(key_names, COUNT(key_names), word);
    struct browse *b = &s->b;
    unsigned row = 0, column = 0;
    int lines = 0;

    if (name) {
        press_one(s, name->number);
    } else if ((name = find_name(commands, COUNT(commands), word))) {
        CHECK_INT(s->command, name->number);
        s->command = BROWSE_NOTHING;
    } else if (word[0] == ':') {
        for (word++; *word; word++)
            press_one(s, *word);
    } else if (sscanf(word, "now:%u", &row) == 1) {
        s->now = row;
    } else if (sscanf(word, "click:%u,%u", &row, &column) == 2) {
        s->command = browse_click(b, row, column, false, s->now);
    } else if (sscanf(word, "twice:%u,%u", &row, &column) == 2) {
        s->command = browse_click(b, row, column, true, s->now);
    } else if (sscanf(word, "wheel:%u,%u,%d", &row, &column, &lines) == 3) {
        browse_wheel(b, row, column, lines);
    } else if (strcmp(word, "paste") == 0) {
        browse_paste(b, 'p', s->now);
    } else if (strcmp(word, "begins") == 0) {
        b->searching = true; /* as with a text on the command line */
    } else if (strcmp(word, "list") == 0) {
        b->focus = BROWSE_LIST;
    } else if (strcmp(word, "text") == 0) {
        b->focus = BROWSE_TEXT;
    } else if (strcmp(word, "choosing") == 0) {
        b->choosing = true;
    } else if (strcmp(word, "for-chat") == 0) {
        b->for_chat = true;
    } else if (strcmp(word, "overwrite") == 0) {
        browse_ask(b, BROWSE_OVERWRITE);
    } else if (!check_number(b, word) && !check_condition(b, word) && !check_words(b, word) &&
               !pass_in(s, word)) {
        printf("no step '%s'\n", word);
        CHECK(false);
    }
}

/* Plays steps, separated by blanks.
 *
 * Input: a key by its name; `:xyz` letters; `paste` one letter; `click:ROW,COLUMN`, `twice:`,
 * `wheel:ROW,COLUMN,LINES`; `now:60` the time of the next ones. `!load` is the command that the
 * input before it returned. Data: `(abc)` a list of sessions; `hits:0+3` hits, `done:3+1` the last
 * ones, `tools:3+1` results of tools; `read:6` messages. Checks: `=sa` the chosen session, `>sa` the one whose messages are shown
 * or wanted, `#1` the chosen line, `^2` the first visible one, `count:3` the number of lines, `@2`
 * the current message, `hit:2` the one with the current hit, `0:text` a row of the messages,
 * `"text` and `foot:text` the foot, `_text_` the title of the list, and the words in the tables
 * above. */
static void play(const char *steps, const char *back)
{
    struct script s = {.now = 0};
    char words[1200], *rest = words;

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
    CHECK_INT(s.command, BROWSE_NOTHING);
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
    PLAY("(a) read:6 text :r role:user 5:user__2024-06-27_10:00 :J @2 :r role:assistant @1 "
         "0:assistant__2024-06-27_10:00 :r role:system 0:none :JKjkgGnz :rr role:none 1:one");
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
    hand_in(&b, &t, false);
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
    PLAY("(ab) now:1000 :t now:1030 :w tick:1070 no-search tick:1090 search searched:tw",
         "(ab) :t tick search searched:t done:0+1 :u tick searched:tu");
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

/* It takes long: the hits of the text before it are gone at once. */
TEST(a_search_by_meaning_keeps_no_hits_of_another)
{
    PLAY("(01) :t tick done:0+3 read:6 count:3 Cut :~t tick searching count:0 0:none "
         "_hits,_searching…_ done:3+1 count:1 Cut :~u tick count:0 Cut tick count:2 sessions");
}

TEST(another_size_keeps_the_message_of_the_hit)
{
    PLAY("(0) :two tick done:0+3 read:6 list :j size:6x42 @1 hit:1 size:7x49 @1 size:8x56 @1 hit:1 "
         "size:9x63 @1 size:10x70 @1 hit:1 size:11x77 @1 size:12x84 @1 size:13x91 @1 hit:1");
}

TEST(a_hit_that_was_replaced_is_asked_for_among_every_line)
{
    PLAY("(0) read:2 :two tick done:0+3 >s0 read:2 list :j unwanted :j wanted read-all:4 every @2 "
         "hit:2 :k wanted @1 read:2 thread @1 changed:1 unwanted changed:0 wanted");
}

TEST(more_hits_are_wanted_near_the_end)
{
    PLAY("(01) :t tick wants:300 hits:0+300 list :j wants:300 :G waits wants:100000");
}

/* The session of one hit is after those of three; the top stays chosen while more are read. */
TEST(the_session_with_the_most_hits_is_first)
{
    PLAY(
        "(0123) :t tick hits:2+4 =s0 _hits_ list :o =s1 _hits,_most_hits_first_ "
        "\"the_session_with_the_most_hits_first hits:6+3 hits:6+2 =s2 #0 :j waits done:9+1 none #1 "
        ":o =s0 _hits_");
}

/* A hit that is gone leaves its place to another. */
TEST(the_same_search_again_keeps_the_place)
{
    PLAY("(01) :t tick done:10+30 list :jjjjjjjjjjjjjjj #15 ^6 again count:30 done:8+32 count:32 "
         "#17 ^8 again done:100+40 #17");
}

/* Enter or z unfolds; the line of folded results shows the first of them. */
TEST(results_of_tools_fold_in_the_list)
{
    /* One result alone is not folded, nor is the first hit. */
    PLAY("(01) :t tick tools:1+2 hits:0+1 tools:3+2 done:5+1 count:6",
         "(01) :t tick hits:0+1 tools:1+2 tools:4+2 done:3+1 count:5 box:1/6 list read:6 :j #1 "
         "@1 hit:1 Enter in-list count:6 #1 :j #2 @2 :z count:5 #1 :Z count:6 #1 :z count:5 :G "
         "#4 =s1 box:6/6",
         /* A folded list asks for more hits as one that is not. */
         "(01) :t tick wants:300 hits:0+1 tools:1+299 list :G waits wants:100000",
         /* n goes to the next session, not to what is folded. */
         "(01) :two tick hits:0+1 hits:3+1 tools:4+2 done:1+1 count:4 read:6 text :nnnnnn >s1 #2");
}

/* ---- commands for the caller ---- */

TEST(commands_are_returned)
{
    PLAY("(ab) read:3 Enter in-text :L !load :p !prompt :y !copy :v !pager :e !editor :f !fork "
         ":c !chat Enter !load :Ym !copy :Yc !copy-code :Yi !copy-id :Ys !copy-session :Yx normal "
         "Esc in-list Esc !close Ctrl-C !cancel Stop !suspend",
         "(ab) read:3 choosing Enter !enter list Enter !enter text Enter !enter for-chat Enter "
         "!prompt :c !load");
}

/* Until the browser is left, `u` takes back one command after the other. */
TEST(to_delete_is_asked_when_the_browser_is_left)
{
    PLAY("list () :d normal \"there_is_no_session_to_delete (abc) :d "
         "\"'sa'_is_deleted_when_you_leave;_u:_undo deleted:1 #1 _sessions__1_to_delete_ :q asking "
         "foot:delete_'sa',_7_messages?_y:_for_ever__n:_keep__Esc:_back Esc normal deleted:1 stays "
         ":jd deleted:2 :Q foot:delete_2_sessions,_14_messages?_y:_for_ever__n:_keep__Esc:_back :x "
         "normal :u \"'sc'_stays deleted:1 #2 :u #0 :u \"there_is_nothing_to_undo deleted:0 :q "
         "!close "
         "stays",
         "list (ab) :dd deleted:2 :Q :y !close deletes deleted:2",
         "list (ab) :d :Q :n !close stays deleted:0", "list (ab) :d Ctrl-C !cancel stays deleted:1",
         "list (ab) :d :Q Ctrl-C !cancel stays", "list (ab) :d :Q paste asking",
         /* The chosen one alone stays after another d, also from its messages. */
         "(ab) read:2 text :d deleted:1 =sa :d \"'sa'_stays deleted:0",
         /* It is not used meanwhile. */
         "(ab) read:2 text :d :L \"this_session_is_to_be_deleted;_d_keeps_it :c Enter :p asking :y "
         "!prompt deletes");
}

/* In the list actions are on the marked sessions, in the messages on the one that is shown. */
TEST(sessions_are_marked)
{
    PLAY("list (abc) Blank marked:1 #1 _sessions__1_marked_ Blank Blank marked:3 #2 :* marked:0 :* "
         "marked:3 :ggd deleted:3 marked:0 \"3_sessions_are_deleted_when_you_leave;_u:_undo :u "
         "\"3_sessions_stay deleted:0",
         "list (abc) Blank :j read:2 :x name:sessions.md subjects:1 Enter !export :Yi !copy-id "
         "subjects:1",
         "list (abc) Blank Blank read:2 :y !copy subjects:2 text :y !copy subjects:1 :d deleted:1 "
         "marked:2",
         "list (abc) Blank Blank read:2 choosing Enter !enter subjects:2 for-chat Enter !enter "
         "subjects:1 :p !prompt subjects:2",
         /* In a list of hits the next session follows; all hits are awaited. */
         "(01) :t tick hits:0+7 list Blank #3 =s1 Blank #6 Blank marked:3 :* waits done:7+2 none "
         "marked:0 :* marked:3",
         "list :* waits :g waits (ab) none marked:2",
         /* A list that is read again keeps them. */
         "list (abc) Blank (zabc) marked:1 :* marked:4");
}

/* Whatever becomes of the list meanwhile, and though a fork is to be chosen. */
TEST(a_question_is_about_the_session_that_was_chosen)
{
    PLAY("list (abc) :jd (ac) :Q foot:delete_1_session?_y:_for_ever__n:_keep__Esc:_back :y !close");
    PLAY("list (abc) :Gx name:sc.md (ab) Enter !export subject:sc overwrite "
         "foot:sc.md_is_there:_overwrite_it?_y_or_n :y !overwrite subject:sc");
}

TEST(a_file_to_export_to_is_asked_for)
{
    PLAY("list () :x normal \"there_is_no_session_to_export (ab) :x naming name:sa.md Cut Enter "
         "normal :xq name:q Enter !export :x Esc normal :x Ctrl-C !cancel");
}

TEST(blanks_are_no_search_and_a_bad_query_is_reported)
{
    PLAY("(ab) Blank Blank tick sessions searched: :since:never tick wrong searched: =sa Cut "
         ":role:user Blank :word tick right searched:role:user_word",
         "begins :since:never tick wrong sessions (ab) =sa");
}

/* Esc goes back: from what was found in the session, from the messages, from the search with its
 * session, from the role. */
TEST(back_goes_one_step_at_a_time)
{
    PLAY("(0123) :one tick done:0+9 read:3 Enter in-text :r done:3+6 read:3 :/two finding Enter "
         "found waits read:3 none :+ zoomed :q unzoomed found :q unfound in-text :q in-list "
         "searching :q sessions role:user =s1 :q role:none :q !close");
}

TEST(the_help_screen_scrolls_and_closes)
{
    struct browse_lines help = {0};
    char end[80];

    browse_help(&help, BROWSE_LIST, BROWSE_IF_ALL, 100);
    snprintf(end, sizeof end, "(a) list :?? Page Page Page Page Page help:%zu", help.count - 11);
    browse_lines_release(&help);
    play(end, NULL);
    PLAY("(a) text :??jj helping help:2 :k help:1 Page PageUp help:1 PageUp help:0 :x normal",
         "(a) :? helping Esc normal :a? normal", "(a) list :?? Blank helping PageUp help:0");
}

TEST(the_mouse_chooses_and_scrolls)
{
    PLAY("(abcdefghijklmnopqrst) click:5,2 #3 in-list read:6 wheel:3,43,3 0:three click:5,42 "
         "in-text @1 wheel:2,0,3 #6 click:0,5 in-box twice:2,2 in-text read:1 choosing twice:2,2 "
         "!enter click:12,2 in-list",
         /* A list that is about to be replaced is not the one that is seen. */
         "(0abc) read:2 choosing :t click:4,1 =s0 none");
}

TEST(a_paste_goes_into_the_box_or_into_the_name)
{
    PLAY("(ab) text paste in-box tick searched:p", "(ab) list :x paste name:p",
         "(ab) list :x paste naming", "list :x paste in-list (ab) naming",
         "list :j paste in-box none (ab) =sa");
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
    take_messages(&b, 9, false);
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

/* Keys of all kinds in any order, with results between them: nothing breaks, and the chosen line
 * and the current message stay inside. */
TEST(random_keys_do_no_harm)
{
    static const char keys[] = "jkJKgGhlnNzZrs/?dxYt woqY+Fiu*y\t\r\x7f\x15\x04\x0e\x10";
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
        (void)browse_go_on(&b);
        browse_tick(&b, i * 10);
        if (state % 7 == 0)
            take_sessions(&b, state % 3 ? "abcdefghijklmnopqrstuv" : "cde");
        if (state % 5 == 0 && b.wants.messages)
            take_messages(&b, (state >> 20) % 9, false);
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
         "Down waits (abc) =sb >sb none", "Up Up Down Down Up (abc) =sb",
         "Page Page () none =none (abc) =sa", "list :Gjkk (abcde) =sc", "list :jGgj (abcde) =sb",
         /* Hits, in the order of the keys. Typing another text drops the key. */
         "(01) :t Down waits =s0 tick Down Down Down hits:0+1 #0 waits hits:1+1 #1 hits:2+1 "
         "hits:3+1 "
         "#3 waits done:4+3 #4 none :w Down :o none tick done:0+9 #0 list :r Down done:0+9 #1",
         "(012) Down Down :t tick Down waits done:0+0 none Rub Up tick =s1",
         /* The last one, of as many as are read, unless the first one is wanted instead. */
         "(01) :t tick list :G hits:0+1 hits:1+99 :kkj #0 waits done:100+3 #101 none",
         "(01) :t tick list :jjG :gj hits:0+9 #1 none :G waits Esc none #0",
         "(01) :t tick list :G hits:0+1 hits:1+99 #0 waits hits:100+100000 #100099 none "
         "hits:100100+100 #100099",
         /* A search that is repeated keeps its list, but not before its first answer. */
         "(01) :t tick again Down waits done:10+5 #1 again Down #2 none again Down #3 done:9+6 #4",
         "(01) :t tick done:0+5 :w tick again Down waits done:20+2 #1",
         /* Messages, also when another key was pressed first. */
         "Down Tab Tab :JJK (abc) read:6 none =sb @1", "(abc) read:6 Tab Tab :hjlJ read:6 >sb @1",
         "(01) :two tick list :nn done:0+3 read:6 @2",
         /* A hit that was replaced is not in the messages that are there. */
         "(01) read:1 :two tick done:0+4 read:1 list Down wanted text :Z waits read:3 none",
         /* A question, whose answer is no command, and which can be taken back. */
         "list Down :x normal (ab) naming", "list :x () normal none",
         "list :xjob.qed.md Enter (ab) naming", "list :xy (ab) naming",
         "list :x Esc none (ab) normal",
         /* Other parts of the screen are reached, and the browser can be left, at any time. */
         "(01) :t tick Down Down Tab in-list waits Tab in-text Esc in-list none Down Down Ctrl-C "
         "!cancel",
         "(01) :t tick Down Down :w none tick done:0+3 #0",
         /* Not more than these are held. */
         "(01) :t tick list :jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj "
         ":jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj done:0+300 #100 none",
         /* These are carried out meanwhile. */
         "list :J Redraw !redraw Stop !suspend waits (ab) read:3 none @1",
         "list :x Stop !suspend Redraw !redraw waits (ab) naming", "list :x Ctrl-C !cancel",
         /* To delete asks nothing yet. */
         "list :dj waits (abc) none deleted:1 #2",
         /* Who leaves while it waits is asked, too. */
         "list :dQ waits (ab) asking deleted:1 :y !close deletes", "list :Q !close",
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

TEST(the_next_key_cancels_an_action_that_waits)
{
    PLAY("list :y (ab) read:2 !copy :jf waits :n waits read:2 "
         "\"there_is_nothing_to_look_for:_/_finds_in_these_messages",
         "list :y click:3,2 (ab) read:2 none", "list :y paste (ab) read:2 none");
}

/* It was closed before its hits came: no message was chosen. */
TEST(a_search_that_was_left_early_shows_its_first_hit)
{
    play("back :two tick hits:0+1 (01) =s0 >s0 no-back", "s1");
}
