#include "chathist/history/scan.h"

#include <errno.h>

#include "chathist/base/memory.h"
#include "test.h"
#include "draw.h"
#include "scratch.h"

#define MESSAGE(id, session)                                                                       \
    "{\"id\":\"" id "\",\"session_id\":\"" session                                                 \
    "\",\"timestamp\":\"t\",\"role\":\"user\",\"content\":\"c\"}"

/* What a scan gave, as text: `at:text` and a mark for each line, in the order of the file. */
struct seen {
    char **lines;
    size_t count, cap;
};

static void seen_add(struct seen *s, const struct line *l)
{
    struct buf b = BUF_INIT(BUF_LINE * 2);

    buf_addf(&b, "%lld:", (long long)l->at);
    buf_add_str(&b, l->text);
    buf_add_c(&b, l->too_long ? "…" : "");
    buf_add_c(&b, l->terminated ? "$" : "");
    s->lines = mem_grow(s->lines, &s->cap, s->count + 1, sizeof(*s->lines));
    s->lines[s->count++] = buf_detach(&b);
}

static void seen_release(struct seen *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->lines[i]);
    free(s->lines);
    *s = (struct seen){0};
}

static struct seen scan_file(size_t block_size, size_t line_max)
{
    struct seen seen = {0};
    struct scan s;
    struct line l;
    struct err e = ERR_INIT;
    int more;

    CHECK_INT(scan_open(&s, FILE_CWD, "f", &e), 0);
    s.block_size = block_size;
    s.line_max = line_max;
    while ((more = scan_line(&s, &l, &e)) > 0)
        seen_add(&seen, &l);
    CHECK_INT(more, 0);
    CHECK_INT(scan_line(&s, &l, &e), 0); /* the end stays the end */
    CHECK_STR(err_text(&e), "");
    scan_close(&s);
    err_release(&e);
    return seen;
}

/* The lines of a text by the plainest of means. */
static struct seen split(struct str text, size_t line_max)
{
    struct seen seen = {0};
    size_t at = 0;

    while (at < text.n) {
        const char *newline = memchr(text.p + at, '\n', text.n - at);
        size_t n = newline ? (size_t)(newline - text.p) - at : text.n - at;
        bool too_long = n > line_max;
        size_t given = !too_long ? n : line_max < 4096 ? line_max : 4096;
        struct line l = {{text.p + at, given}, (off_t)at, newline != NULL, too_long};

        seen_add(&seen, &l);
        at += n + 1;
    }
    return seen;
}

static bool same(const struct seen *got, const struct seen *want)
{
    if (!CHECK_INT(got->count, want->count))
        return false;
    for (size_t i = 0; i < want->count; i++) {
        if (!CHECK_STR(got->lines[i], want->lines[i]))
            return false;
    }
    return true;
}

/* A scan gives the lines of text, whatever the size of a block. */
static bool check_lines(struct str text, size_t block_size, size_t line_max)
{
    struct seen want = split(text, line_max);
    struct seen got;
    bool held;

    scratch_put_bytes("f", text.p, text.n);
    got = scan_file(block_size, line_max);
    held = same(&got, &want);
    if (!held)
        fprintf(stderr, "    block %zu, longest line %zu, %zu bytes\n", block_size, line_max,
                text.n);
    seen_release(&got);
    seen_release(&want);
    return held;
}

TEST(small_files_split_right_in_every_block_size)
{
    static const char *const texts[] = {
        "",
        "\n",
        "a",
        "a\n",
        "\n\n",
        "\na",
        "a\nb",
        "a\nb\n",
        "ab\n\ncd\n",
        "abcdefgh\n",
        "abcdefgh",
        "\n\n\n\n\n\n\n\n\n",
        "abcdefghijklmnopqrstuvwxyz\nb\n",
        "b\nabcdefghijklmnopqrstuvwxyz",
        "a\r\nb\r\n",
        "\xef\xbb\xbf(\n",
        "a\n",
    };

    scratch_enter();
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        for (size_t block = 1; block < 12; block++)
            check_lines(str_of(texts[i]), block, 1000);
    }
    scratch_leave();
}

