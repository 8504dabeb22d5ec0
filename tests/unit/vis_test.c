#include "chathist/base/utf8.h"

#include "test.h"

static void check_vis(struct str text, struct str want)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    vis_add(&b, text);
    if (!CHECK_MEM(buf_c(&b), b.len, want.p, want.n))
        test_print_bytes("of  ", text.p, text.n);
    buf_release(&b);
}

#define VIS(text, want) check_vis(STR(text), STR(want))

TEST(plain_text_passes)
{
    check_vis(STR_NONE, STR(""));
    VIS("", "");
    VIS("abc ~", "abc ~");
    VIS("a\n\tb\n", "a\n\tb\n");
    VIS("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xc2\xa0",
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xc2\xa0");
    VIS("e\xcc\x81", "e\xcc\x81");
    /* A family: three emoji held together by zero-width joiners. */
    VIS("\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7",
        "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7");
}

TEST(control_characters_are_shown)
{
    VIS("\x1b[31mred\x1b[0m", "^[[31mred^[[0m");
    VIS("\x1b]0;title\x07", "^[]0;title^G");
    VIS("a\0b", "a^@b");
    VIS("\x01\x1a\x1c\x1d\x1e\x1f\x7f", "^A^Z^\\^]^^^_^?");
    VIS("\b\v\f", "^H^K^L");
    VIS("\xc2\x9b"
        "2J\xc2\x80\xc2\x9f",
        "<U+009B>2J<U+0080><U+009F>");
}

TEST(carriage_returns)
{
    VIS("a\r\nb\r\n", "a\r\nb\r\n");
    VIS("a\rb", "a^Mb");
    VIS("a\r", "a^M");
    VIS("\r\r\n", "^M\r\n");
    VIS("\r\xc3\xa4", "^M\xc3\xa4");
}

TEST(invisible_and_bidi_characters_are_shown)
{
    VIS("\xd8\x9c", "<U+061C>");
    VIS("\xe2\x80\x8e\xe2\x80\x8f", "<U+200E><U+200F>");
    VIS("\xe2\x80\xa8\xe2\x80\xa9", "<U+2028><U+2029>");
    VIS("\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae",
        "<U+202A><U+202B><U+202C><U+202D><U+202E>");
    VIS("\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "<U+2066><U+2067><U+2068><U+2069>");
    VIS("\xef\xbb\xbf", "<U+FEFF>");
    VIS("\xef\xbf\xb9\xef\xbf\xba\xef\xbf\xbb", "<U+FFF9><U+FFFA><U+FFFB>");
    VIS("\xf3\xa0\x80\x80\xf3\xa0\x81\x81\xf3\xa0\x81\xbf", "<U+E0000><U+E0041><U+E007F>");
}

TEST(what_is_no_utf8_is_shown_byte_by_byte)
{
    VIS("a\xff\xfe"
        "b",
        "a<FF><FE>b");
    VIS("\x9b[m", "<9B>[m");
    VIS("\xe2\x82", "<E2><82>");
    VIS("\xe2\x82x", "<E2><82>x");
    VIS("\xed\xa0\x80", "<ED><A0><80>");
    VIS("\xc0\x9b", "<C0><9B>");
    VIS("\xf0\x9f\x98\x1b", "<F0><9F><98>^[");
}

TEST(characters_without_a_width)
{
    VIS("a\xc2\xad\xcd\x8f\xe1\x85\x9f\xe1\xa0\x8e\xe2\x80\x8b\xe2\x81\xa0\xe3\x85\xa4",
        "a<U+00AD><U+034F><U+115F><U+180E><U+200B><U+2060><U+3164>");
    VIS("\xef\xb8\x80\xf3\xa0\x84\x80\xf3\xa0\x87\xaf", "<U+FE00><U+E0100><U+E01EF>");
    /* Scripts, emoji and typography need these. */
    VIS("\xe2\x80\x8c\xe2\x9a\xa0\xef\xb8\x8f\xc2\xa0\xe2\x80\xaf",
        "\xe2\x80\x8c\xe2\x9a\xa0\xef\xb8\x8f\xc2\xa0\xe2\x80\xaf");
    CHECK(vis_hidden(0x200c) && vis_hidden(0xfe0f) && vis_hidden(0xa0) && vis_hidden(0x202f));
    CHECK(!vis_hidden(' ') && !vis_hidden(0xe4) && !vis_hidden('\n'));
}

TEST(unsafe_code_points)
{
    CHECK(!vis_unsafe('\n'));
    CHECK(!vis_unsafe('\t'));
    CHECK(vis_unsafe('\r'));
    CHECK(vis_unsafe(0));
    CHECK(!vis_unsafe(' '));
    CHECK(!vis_unsafe('~'));
    CHECK(vis_unsafe(0x7f));
    CHECK(vis_unsafe(0x80));
    CHECK(vis_unsafe(0x9f));
    CHECK(!vis_unsafe(0xa0));
    CHECK(!vis_unsafe(0x61b));
    CHECK(!vis_unsafe(0x61d));
    CHECK(!vis_unsafe(0x200d));
    CHECK(!vis_unsafe(0x2010));
    CHECK(!vis_unsafe(0x202f));
    CHECK(vis_unsafe(0x2065));
    CHECK(vis_unsafe(0x206a));
    CHECK(!vis_unsafe(0xfffc));
    CHECK(!vis_unsafe(0xfffd));
    CHECK(!vis_unsafe(0xdffff));
    CHECK(vis_unsafe(0xe0080));
    CHECK(!vis_unsafe(0x10ffff));
    CHECK(vis_unsafe(-1));
    CHECK(vis_unsafe(0xd800));
    CHECK(vis_unsafe(0x110000));
    CHECK(vis_unsafe(INT32_MAX));
}

/* ---- streams ---- */

/* Cut in two at every place, and byte by byte, it comes out as when it is fed whole. */
static void check_stream(struct str s)
{
    struct buf whole = BUF_INIT(BUF_SMALL), out = BUF_INIT(BUF_SMALL);
    struct vis v = {{0}, 0};

    vis_add(&whole, s);
    for (size_t cut = 0; cut <= s.n; cut++) {
        buf_clear(&out);
        vis_feed(&v, (struct str){s.p, cut}, &out);
        vis_feed(&v, (struct str){s.p + cut, s.n - cut}, &out);
        vis_end(&v, &out);
        if (!CHECK_MEM(buf_c(&out), out.len, buf_c(&whole), whole.len))
            fprintf(stderr, "    cut at %zu\n", cut);
    }
    buf_clear(&out);
    for (size_t i = 0; i < s.n; i++) {
        vis_feed(&v, (struct str){s.p + i, 1}, &out);
        vis_feed(&v, STR_NONE, &out);
    }
    vis_end(&v, &out);
    vis_end(&v, &out);
    CHECK_MEM(buf_c(&out), out.len, buf_c(&whole), whole.len);
    buf_release(&out);
    buf_release(&whole);
}

TEST(streams_may_be_cut_anywhere)
{
    check_stream(STR(""));
    check_stream(STR("plain\ntext\t"));
    check_stream(STR("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xe2\x80\xae \xf3\xa0\x81\x81"));
    check_stream(STR("a\r\nb\rc\r\r\n\r\xc3\xa4\r\xff\r"));
    check_stream(STR("\xc3\r\xe2\x82\r\n\xf0\x9f\x98\r\r\xf0"));
    check_stream(STR("\xf0\x9f\x98\xf0\x9f\x98\x80\xe2\x82\xe2\x82\xac\xc3"));
    check_stream(STR("\x1b[31m\xc2\x9b\x9b\xc2\x1b\xe2\x80\x1b\0"));
    check_stream(STR("\xff\xed\xa0\x80\x80\xc0\xaf\xf4\x90\x80\x80\xf0\x9f"));
}

TEST(streams_give_what_is_decided_at_once)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct vis v = {{0}, 0};

    vis_feed(&v, STR("a\xe2\x82"), &out);
    CHECK_STR(buf_c(&out), "a");
    vis_feed(&v, STR("\xac\r"), &out);
    CHECK_STR(buf_c(&out), "a\xe2\x82\xac");
    vis_feed(&v, STR("\n"), &out);
    CHECK_STR(buf_c(&out), "a\xe2\x82\xac\r\n");
    buf_release(&out);
}

/* ---- lines ---- */

static void check_line(struct str text, bool safe, struct str want)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    vis_add_line(&b, text, safe);
    if (!CHECK_MEM(buf_c(&b), b.len, want.p, want.n))
        test_print_bytes("of  ", text.p, text.n);
    buf_release(&b);
}

