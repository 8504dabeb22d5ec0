#include "chathist/search/skip_build.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "chathist/base/le.h"
#include "chathist/base/mem.h"
#include "chathist/history/index.h"
#include "chathist/history/index_file.h"
#include "chathist/search/search.h"
#include "test.h"
#include "scratch.h"
#include "scratch_history.h"

/* With these a chunk is 48 KB of history, and some KB are worth asking for. */
#define BLOCK ((off_t)256)
#define CHUNK (BLOCK * (off_t)SKIP_BLOCKS)
#define WINDOW ((size_t)512)

static unsigned chunks_made;
static int last_percent;

static void count_work(int percent)
{
    chunks_made += percent >= 0;
    if (percent >= 0)
        last_percent = percent;
}

/* ---- a history ---- */

/* So many lines; `number N` is in one alone. Some are bad, one is longer than a chunk, and every
 * other one begins as ours do. */
static void grow(int lines)
{
    struct buf b = BUF_INIT(SIZE_MAX);

    for (int i = 0; i < lines; i++, made++) {
        if (made % 97 == 50)
            buf_addf(&b, "no message of number %d\n\n", made);
        buf_addf(&b,
                 "{\"id\":\"%s%08d\",\"session_id\":\"sess_1719500000000_f0e1d%d\","
                 "\"timestamp\":\"2024-06-27T15:00:00.000000+00:00\",\"role\":\"%s\","
                 "\"content\":\"%s number %d. \\u00c4rger %0*d\",\"model\":\"elsewhere\"}\n",
                 made % 2 ? "1719500000000-" : "", made, made % 7, made % 2 ? "user" : "assistant",
                 made % 3 ? "odd" : "Stra\303\237e", made, made == 200 ? 60000 : made % 100, 7);
    }
    append(b.data, b.len);
    buf_release(&b);
}

static void begin(int lines)
{
    scratch_enter();
    made = 0;
    chunks_made = 0;
    history.work = count_work;
    grow(lines);
}

/* ---- with and without ---- */

struct found {
    off_t at[4096];
    size_t count;
    uint64_t bad;
};

static bool look(const char *text, size_t threads, bool with, struct found *f)
{
    struct pattern p;
    struct search s;
    struct hit hit;
    bool was_long;

    pattern_init(&p);
    if (pattern_add(&p, str_of(text), NULL) < 0 ||
        search_open(&s, IO_CWD, "h", &p, NULL, SCAN_BACKWARD, NULL) < 0)
        abort();
    s.threads = threads;
    s.scan.block_size = WINDOW;
    s.skip_block = BLOCK;
    s.history = with ? &history : NULL;
    f->count = 0;
    while (search_next(&s, &hit, NULL) > 0 && f->count < 4096)
        f->at[f->count++] = hit.line.at;
    f->bad = s.scan.bad;
    was_long = search_was_long(&s);
    search_close(&s);
    pattern_release(&p);
    return was_long;
}

static bool same(const char *text)
{
    static struct found with, without;
    bool is = true;

    look(text, 1, false, &without);
    for (size_t threads = 1; threads <= 2; threads++) {
        look(text, threads, true, &with);
        is = is && with.count == without.count && with.bad == without.bad &&
             memcmp(with.at, without.at, with.count * sizeof(*with.at)) == 0;
    }
    if (!is)
        fprintf(stderr, "    '%s': %zu and %zu hits\n", text, with.count, without.count);
    return is;
}

static bool agrees(void)
{
    static const char *const texts[] = {"number 7.",
                                        "NUMBER 300.",
                                        "number 600",
                                        "\303\244rger",
                                        "\303\204RGER 0",
                                        "stra\341\272\236e number",
                                        "message of number 632",
                                        "elsewhere",
                                        "no",
                                        "nothing of it",
                                        "odd number",
                                        "0000000000"};
    bool all = true;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        all = same(texts[i]) && all;
    return all;
}