TEST(random_files_split_right)
{
    scratch_enter();
    for (int round = 0; round < 600; round++) {
        struct buf text = BUF_INIT(BUF_SMALL);
        unsigned lines = draw(12);

        for (unsigned i = 0; i < lines; i++) {
            unsigned n = draw(draw(3) ? 10 : 200);

            while (n--)
                buf_add_byte(&text, (char)('a' + draw(26)));
            if (i + 1 < lines || draw(2))
                buf_add_byte(&text, '\n');
        }
        if (!check_lines(buf_str(&text), 1 + draw(70), 1 + draw(150)))
            round = 600;
        buf_release(&text);
    }
    scratch_leave();
}

TEST(long_lines_and_real_blocks)
{
    struct buf text = BUF_INIT(BUF_LINE);

    scratch_enter();
    for (unsigned i = 0; i < 40; i++) {
        size_t n = i % 7 == 3 ? 700000 : i % 5 == 0 ? 262143 + i / 5 - 4 : i * 31;

        memset(buf_room(&text, n), 'x', n);
        buf_grew(&text, n);
        buf_add_byte(&text, '\n');
    }
    check_lines(buf_str(&text), SCAN_BLOCK, BUF_LINE);
    check_lines(buf_str(&text), SCAN_BLOCK, 600000);
    check_lines(buf_str(&text), SCAN_BLOCK, 262143);
    buf_release(&text);
    scratch_leave();
}

TEST(a_line_over_64_mib_is_passed_over)
{
    struct buf text = BUF_INIT(BUF_LINE * 2);
    struct message m = MESSAGE_INIT;
    struct err e = ERR_INIT;
    struct scan s;

    scratch_enter();
    buf_add_c(&text, MESSAGE("1", "s") "\n");
    memset(buf_room(&text, BUF_LINE + 1), 'x', BUF_LINE + 1);
    buf_grew(&text, BUF_LINE + 1);
    buf_add_c(&text, "\n" MESSAGE("2", "s") "\n");
    scratch_put_bytes("f", text.data, text.len);
    CHECK_INT(scan_open(&s, FILE_CWD, "f", &e), 0);
    CHECK_INT(scan_message(&s, &m, NULL, &e), 1);
    CHECK(str_eq_c(m.id, "1"));
    CHECK_INT(scan_message(&s, &m, NULL, &e), 1);
    CHECK(str_eq_c(m.id, "2"));
    CHECK_INT(scan_message(&s, &m, NULL, &e), 0);
    CHECK_INT(s.bad, 1);
    CHECK(s.block.cap < BUF_LINE + BUF_LINE);
    scan_close(&s);
    message_release(&m);
    buf_release(&text);
    err_release(&e);
    scratch_leave();
}

/* ---- messages ---- */

/* The ids that a scan gives, in its order, each with a blank behind it. */
static struct buf ids_of(const char *only, uint64_t bad)
{
    struct buf ids = BUF_INIT(BUF_SMALL);
    struct message m = MESSAGE_INIT;
    struct err e = ERR_INIT;
    struct scan s;
    int more;

    CHECK_INT(scan_open(&s, FILE_CWD, "f", &e), 0);
    s.block_size = 64;
    if (only)
        scan_only(&s, str_of(only));
    while ((more = scan_message(&s, &m, NULL, &e)) > 0) {
        buf_add_str(&ids, m.id);
        buf_add_byte(&ids, ' ');
    }
    CHECK_INT(more, 0);
    CHECK_INT(s.bad, bad);
    message_release(&m);
    scan_close(&s);
    err_release(&e);
    return ids;
}

static void check_ids(const char *only, const char *want, uint64_t bad)
{
    struct buf ids = ids_of(only, bad);

    CHECK_STR(buf_c(&ids), want);
    buf_release(&ids);
}

/* Writes the file of these lines, the last of them NULL. */
static void put_lines(const char *const *lines)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    for (; *lines; lines++) {
        buf_add_c(&text, *lines);
        buf_add_byte(&text, '\n');
    }
    scratch_put_bytes("f", text.data, text.len);
    buf_release(&text);
}