#define LINE(text, want)                                                                           \
    do {                                                                                           \
        check_line(STR(text), true, STR(want));                                                    \
        check_line(STR(text), false, STR(want));                                                   \
    } while (0)

TEST(lines_have_single_blanks)
{
    check_line(STR_NONE, true, STR(""));
    LINE("", "");
    LINE(" \n\t ", "");
    LINE("abc", "abc");
    LINE("  a  b\n\nc\r\nd\te\v\ff \n", "a b c d e f");
    LINE("a\xc2\x85"
         "b\xe2\x80\xa8"
         "c\xe2\x80\xa9"
         "d",
         "a b c d");
    LINE("\xe2\x80\xa8 a \xc2\x85", "a");
    LINE("\xc3\xa4 \xe2\x82\xac\xc2\xa0\xf0\x9f\x98\x80",
         "\xc3\xa4 \xe2\x82\xac\xc2\xa0\xf0\x9f\x98\x80");
}

TEST(lines_are_safe_or_raw)
{
    check_line(STR("a\x1b[m \xff\0b\xe2\x80\xae\xc2"), true, STR("a^[[m <FF>^@b<U+202E><C2>"));
    check_line(STR("a\x1b[m \xff\0b\xe2\x80\xae\xc2"), false,
               STR("a\x1b[m \xff\0b\xe2\x80\xae\xc2"));
    check_line(STR("a\rb"), true, STR("a b"));
    check_line(STR("\xf0\x9f \xe2\x80\n\xe2"), true, STR("<F0><9F> <E2><80> <E2>"));
}