/* Is every chunk of use that could be there? */
static bool is_whole(void)
{
    static struct found f;

    return !look("nothing of it", 1, true, &f) && f.count == 0;
}

/* Makes what is missing: so many chunks. */
static unsigned build(void)
{
    chunks_made = 0;
    skip_build(&history, BLOCK);
    return chunks_made;
}

/* ---- which part is read ---- */

TEST(a_map_tells_what_is_to_be_read)
{
    uint64_t words[SKIP_WORDS] = {0};
    struct skip_map all = {0}, m = {.block = 10, .count = SKIP_BLOCKS, .words = words};

    CHECK_INT(skip_map_end(&all, 777), 777);
    CHECK_INT(skip_map_begin(&all, 777, 5), 5);
    CHECK_INT(skip_map_left(&all, 777), 777);
    CHECK_INT(skip_map_end(&m, 1920), 0);
    CHECK_INT(skip_map_left(&m, 1920), 0);
    /* What is behind the last block is to be read. */
    CHECK_INT(skip_map_end(&m, 1925), 1925);
    CHECK_INT(skip_map_begin(&m, 1925, 3), 1920);
    CHECK_INT(skip_map_begin(&m, 1990, 1930), 1930);
    CHECK_INT(skip_map_left(&m, 1925), 5);
    words[0] = 0x31; /* blocks 0, 4 and 5 */
    words[2] = UINT64_C(1) << 63;
    CHECK_INT(skip_map_end(&m, 1910), 60);
    CHECK_INT(skip_map_begin(&m, 60, 0), 40);
    CHECK_INT(skip_map_begin(&m, 60, 45), 45);
    CHECK_INT(skip_map_end(&m, 55), 55);
    CHECK_INT(skip_map_end(&m, 41), 41);
    CHECK_INT(skip_map_end(&m, 40), 10);
    CHECK_INT(skip_map_begin(&m, 1930, 0), 1910);
    CHECK_INT(skip_map_left(&m, 1930), 50);
    CHECK_INT(skip_map_left(&m, 45), 15);
}

/* ---- what is proven ---- */

/* A line that begins as ours, and whether its block is to be proven. */
static const struct sort {
    const char *rest;
    bool proven;
} sorts[] = {{"\"one\"", true},
             {"\"one\",\"content\":\"two\"", false},
             {"\"one\",\"x\":{\"content\":\"two\"}", true},
             {"null", true},
             {"7", false},
             {"\"one\",", false},
             {"\"\xff\"", false},
             {"\"one\",\"c\\u006fntent\":\"two\"", false}};
#define SORTS (sizeof(sorts) / sizeof(sorts[0]))

TEST(a_block_is_proven_whose_lines_are_messages_with_one_content)
{
    struct skip_query q = {0};
    struct skip_map m;
    struct buf b = BUF_INIT(SIZE_MAX);
    size_t sort_of[3 * SKIP_BLOCKS];
    int fd;

    scratch_enter();
    /* Each in a block of its own, and one behind the last chunk. */
    for (size_t i = 0; i <= 2 * SKIP_BLOCKS; i++) {
        size_t begin = b.len;

        sort_of[i] = i % 5 ? 0 : i / 5 % SORTS;
        buf_addf(
            &b,
            "{\"id\":\"1719500000000-a1b2c3d4\",\"session_id\":\"sess_1719500000000_f0e1d2\","
            "\"timestamp\":\"2024-06-27T15:00:00.000000+00:00\",\"role\":\"tool\",\"content\":%s}",
            sorts[sort_of[i]].rest);
        /* A line of a length that is the next block's from its first byte on. */
        while (b.len - begin < (size_t)BLOCK - (i > 0))
            buf_add_byte(&b, ' ');
        buf_add_byte(&b, '\n');
    }
    append(b.data, b.len);
    build();
    skip_query_add(&q, STR("one"));
    fd = open("h", O_RDONLY);
    skip_map_make(&m, IO_CWD, "h.skip", index_file_generation(IO_CWD, "h.idx", fd), BLOCK,
                  (off_t)b.len, &q);
    for (size_t i = 0; i < 2 * SKIP_BLOCKS; i++)
        CHECK_INT(skip_map_proven(&m, (off_t)i * BLOCK + (i > 0)), sorts[sort_of[i]].proven);
    CHECK(!skip_map_proven(&m, (off_t)(2 * SKIP_BLOCKS) * BLOCK + 1));
    skip_map_release(&m);
    /* Of another generation nothing is known. */
    skip_map_make(&m, IO_CWD, "h.skip", 1, BLOCK, (off_t)b.len, &q);
    CHECK(!skip_map_proven(&m, 0));
    skip_map_release(&m);
    skip_query_release(&q);
    buf_release(&b);
    close(fd);
    scratch_leave();
}

