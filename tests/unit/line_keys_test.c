#include "chat/line_keys.h"

#include "chathist/base/utf8.h"

#include "test.h"

static const char *const meanings[LINE_EDITS] = {
    [LINE_IGNORE] = "",
    [LINE_LEFT] = "left",
    [LINE_RIGHT] = "right",
    [LINE_UP] = "up",
    [LINE_DOWN] = "down",
    [LINE_HOME] = "home",
    [LINE_END_OF_LINE] = "end",
    [LINE_DELETE] = "delete",
    [LINE_WORD_LEFT] = "word left",
    [LINE_WORD_RIGHT] = "word right",
    [LINE_DELETE_WORD] = "delete word",
    [LINE_ENTER] = "enter",
    [LINE_NEWLINE] = "newline",
};

static void take(struct line_keys *k, struct buf *out)
{
    enum line_key key;
    int32_t cp;

    while ((key = line_keys_next(k, &cp)) != LINE_KEY_NONE) {
        if (key == LINE_KEY_PASTE)
            buf_addf(out, "{%s}", buf_c(&k->pasted));
        else if (key == LINE_KEY_SEQUENCE)
            buf_addf(out, "(%s)", meanings[k->means]);
        else
            buf_addf(out, cp < 0x80 ? "<%d>" : "<U+%04X>", (int)cp);
    }
}

static void check(struct str typed, const char *want, int line)
{
    struct line_keys k = LINE_KEYS_INIT;
    struct buf out = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < typed.n; i++) {
        line_keys_feed(&k, typed.p[i]);
        take(&k, &out);
    }
    test_check_str(buf_c(&out), want, want, __FILE__, line);
    buf_release(&out);
    buf_release(&k.pasted);
}

#define TYPED(text, want) check(STR(text), want, __LINE__)

TEST(characters)
{
    TYPED("a\r\x03", "<97><13><3>");
    TYPED("\xc3\xa9\xe4\xbd\xa0", "<U+00E9><U+4F60>");
    TYPED("\xff\xe4\xbd"
          "b",
          "<-1><-1><98>");
    TYPED("\0", "<0>");
}

TEST(escape_and_other_characters)
{
    TYPED("\033\r", "<27><13>");
    TYPED("\033b", "<27><98>");
    TYPED("\033\033b", "<27><27><98>");
    TYPED("\033]x", "<27><93><120>");
}

TEST(arrows_and_their_like)
{
    TYPED("\033[A\033[B\033[C\033[D", "(up)(down)(right)(left)");
    TYPED("\033OA\033OB\033OC\033OD", "(up)(down)(right)(left)");
    TYPED("\033[H\033[F\033OH\033OF", "(home)(end)(home)(end)");
    TYPED("\033[1~\033[4~\033[7~\033[8~", "(home)(end)(home)(end)");
    TYPED("\033[3~x", "(delete)<120>");
    TYPED("\033OM", "(enter)");
}

TEST(modifiers)
{
    TYPED("\033[1;5D\033[1;5C\033[1;3D\033[1;3C", "(word left)(word right)(word left)(word right)");
    TYPED("\033[1;9D\033[1;133C\033[1;129D", "(word left)(word right)(left)");
    TYPED("\033[5D\033O5C\033O1;5D", "(word left)(word right)(word left)");
    TYPED("\033[1;2D\033[1;2A\033[1;5A\033[1;3B", "(left)(up)()()");
    TYPED("\033[3;5~\033[3;3~\033[1;5H\033[1;5F", "(delete word)(delete word)(home)(end)");
    TYPED("\033\033[D\033\033OC\033\033[3~", "(word left)(word right)(delete word)");
}

TEST(keys_of_rxvt)
{
    TYPED("\033Od\033Oc\033Oa\033[d\033[a", "(word left)(word right)()(left)(up)");
    TYPED("\033[7^\033[8$\033[3^\033[3$\033[3@\033[5^",
          "(home)(end)(delete word)(delete)(delete word)()");
}

TEST(enter_with_modifiers)
{
    TYPED("\033[13;2u\033[13;3u\033[13;5u\033[13u\033[13;1u",
          "(newline)(newline)(newline)(enter)(enter)");
    TYPED("\033[27;2;13~\033[27;5;13~\033[27;2;9~", "(newline)(newline)()");
    TYPED("\033[13:13;2:1u", "()");
}

TEST(keys_that_mean_nothing_are_swallowed_whole)
{
    TYPED("\033[5~\033[6~\033[2~\033[15;5~\033[24~x", "()()()()()<120>");
    TYPED("\033OP\033[1;2P\033[[Ax\033[Zy", "()()()<120>()<121>");
    TYPED("\033[I\033[O\033[?1;2c\033[?2026;1$y\033[>0;1;2cz", "()()()()()<122>");
    TYPED("\033[<0;12;3M\033[M !\xffx", "()()<120>");
    TYPED("\033[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21Ax", "()<120>");
    TYPED("\033[99999999999999999999999999~x", "()<120>");
}

TEST(what_is_no_part_of_a_sequence_ends_it)
{
    TYPED("\033[1;\x03", "<3>");
    TYPED("\033[1\033[D", "(left)");
    TYPED("\033[1;\xc3\xa9", "<U+00E9>");
    TYPED("\033O\r", "<13>");
}

TEST(a_sequence_comes_as_characters_instead)
{
    struct line_keys k = LINE_KEYS_INIT;
    struct buf out = BUF_INIT(BUF_SMALL);
    int32_t cp;

    line_keys_feed(&k, '\033');
    line_keys_feed(&k, '[');
    CHECK_INT(line_keys_next(&k, &cp), LINE_KEY_NONE);
    line_keys_feed(&k, 'D');
    CHECK_INT(line_keys_next(&k, &cp), LINE_KEY_SEQUENCE);
    line_keys_put_back(&k);
    take(&k, &out);
    line_keys_feed(&k, 'x');
    take(&k, &out);
    CHECK_STR(buf_c(&out), "<27><91><68><120>");
    buf_release(&out);
    buf_release(&k.pasted);
}

TEST(pastes)
{
    TYPED("\033[200~a\rb\x03\033[201~c", "{a\nb\x03}<99>");
    TYPED("\033[200~\r\na\r\rb\n\r\n\n\033[201~", "{\na\n\nb\n\n\n}");
    TYPED("\033[200~\033[201~", "{}");
    TYPED("\033[200~\033[20\033[201\033\033[201~", "{\033[20\033[201\033}");
    TYPED("\033\033[200~x\033[201~", "{x}");
    TYPED("\033[200~a\033[201~\033[200~b\033[201~", "{a}{b}");
}

TEST(the_escape_key)
{
    struct line_keys k = LINE_KEYS_INIT;
    struct buf out = BUF_INIT(BUF_SMALL);

    CHECK(!line_keys_holds_escape(&k));
    line_keys_feed(&k, '\033');
    take(&k, &out);
    CHECK_STR(buf_c(&out), "");
    CHECK(line_keys_holds_escape(&k));
    line_keys_give_up(&k);
    take(&k, &out);
    CHECK_STR(buf_c(&out), "<27>");
    CHECK(!line_keys_holds_escape(&k));
    line_keys_feed(&k, '\033');
    line_keys_drop(&k);
    CHECK(!line_keys_holds_escape(&k));
    buf_release(&out);
    buf_release(&k.pasted);
}