/* Byte by byte, as the comment in the header has it. */
static void slow_line(struct buf *out, struct str text)
{
    bool blank = false;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            blank = true;
            continue;
        }
        if (blank && out->len > 0)
            buf_add_byte(out, ' ');
        blank = false;
        if ((unsigned char)c < 0x20 || c == 0x7f)
            buf_addf(out, "^%c", c ^ 0x40);
        else
            buf_add_byte(out, c);
    }
}

TEST(of_a_line_that_has_no_room_the_first_words_are_there)
{
    struct buf b = BUF_INIT(16);

    vis_add_line(&b, STR("one two\nthree four five"), true);
    CHECK(b.overflow);
    CHECK_STR(buf_c(&b), "one two three ");
    buf_release(&b);
}

TEST(lines_are_the_same_wherever_words_begin)
{
    static const char *const words[] = {" ",       "  ",       "\n",   "a",    "ab",
                                        "seven..", "eight...", "\x7f", "\x01", "\xc3\xa4"};
    uint32_t state = 1;

    for (int round = 0; round < 20000 && !test_failed; round++) {
        struct buf text = BUF_INIT(BUF_SMALL), want = BUF_INIT(BUF_SMALL);

        for (int i = 0; i < 12; i++) {
            state = state * 1664525 + 1013904223;
            buf_add_c(&text, words[(state >> 16) % (sizeof(words) / sizeof(words[0]))]);
            if (state >> 30)
                buf_add_c(&text, " ");
        }
        slow_line(&want, buf_str(&text));
        check_line(buf_str(&text), true, buf_str(&want));
        buf_release(&text);
        buf_release(&want);
    }
}