TEST(grams_are_those_of_the_folded_text)
{
    static const char *const same_ones[][2] = {{"Stra\303\237e", "STRA\341\272\236E"},
                                               {"\342\204\252elvin", "kelvin"},
                                               {"\320\223\320\230", "\320\263\320\270"},
                                               {"[\\]^@`{", "[\\]^@`{"}};
    static unsigned char a[SKIP_ROWS], b[SKIP_ROWS];

    for (size_t i = 0; i < 4; i++) {
        memset(a, 0, sizeof(a));
        memset(b, 0, sizeof(b));
        skip_mark(a, 4, str_of(same_ones[i][0]));
        skip_mark(b, 4, str_of(same_ones[i][1]));
        CHECK(memcmp(a, b, sizeof(a)) == 0);
        CHECK(memchr(a, 4, sizeof(a)));
    }
    memset(a, 0, sizeof(a));
    skip_mark(a, 1, STR("ab"));
    skip_mark(a, 1, STR(""));
    CHECK(!memchr(a, 1, sizeof(a)));
    /* Of three bytes one, with a NUL or without. */
    skip_mark(a, 1, STR("a\0b"));
    CHECK(memchr(a, 1, sizeof(a)));
}

TEST(a_short_text_is_not_asked_for)
{
    struct skip_query q = {0};

    skip_query_add(&q, STR("abc"));
    CHECK(!q.useless);
    skip_query_add(&q, STR("ab"));
    CHECK(q.useless);
    skip_query_release(&q);
    /* By bytes: one of these is enough. */
    skip_query_add(&q, STR("\346\274\242"));
    CHECK(!q.useless);
    skip_query_release(&q);
}

/* ---- making it ---- */

TEST(it_changes_no_answer)
{
    begin(1500);
    CHECK(size_of("h") > 4 * CHUNK);
    CHECK(agrees());
    CHECK(!is_whole());
    CHECK_INT(size_of("h.skip"), -1);
    CHECK_INT(build(), size_of("h") / CHUNK);
    CHECK_INT(last_percent, 100);
    CHECK(is_whole());
    CHECK(agrees());
    CHECK_INT(scratch_mode("h.skip"), 0600);
    CHECK_INT(build(), 0);
    scratch_leave();
}

TEST(a_search_that_ends_early_needs_none)
{
    struct pattern p;
    struct search s;
    struct hit hit;

    begin(1500);
    pattern_init(&p);
    CHECK_INT(pattern_add(&p, STR("number 600."), NULL), 0);
    CHECK_INT(search_open(&s, IO_CWD, "h", &p, NULL, SCAN_BACKWARD, NULL), 0);
    s.scan.block_size = WINDOW;
    s.skip_block = BLOCK;
    s.history = &history;
    CHECK_INT(search_next(&s, &hit, NULL), 1);
    CHECK(!search_was_long(&s));
    CHECK_INT(search_next(&s, &hit, NULL), 0);
    CHECK(search_was_long(&s));
    search_close(&s);
    pattern_release(&p);
    scratch_leave();
}