TEST(bad_lines_are_counted_and_passed_over)
{
    static const char *const lines[] = {
        "\xef\xbb\xbf" MESSAGE("1", "s") "\r", "",           " \t\r",           "{\"id\":\"torn",
        MESSAGE("2", "s") MESSAGE("3", "s"),   "{\"id\":5}", MESSAGE("4", "s"), NULL,
    };
    int fd;

    scratch_enter();
    put_lines(lines);
    fd = open("f", O_WRONLY | O_APPEND);
    CHECK_INT(file_write_all(fd, "\0\0\0\0\n", 5), 0);
    CHECK_INT(file_write_all(fd, MESSAGE("5", "s"), strlen(MESSAGE("5", "s"))), 0);
    close(fd);
    check_ids(NULL, "1 4 5 ", 4);
    scratch_leave();
}

TEST(a_torn_last_line_is_passed_over_in_silence)
{
    const char *line = MESSAGE("2", "s");

    scratch_enter();
    for (size_t cut = 0; cut < strlen(line); cut++) {
        struct buf text = BUF_INIT(BUF_SMALL);

        buf_add_c(&text, MESSAGE("1", "s") "\n");
        buf_add(&text, line, cut);
        scratch_put("f", buf_c(&text));
        check_ids(NULL, "1 ", 0);
        buf_release(&text);
    }
    scratch_leave();
}

TEST(only_one_session)
{
    static const char *const lines[] = {
        MESSAGE("1", "sess_1"),
        MESSAGE("2", "sess_12"),
        MESSAGE("3", "ses\\u0073_1"),
        "garbage",
        "garbage about sess_1",
        MESSAGE("sess_1", "other"),
        MESSAGE("4", "\\u00e9"),
        MESSAGE("5", "sess_1"),
        MESSAGE("6", "a b\\/c"),
        MESSAGE("7", ""),
        NULL,
    };

    scratch_enter();
    put_lines(lines);
    check_ids("sess_1", "1 3 5 ", 1);
    check_ids("sess_12", "2 ", 0);
    check_ids("ess_1", "", 1);
    check_ids("s", "", 1);
    check_ids("\xc3\xa9", "4 ", 0);
    check_ids("a b/c", "6 ", 0);
    check_ids("", "7 ", 2);
    scratch_leave();
}

TEST(ids_of_every_length_are_found)
{
    char id[400];

    scratch_enter();
    for (size_t n = 1; n < sizeof(id); n += n < 10 ? 1 : 13) {
        struct buf text = BUF_INIT(BUF_SMALL);

        for (size_t i = 0; i < n; i++)
            id[i] = (char)('a' + i % 3);
        id[n] = '\0';
        buf_addf(&text, MESSAGE("1", "x%sx") "\n" MESSAGE("2", "%s") "\n", id, id);
        scratch_put("f", buf_c(&text));
        check_ids(id, "2 ", 0);
        buf_release(&text);
    }

    /* A byte that lets the search move on by more than a byte can tell. */
    struct buf text = BUF_INIT(BUF_SMALL);

    memset(id, 'a', sizeof(id) - 1);
    id[0] = 'Z';
    id[257] = '\0';
    buf_addf(&text, MESSAGE("1", "%s") "\n" MESSAGE("2", "%s") "\n", id + 1, id);
    memset(buf_room(&text, 600), 'Z', 600);
    buf_grew(&text, 600);
    buf_add_byte(&text, '\n');
    scratch_put("f", buf_c(&text));
    check_ids(id, "2 ", 0);
    buf_release(&text);
    scratch_leave();
}

