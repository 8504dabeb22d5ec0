#include "browse/input.h"

#include "test.h"

/* Each character of `keys` is a key; `<` and `>` move, `#` deletes before, `^X` is a control
 * key. */
static void press(struct browse_edit *e, const char *keys)
{
    for (; *keys; keys++) {
        int32_t key = *keys == '<'   ? (int32_t)BROWSE_KEY_LEFT
                      : *keys == '>' ? (int32_t)BROWSE_KEY_RIGHT
                      : *keys == '#' ? (int32_t)BROWSE_KEY_BACKSPACE
                                     : *keys;

        if (*keys == '^')
            key = BROWSE_CTRL(*++keys);
        browse_edit_key(e, key);
    }
}

static void check(const char *keys, const char *want, size_t at)
{
    struct browse_edit e;

    browse_edit_init(&e);
    press(&e, keys);
    CHECK_STR(buf_c(&e.text), want);
    CHECK_INT(e.at, at);
    browse_edit_release(&e);
}

TEST(keys_edit)
{
    check("abc", "abc", 3);
    check("abc<<x", "axbc", 2);
    check("abc##", "a", 1);
    check("ab^ac^ed", "cabd", 4);
    check("one two^w", "one ", 4);
    check("one two  ^wx", "one x", 5);
    check("one^u", "", 0);
    check("one<<^k", "o", 1);
    check("one^a^d", "ne", 0);
    check("#", "", 0);
    check("<<>>", "", 0);
    /* A control key that means nothing here. */
    check("a^gb", "ab", 2);
}

TEST(whole_characters_are_passed)
{
    struct browse_edit e;

    browse_edit_init(&e);
    browse_edit_set(&e, STR("aé日e\xcc\x81"));
    browse_edit_key(&e, BROWSE_KEY_BACKSPACE);
    CHECK_STR(buf_c(&e.text), "aé日");
    browse_edit_key(&e, BROWSE_KEY_LEFT);
    CHECK_INT(e.at, 3);
    CHECK(browse_edit_key(&e, 0x1f600));
    CHECK_STR(buf_c(&e.text), "aé😀日");
    CHECK(!browse_edit_key(&e, BROWSE_KEY_F1));
    CHECK(!browse_edit_key(&e, 0x202e));
    browse_edit_release(&e);
}

TEST(a_text_becomes_one_line)
{
    struct browse_edit e;

    browse_edit_init(&e);
    browse_edit_set(&e, STR(" a\n b\x1b[0m\xff"));
    CHECK_STR(buf_c(&e.text), "a b^[[0m\xef\xbf\xbd");
    browse_edit_release(&e);
}

TEST(what_is_chosen_is_replaced_by_what_is_typed)
{
    struct browse_edit e;

    browse_edit_init(&e);
    browse_edit_set(&e, STR("old"));
    e.chosen = true;
    press(&e, "new");
    CHECK_STR(buf_c(&e.text), "new");
    e.chosen = true;
    press(&e, "<x");
    CHECK_STR(buf_c(&e.text), "nexw");
    e.chosen = true;
    press(&e, "#");
    CHECK_STR(buf_c(&e.text), "new");
    browse_edit_release(&e);
}

TEST(the_cursor_is_in_the_window)
{
    struct browse_edit e;
    size_t column;
    struct str shown;

    browse_edit_init(&e);
    browse_edit_set(&e, STR("0123456789"));
    shown = browse_edit_window(&e, 5, &column);
    CHECK_MEM(shown.p, shown.n, "6789", 4);
    CHECK_INT(column, 4);
    browse_edit_key(&e, BROWSE_KEY_HOME);
    shown = browse_edit_window(&e, 5, &column);
    CHECK_MEM(shown.p, shown.n, "01234", 5);
    CHECK_INT(column, 0);
    browse_edit_release(&e);
}

TEST(a_text_has_an_end)
{
    struct browse_edit e;
    size_t changed = 0;

    browse_edit_init(&e);
    for (int i = 0; i < 10000; i++)
        changed += browse_edit_key(&e, 'x');
    CHECK_INT(changed, e.text.len);
    CHECK_INT(e.text.len, 4096);
    browse_edit_release(&e);
}

TEST(words_are_passed_cut_and_inserted_again)
{
    struct browse_edit e;

    browse_edit_init(&e);
    browse_edit_set(&e, STR("one two three"));
    CHECK(!browse_edit_key(&e, BROWSE_KEY_WORD_LEFT));
    CHECK_INT(e.at, 8);
    CHECK(!browse_edit_key(&e, BROWSE_KEY_WORD_LEFT));
    CHECK_INT(e.at, 4);
    CHECK(!browse_edit_key(&e, BROWSE_KEY_WORD_RIGHT));
    CHECK_INT(e.at, 7);
    CHECK(browse_edit_key(&e, BROWSE_KEY_CUT_WORD));
    CHECK_STR(buf_c(&e.text), "one two");
    CHECK(!browse_edit_key(&e, BROWSE_KEY_CUT_WORD));
    CHECK(!browse_edit_key(&e, BROWSE_CTRL('a')));
    CHECK(browse_edit_key(&e, BROWSE_CTRL('y')));
    CHECK_STR(buf_c(&e.text), " threeone two");
    CHECK_INT(e.at, 6);
    CHECK(browse_edit_key(&e, BROWSE_CTRL('u')) && browse_edit_key(&e, BROWSE_CTRL('e')) == false);
    CHECK(browse_edit_key(&e, BROWSE_CTRL('y')));
    CHECK_STR(buf_c(&e.text), "one two three");
    browse_edit_release(&e);
}