TEST(a_small_history_has_none)
{
    begin(100);
    CHECK(size_of("h") < CHUNK);
    CHECK_INT(build(), 0);
    CHECK_INT(size_of("h.skip"), -1);
    CHECK_INT(size_of("h.idx"), -1);
    CHECK(agrees());
    scratch_leave();
}

/* Of an index that is made or made anew for the same history. */
TEST(the_index_beside_it_may_come_later)
{
    struct index x;

    begin(1500);
    build();
    CHECK(size_of("h") >= INDEX_LEAST);
    CHECK_INT(size_of("h.idx"), INDEX_PREAMBLE);
    if (CHECK(index_open(&x, &history)))
        index_close(&x);
    CHECK(size_of("h.idx") > INDEX_PREAMBLE);
    CHECK(is_whole());
    index_open(&x, &history);
    index_discard(&x);
    CHECK(!is_whole());
    CHECK(agrees());
    scratch_leave();
}

TEST(what_is_appended_is_found)
{
    begin(1200);
    build();
    for (int i = 0; i < 6; i++) {
        append_own(STR("s"), STR("the number 600, again"));
        CHECK(is_whole());
        CHECK(agrees());
    }
    /* The next chunk is made when there is all of it. */
    for (off_t before = size_of("h") / CHUNK; size_of("h") / CHUNK == before;) {
        append_own(STR("s"), STR("the number 600, \n\n once more"));
    }
    CHECK(!is_whole());
    CHECK(agrees());
    CHECK_INT(build(), 1);
    CHECK(is_whole());
    CHECK(agrees());
    scratch_leave();
}

TEST(what_others_append_costs_no_chunk)
{
    begin(1200);
    build();
    grow(3);
    CHECK(!is_whole());
    CHECK(agrees());
    CHECK_INT(build(), 0);
    CHECK(is_whole());
    CHECK(agrees());
    scratch_leave();
}

/* ---- what is none of it ---- */

static void update_index(void)
{
    int fd = open("h", O_RDONLY);

    CHECK(index_file_ready(&history, fd) != 0);
    close(fd);
}

TEST(a_change_by_hand_is_seen)
{
    begin(1200);
    build();
    overwrite("h", place_of("number 600."), "nothing of i", 12);
    CHECK(agrees());
    CHECK(same("thing of i"));
    /* Nor is it, when another program has brought the index up to date. */
    update_index();
    CHECK(same("thing of i"));
    CHECK_INT(build(), 1);
    CHECK(is_whole());
    CHECK(same("thing of i"));
    /* And when something was appended before anybody has looked. */
    overwrite("h", place_of("number 300."), "nowhere ..", 10);
    grow(2);
    CHECK(same("nowhere .."));
    update_index();
    CHECK(same("nowhere .."));
    CHECK_INT(build(), 1);
    CHECK(is_whole());
    CHECK(same("nowhere .."));
    CHECK(agrees());
    scratch_leave();
}

/* One at the very time of the state that is noted leaves no trace in it, but elsewhere. */
TEST(a_change_that_only_the_index_shows_is_seen)
{
    struct stat st;
    struct index x;
    int history_fd, index_fd, reason;

    begin(1200);
    while (size_of("h") < INDEX_LEAST)
        grow(100);
    build();
    CHECK(index_open(&x, &history));
    index_close(&x);
    CHECK(is_whole());
    overwrite("h", size_of("h") - 30, "y", 1);
    overwrite("h", place_of("number 600."), "nothing of i", 12);
    history_fd = open("h", O_RDONLY);
    index_fd = index_file_open(IO_CWD, "h.idx", &reason);
    CHECK_INT(fstat(history_fd, &st), 0);
    index_file_note(index_fd, &st, true);
    close(history_fd);
    close(index_fd);
    CHECK(index_open(&x, &history));
    index_close(&x);
    CHECK(same("thing of i"));
    scratch_leave();
}