TEST(what_is_appended_meanwhile_is_not_seen)
{
    struct message m = MESSAGE_INIT;
    struct scan s;
    int fd;

    scratch_enter();
    scratch_put("f", MESSAGE("1", "s") "\n" MESSAGE("2", "s") "\n");
    CHECK_INT(scan_open(&s, FILE_CWD, "f", NULL), 0);
    fd = open("f", O_WRONLY | O_APPEND);
    CHECK_INT(file_write_all(fd, MESSAGE("3", "s") "\n", strlen(MESSAGE("3", "s")) + 1), 0);
    close(fd);
    CHECK_INT(scan_message(&s, &m, NULL, NULL), 1);
    CHECK_INT(scan_message(&s, &m, NULL, NULL), 1);
    CHECK(str_eq_c(m.id, "2"));
    CHECK_INT(scan_message(&s, &m, NULL, NULL), 0);
    message_release(&m);
    scan_close(&s);
    scratch_leave();
}

TEST(a_replaced_file_stays_readable)
{
    struct message m = MESSAGE_INIT;
    struct scan s;

    scratch_enter();
    scratch_put("f", MESSAGE("1", "s") "\n");
    CHECK_INT(scan_open(&s, FILE_CWD, "f", NULL), 0);
    scratch_put("g", "");
    CHECK_INT(rename("g", "f"), 0);
    CHECK_INT(scan_message(&s, &m, NULL, NULL), 1);
    CHECK(str_eq_c(m.id, "1"));
    scan_close(&s);
    message_release(&m);
    scratch_leave();
}

TEST(a_file_that_is_cut_meanwhile_ends_earlier)
{
    const char *line = MESSAGE("1", "s") "\n";
    off_t n = (off_t)strlen(line);

    scratch_enter();
    for (off_t left = 0; left <= 5 * n; left++) {
        struct buf text = BUF_INIT(BUF_SMALL);
        struct message m = MESSAGE_INIT;
        struct err e = ERR_INIT;
        struct scan s;
        int count = 0, more;

        for (int i = 0; i < 5; i++)
            buf_add_c(&text, line);
        scratch_put("f", buf_c(&text));
        CHECK_INT(scan_open(&s, FILE_CWD, "f", &e), 0);
        s.block_size = 50;
        CHECK_INT(scan_message(&s, &m, NULL, &e), 1);
        CHECK_INT(truncate("f", left), 0);
        while ((more = scan_message(&s, &m, NULL, &e)) > 0)
            count++;
        CHECK_INT(more, 0);
        /* What is appended to it then is no part of what was opened. */
        scratch_put("f", buf_c(&text));
        CHECK_INT(scan_message(&s, &m, NULL, &e), 0);
        CHECK(count <= 4 && count >= (int)(left / n) - 1);
        message_release(&m);
        scan_close(&s);
        err_release(&e);
        buf_release(&text);
    }
    scratch_leave();
}

TEST(lines_can_be_read_again)
{
    struct buf out = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    struct scan s;

    scratch_enter();
    scratch_put("f", "abc\ndef\n");
    CHECK_INT(scan_open(&s, FILE_CWD, "f", NULL), 0);
    buf_add_c(&out, "old");
    CHECK_INT(scan_again(&s, 4, 3, &out, &e), 0);
    CHECK_STR(buf_c(&out), "def");
    CHECK_INT(scan_again(&s, 6, 5, &out, &e), -1);
    CHECK_STR(err_text(&e), "cannot read 'f': it has become shorter");
    scan_close(&s);
    buf_release(&out);
    err_release(&e);
    scratch_leave();
}

/* ---- long lines ---- */

TEST(a_line_that_is_too_long_is_passed_over_to_the_next_one)
{
    static const char text[] = "0123456789012345678901234567890123456789\nshort\nnext\n";
    struct scan s;
    struct line l;

    scratch_enter();
    scratch_put("f", text);
    CHECK_INT(scan_open(&s, FILE_CWD, "f", NULL), 0);
    s.block_size = 4;
    s.line_max = 10;
    CHECK_INT(scan_line(&s, &l, NULL), 1);
    CHECK(l.too_long);
    CHECK_MEM(l.text.p, l.text.n, "0123456789", 10);
    CHECK_INT(scan_line(&s, &l, NULL), 1);
    CHECK_MEM(l.text.p, l.text.n, "short", 5);
    scan_from(&s, 47);
    CHECK_INT(scan_line(&s, &l, NULL), 1);
    CHECK_MEM(l.text.p, l.text.n, "next", 4);
    scan_close(&s);
    scratch_leave();
}