TEST(the_same_key_means_what_the_focus_says)
{
    CHECK_INT(browse_command(BROWSE_BOX, 'q'), BROWSE_NOTHING);
    CHECK_INT(browse_command(BROWSE_LIST, 'q'), BROWSE_BACK);
    CHECK_INT(browse_command(BROWSE_TEXT, 'j'), BROWSE_DOWN);
    CHECK_INT(browse_command(BROWSE_BOX, BROWSE_KEY_DOWN), BROWSE_DOWN);
    CHECK_INT(browse_command(BROWSE_BOX, BROWSE_CTRL('r')), BROWSE_ROLE);
    CHECK_INT(browse_command(BROWSE_BOX, BROWSE_CTRL('u')), BROWSE_NOTHING);
    CHECK_INT(browse_command(BROWSE_LIST, BROWSE_CTRL('u')), BROWSE_HALF_UP);
    CHECK_INT(browse_command(BROWSE_LIST, 'Q'), BROWSE_CLOSE);
    CHECK_INT(browse_command(BROWSE_LIST, '/'), BROWSE_TO_BOX);
    CHECK_INT(browse_command(BROWSE_TEXT, '/'), BROWSE_FIND);
    CHECK_INT(browse_command(BROWSE_LIST, 'X'), BROWSE_NOTHING);
}

static void check_hints(enum browse_focus focus, unsigned now, bool back, const char *want)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    browse_hints(&line, focus, now, back, 80);
    CHECK_STR(buf_c(&line), want);
    buf_release(&line);
}

/* The help of one part, and what there is now, is shorter. */
TEST(the_help_has_the_keys_that_work_here)
{
    struct browse_lines all = {0}, some = {0};

    browse_help(&all, BROWSE_LIST, BROWSE_IF_ALL, 200);
    browse_help(&some, BROWSE_LIST, BROWSE_IF_NOT_CHOOSING | BROWSE_IF_UNMARKED, 200);
    CHECK(strstr(buf_c(&all.text), "Alt-B") && strstr(buf_c(&all.text), "follow"));
    CHECK(!strstr(buf_c(&some.text), "Alt-B") && !strstr(buf_c(&some.text), "undo"));
    CHECK(strstr(buf_c(&all.text), "in the messages:"));
    CHECK(!strstr(buf_c(&some.text), "in the messages:"));
    CHECK(some.count < all.count / 2);
    browse_lines_release(&some);
    browse_help(&some, BROWSE_LIST, BROWSE_IF_ALL & ~BROWSE_IF_CHOOSING, 200);
    CHECK(strstr(buf_c(&some.text), "undo") && !strstr(buf_c(&some.text), "--print"));
    browse_lines_release(&all);
    browse_lines_release(&some);
}

/* No key has two meanings in one place, but for the first row. */
TEST(the_help_tells_of_every_line)
{
    unsigned chosen = BROWSE_IF_SESSION | BROWSE_IF_MESSAGE;
    struct buf line = BUF_INIT(BUF_SMALL);
    struct browse_lines help = {0};

    browse_help(&help, BROWSE_BOX, BROWSE_IF_ALL, 200);
    CHECK(help.count > 20);
    for (size_t i = 0; i < help.count; i++) {
        const char *text = help.text.data + help.at[i].at;
        size_t n = help.at[i].n;

        if (n == 0 || text[n - 1] == ':') /* the name of a part, and the line before it */
            continue;
        CHECK(n > 18);
        CHECK(text[17] == ' ' && text[18] != ' ');
    }
    browse_lines_release(&help);
    check_hints(BROWSE_BOX, BROWSE_IF_NOT_CHOOSING | BROWSE_IF_UNMARKED, false,
                "type to search  F1 help  Enter open  Tab panel  Esc close");
    check_hints(BROWSE_LIST, chosen | BROWSE_IF_CHOOSING | BROWSE_IF_UNMARKED, true,
                "? help  Enter choose  / search  Space mark  Tab panel  c chat  y copy  Esc back");
    check_hints(BROWSE_LIST, chosen | BROWSE_IF_NOT_CHOOSING | BROWSE_IF_MARKED | BROWSE_IF_DELETED,
                false,
                "? help  Enter open  u undo  d delete  x export  y copy  p prompt  Esc close");
    /* Without a session nothing is offered that needs one. */
    check_hints(BROWSE_LIST, BROWSE_IF_NOT_CHOOSING | BROWSE_IF_UNMARKED, false,
                "? help  Enter open  / search  Tab panel  Esc close");
    browse_help_foot(&line, 3, 10, 25, true);
    CHECK(str_starts(buf_str(&line), STR("4 to 13 of 25")));
    buf_release(&line);
}

TEST(the_help_is_wrapped)
{
    struct browse_lines narrow = {0}, wide = {0};

    browse_help(&narrow, BROWSE_BOX, BROWSE_IF_ALL, 40);
    browse_help(&wide, BROWSE_BOX, BROWSE_IF_ALL, 200);
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

            browse_hints(&text, (enum browse_focus)focus, BROWSE_IF_ALL, false, columns);
            CHECK(text.len <= columns);
            CHECK(str_ends(buf_str(&text), STR("Esc close")));
            CHECK(strstr(buf_c(&text), "  Esc close") || columns < 26);
            before = text.len > before ? text.len : before;
            buf_release(&text);
        }
        CHECK(before > 50);
    }
}