/* The line with which a chunk ends is read by others, taken back, and another one comes. */
TEST(what_was_taken_back_is_not_what_it_tells_of)
{
    static const char first[] = "unicorn 1.", second[] = "walrus 22.";
    struct index_watch watch;
    struct buf line = BUF_INIT(SIZE_MAX);
    off_t end;
    int fd;

    begin(100);
    while (size_of("h") < INDEX_LEAST)
        grow(1);
    build();
    end = size_of("h") / CHUNK * CHUNK + CHUNK;
    while (size_of("h") < end - 400)
        grow(1);
    for (int i = 0; i < 2; i++) {
        fd = open("h", O_RDWR | O_APPEND);
        end = size_of("h");
        if (i == 0)
            CHECK(index_file_ready(&history, fd) != 0);
        index_watch_begin(&watch, &history, fd);
        buf_clear(&line);
        buf_addf(&line,
                 "{\"id\":\"x\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\","
                 "\"content\":\"%s %0*d\"}\n",
                 i ? second : first, 1000, 0);
        append(line.data, line.len);
        index_watch_note(&watch, fd);
        build();
        /* As append_write does when the sync fails. */
        if (i == 0)
            CHECK_INT(ftruncate(fd, end), 0);
        index_watch_end(&watch);
        close(fd);
    }
    CHECK(same(second));
    CHECK(same(first));
    buf_release(&line);
    scratch_leave();
}

TEST(a_history_that_was_replaced_is_another)
{
    begin(1500);
    build();
    CHECK_INT(truncate("h", 2 * CHUNK + 100), 0);
    CHECK(agrees());
    build();
    CHECK(agrees());
    grow(700);
    CHECK(agrees());
    build();
    CHECK(agrees());
    CHECK_INT(rename("h", "other"), 0);
    made = 1;
    grow(1500);
    CHECK(agrees());
    CHECK(build() > 0);
    CHECK(is_whole());
    CHECK(agrees());
    CHECK_INT(rename("other", "h"), 0);
    CHECK(agrees());
    history_remove_index(&history);
    CHECK_INT(size_of("h.skip"), -1);
    CHECK(agrees());
    scratch_leave();
}

/* Each byte of a header, and many of the rows. */
TEST(what_was_changed_in_it_is_not_used)
{
    struct buf good;
    unsigned seed = 1;

    begin(1200);
    build();
    good = scratch_get("h.skip");
    for (size_t i = 0; i < 600; i++) {
        size_t at =
            i / 8 < SKIP_HEADER_SIZE ? i / 8 : (seed = seed * 1103515245 + 12345) % good.len;
        char byte = (char)(good.data[at] ^ (1 << i % 8));

        overwrite("h.skip", (off_t)at, &byte, 1);
        CHECK(same("number 300."));
        CHECK(same("message of number 50"));
        overwrite("h.skip", (off_t)at, good.data + at, 1);
    }
    CHECK(is_whole());
    /* All bits that could hide something. */
    for (size_t i = 0; i < 4; i++) {
        struct buf bad = BUF_INIT(SIZE_MAX);

        buf_add_str(&bad, buf_str(&good));
        memset(bad.data + SKIP_HEADER_SIZE, i % 2 ? 0xff : 0, SKIP_CHUNK_SIZE - SKIP_HEADER_SIZE);
        scratch_put_bytes("h.skip", bad.data, bad.len);
        CHECK(agrees());
        CHECK(!is_whole());
        buf_release(&bad);
    }
    CHECK_INT(truncate("h.skip", (off_t)SKIP_CHUNK_SIZE * 2 + 1000), 0);
    CHECK(agrees());
    buf_release(&good);
    scratch_leave();
}