/* ---- finding ---- */

/* Adds `count` lines with the id and 100 KB of text. */
static void add_long(struct buf *text, const char *id, int count)
{
    while (count-- > 0)
        buf_addf(text,
                 "{\"id\":\"%s\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\","
                 "\"content\":\"%0100000d\"}\n",
                 id, count);
}

TEST(the_last_message_with_an_id_is_found_wherever_it_is)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct message m = MESSAGE_INIT;
    struct scan s;

    scratch_enter();
    for (int after = 0; after < 12; after++) {
        buf_clear(&text);
        add_long(&text, "a", 3);
        add_long(&text, "b", 2);
        add_long(&text, "c", after);
        scratch_put("f", buf_c(&text));
        CHECK_INT(scan_open(&s, FILE_CWD, "f", NULL), 0);
        CHECK_INT(scan_find(&s, (struct str[]){STR("b"), STR("a")}, 2, &m, NULL), 1);
        CHECK(str_eq_c(m.id, "b"));
        for (int i = 0; i < after; i++)
            CHECK_INT(scan_message(&s, &m, NULL, NULL), 1);
        CHECK_INT(scan_message(&s, &m, NULL, NULL), 0);
        CHECK_INT(scan_find(&s, (struct str[]){STR_NONE, STR("a")}, 2, &m, NULL), 1);
        CHECK_INT(scan_message(&s, &m, NULL, NULL), 1);
        CHECK(str_eq_c(m.id, "b"));
        CHECK_INT(scan_find(&s, (struct str[]){STR("d")}, 1, &m, NULL), 0);
        scan_close(&s);
    }
    message_release(&m);
    buf_release(&text);
    scratch_leave();
}

TEST(pieces_from_the_end_have_each_line_once)
{
    struct scan s, part;
    struct line l;

    scratch_enter();
    for (int round = 0; round < 200; round++) {
        struct buf text = BUF_INIT(BUF_SMALL), got = BUF_INIT(BUF_SMALL),
                   piece = BUF_INIT(BUF_SMALL);
        off_t end;

        for (unsigned i = draw(30); i > 0; i--) {
            for (unsigned n = draw(draw(4) ? 5 : 60); n > 0; n--)
                buf_add_byte(&text, (char)('a' + draw(26)));
            buf_add_byte(&text, '\n');
        }
        scratch_put("f", buf_c(&text));
        CHECK_INT(scan_open(&s, FILE_CWD, "f", NULL), 0);
        for (end = s.size; scan_before(&s, &end, 1 + draw(20), &part, NULL) > 0;) {
            buf_clear(&piece);
            while (scan_line(&part, &l, NULL) > 0) {
                buf_add_str(&piece, l.text);
                buf_add_byte(&piece, '\n');
            }
            CHECK(piece.len > 0);
            buf_add_str(&piece, buf_str(&got));
            buf_set(&got, buf_str(&piece));
            scan_close(&part);
        }
        CHECK_STR(buf_c(&got), buf_c(&text));
        scan_close(&s);
        buf_release(&text);
        buf_release(&got);
        buf_release(&piece);
    }
    scratch_leave();
}

/* Two readings of one file do not disturb each other. */
TEST(a_file_is_shared_by_scans)
{
    struct scan s, part;
    struct line l;

    scratch_enter();
    scratch_put("f", "one\ntwo\nthree\n");
    CHECK_INT(scan_open(&s, FILE_CWD, "f", NULL), 0);
    scan_share(&part, &s, 4, 8);
    CHECK_INT(scan_line(&s, &l, NULL), 1);
    CHECK_MEM(l.text.p, l.text.n, "one", 3);
    CHECK_INT(scan_line(&part, &l, NULL), 1);
    CHECK_MEM(l.text.p, l.text.n, "two", 3);
    CHECK_INT(scan_line(&part, &l, NULL), 0);
    scan_close(&part);
    CHECK_INT(scan_line(&s, &l, NULL), 1);
    CHECK_MEM(l.text.p, l.text.n, "two", 3);
    scan_close(&s);
    scratch_leave();
}