/* As a power cut can leave it: the headers are there, and not all rows. */
TEST(a_chunk_without_its_rows_is_made_anew)
{
    struct buf rows = BUF_INIT(SIZE_MAX);

    begin(1200);
    build();
    memset(buf_room(&rows, SKIP_ROW_SIZE * 1000), 0, SKIP_ROW_SIZE * 1000);
    overwrite("h.skip", (off_t)(SKIP_CHUNK_SIZE - SKIP_ROW_SIZE * 1000), rows.data,
              SKIP_ROW_SIZE * 1000);
    CHECK_INT(truncate("h.skip", (off_t)SKIP_CHUNK_SIZE * 2 + 1000), 0);
    CHECK(agrees());
    CHECK(build() >= 2);
    CHECK(is_whole());
    CHECK(agrees());
    CHECK_INT(build(), 0);
    buf_release(&rows);
    scratch_leave();
}

/* A chunk in another one's place, or of other blocks. */
TEST(a_chunk_has_its_place)
{
    struct buf all, turned = BUF_INIT(SIZE_MAX);

    begin(1200);
    build();
    all = scratch_get("h.skip");
    buf_add(&turned, all.data + SKIP_CHUNK_SIZE, SKIP_CHUNK_SIZE);
    buf_add(&turned, all.data, SKIP_CHUNK_SIZE);
    overwrite("h.skip", 0, turned.data, turned.len);
    CHECK(agrees());
    CHECK(!is_whole());
    CHECK_INT(build(), 2);
    CHECK(is_whole());
    skip_build(&history, BLOCK / 2);
    CHECK(agrees());
    CHECK(!is_whole());
    buf_release(&all);
    buf_release(&turned);
    scratch_leave();
}

/* ---- where it cannot be ---- */

TEST(what_is_in_its_place_is_left_alone)
{
    begin(1200);
    CHECK_INT(mkdir("h.skip", 0700), 0);
    CHECK_INT(build(), 0);
    CHECK(agrees());
    CHECK_INT(rmdir("h.skip"), 0);
    scratch_put("other", "mine");
    CHECK_INT(symlink("other", "h.skip"), 0);
    CHECK_INT(build(), 0);
    CHECK(agrees());
    CHECK_INT(unlink("h.skip"), 0);
    CHECK_INT(link("other", "h.skip"), 0);
    CHECK_INT(build(), 0);
    CHECK(agrees());
    CHECK_INT(size_of("other"), 4);
    CHECK_INT(unlink("h.skip"), 0);
    scratch_put("h.skip", "");
    CHECK_INT(chmod("h.skip", 0622), 0);
    CHECK_INT(build(), 0);
    CHECK_INT(size_of("h.skip"), 0);
    scratch_leave();
}

TEST(nobody_waits_for_another_program)
{
    int fd;

    begin(1200);
    scratch_put("h.skip", "");
    CHECK_INT(chmod("h.skip", 0600), 0);
    fd = open("h.skip", O_RDWR);
    CHECK_INT(flock(fd, LOCK_EX), 0);
    CHECK_INT(build(), 0);
    CHECK(agrees());
    close(fd);
    CHECK(build() > 0);
    scratch_leave();
}

TEST(a_disk_that_is_full_gets_it_back)
{
    struct rlimit before, limit;

    begin(1200);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = SKIP_CHUNK_SIZE + 5000;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_INT(build(), 2);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    CHECK_INT(size_of("h.skip"), -1);
    CHECK(agrees());
    scratch_leave();
}

/* Which of two programs is first, the eraser has the last word. */
static void replace_meanwhile(int percent)
{
    if (percent >= 0 && size_of("h") > CHUNK) {
        if (rename("h", "old") < 0)
            abort();
        append("", 0);
    }
}

TEST(what_was_erased_meanwhile_is_not_kept)
{
    begin(1200);
    history.work = replace_meanwhile;
    skip_build(&history, BLOCK);
    CHECK_INT(size_of("h"), 0);
    CHECK_INT(size_of("h.skip"), -1);
    scratch_leave();
}
