#include "chathist/search/skip_index.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "chathist/base/memory.h"
#include "chathist/search/search.h"
#include "test.h"
#include "scratch.h"
#include "scratch_history.h"

static int made; /* lines so far */

/* With these a section is 48 KB of history, and some KB are worth a look at the index. */
#define BLOCK ((off_t)256)
#define SECTION (BLOCK * (off_t)SKIP_SECTION_BLOCKS)
#define WINDOW ((size_t)512)

/* ---- a history ---- */

/* Appends this many lines; `number N` is in one alone. Some are bad, one is longer than a section,
 * and every other one begins as our own lines do. */
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

/* Appends a message with a word after this many zeros. */
static void append_content(const char *word, int zeros)
{
    struct buf b = BUF_INIT(SIZE_MAX);

    buf_addf(&b,
             "{\"id\":\"x\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\","
             "\"content\":\"%0*d %s\"}\n",
             zeros, 0, word);
    append(b.data, b.len);
    buf_release(&b);
}

static void begin(int lines)
{
    scratch_enter();
    made = 0;
    grow(lines);
}

/* ---- with and without ---- */

struct found {
    off_t at[4096];
    size_t count;
    uint64_t bad;
};

/* Searches for a text, or an expression behind `E:`; with the index, which may grow then. */
static void look(const char *text, size_t threads, bool with, struct found *f)
{
    struct pattern p;
    struct search s;
    struct hit hit;

    pattern_init(&p);
    p.regex = str_starts(str_of(text), STR("E:"));
    if (pattern_add(&p, str_of(text + (p.regex ? 2 : 0)), NULL) < 0 ||
        search_open(&s, FILE_CWD, "h", &p, NULL, NULL) < 0)
        abort();
    s.threads = threads;
    s.scan.block_size = WINDOW;
    s.skip_block = BLOCK;
    s.history = with ? &history : NULL;
    f->count = 0;
    while (search_next(&s, &hit, NULL) > 0 && f->count < 4096)
        f->at[f->count++] = hit.line.at;
    f->bad = s.scan.bad;
    search_learned_free(search_learned(&s), with ? &history : NULL, false);
    search_close(&s);
    pattern_release(&p);
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
                                        "E:number 7[05]\\.",
                                        "E:odd.*(?:ärger|000) \\d*3",
                                        "E:nothing|number 4",
                                        "0000000000"};
    bool all = true;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        all = same(texts[i]) && all;
    return all;
}

/* Loads the index for a text. Returns whether it covers the history as far as it can. */
static bool load(struct skip_map *m, const char *text)
{
    struct skip_query q = {0};
    int fd = open("h", O_RDONLY);

    skip_query_add(&q, str_of(text));
    skip_query_end(&q);
    skip_map_open(m, fd, size_of("h"), BLOCK);
    skip_map_load(m, &history, &q);
    skip_query_release(&q);
    close(fd);
    return m->complete;
}

static bool is_whole(void)
{
    struct skip_map m;
    bool whole = load(&m, "nothing of it");

    skip_map_release(&m);
    return whole;
}

/* Waits until a later change of the history has another time. */
static void settle(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
}

/* Searches until the index is complete. Returns how many searches that took. */
static int build(void)
{
    static struct found f;
    int searches = 0;

    settle();
    while (!is_whole() && searches < 60) {
        look("nothing of it", 1, true, &f);
        searches++;
    }
    return searches;
}

/* ---- which part is read ---- */

TEST(a_map_says_which_ranges_must_be_read)
{
    uint64_t words[SKIP_WORDS] = {0};
    struct skip_map all = {0}, m = {.block = 10, .count = SKIP_SECTION_BLOCKS, .wanted = words};

    CHECK_INT(skip_map_end(&all, 777, 0), 777);
    CHECK_INT(skip_map_begin(&all, 777, 5), 5);
    CHECK_INT(skip_map_left(&all, 777), 777);
    CHECK_INT(skip_map_end(&m, 1920, 0), 0);
    CHECK_INT(skip_map_left(&m, 1920), 0);
    /* The bytes after the last block must be read. */
    CHECK_INT(skip_map_end(&m, 1925, 0), 1925);
    CHECK_INT(skip_map_begin(&m, 1925, 3), 1920);
    CHECK_INT(skip_map_begin(&m, 1990, 1930), 1930);
    CHECK_INT(skip_map_left(&m, 1925), 5);
    words[0] = 0x31; /* blocks 0, 4 and 5 */
    words[2] = UINT64_C(1) << 63;
    CHECK_INT(skip_map_end(&m, 1910, 0), 60);
    CHECK_INT(skip_map_begin(&m, 60, 0), 40);
    CHECK_INT(skip_map_begin(&m, 60, 45), 45);
    CHECK_INT(skip_map_end(&m, 55, 0), 55);
    CHECK_INT(skip_map_end(&m, 41, 0), 41);
    CHECK_INT(skip_map_end(&m, 40, 0), 10);
    CHECK_INT(skip_map_end(&m, 40, 10), 10);
    CHECK_INT(skip_map_end(&m, 40, 25), 25);
    CHECK_INT(skip_map_begin(&m, 1930, 0), 1910);
    CHECK_INT(skip_map_left(&m, 1930), 50);
    CHECK_INT(skip_map_left(&m, 45), 15);
}

/* ---- grams ---- */

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
    /* A clause with such a text is left out. */
    skip_query_add(&q, STR("abc"));
    skip_query_add(&q, STR("ab"));
    skip_query_end(&q);
    CHECK(!skip_query_helps(&q));
    skip_query_add(&q, STR("abc"));
    skip_query_end(&q);
    skip_query_add(&q, STR("ab"));
    skip_query_end(&q);
    CHECK(skip_query_helps(&q));
    CHECK_INT(q.count, 1);
    skip_query_release(&q);
}

/* ---- growing ---- */

TEST(it_changes_no_answer)
{
    begin(1500);
    CHECK(size_of("h") > 4 * SECTION);
    settle();
    CHECK(agrees());
    CHECK_INT(scratch_mode("h.skip"), 0600);
    build();
    CHECK(is_whole());
    CHECK(agrees());
    CHECK_INT(build(), 0);
    scratch_leave();
}

TEST(blocks_without_a_text_are_not_wanted)
{
    struct skip_map m;
    size_t wanted = 0, block;

    begin(1500);
    build();
    block = (size_t)(place_of("number 600.") / BLOCK);
    CHECK(load(&m, "number 600."));
    /* The line begins in this block or in the one before. */
    CHECK((m.wanted[block / 64] | m.wanted[(block - 1) / 64]) != 0);
    for (size_t i = 0; i < m.count; i++)
        wanted += m.wanted[i / 64] >> i % 64 & 1;
    CHECK(wanted > 0 && wanted < m.count / 4);
    skip_map_release(&m);
    scratch_leave();
}

TEST(a_search_that_ends_early_learns_nothing)
{
    struct search_learned *learned;
    struct pattern p;
    struct search s;
    struct hit hit;

    begin(1500);
    settle();
    pattern_init(&p);
    CHECK_INT(pattern_add(&p, STR("number 600."), NULL), 0);
    CHECK_INT(search_open(&s, FILE_CWD, "h", &p, NULL, NULL), 0);
    s.scan.block_size = WINDOW;
    s.skip_block = BLOCK;
    s.history = &history;
    CHECK_INT(search_next(&s, &hit, NULL), 1);
    CHECK(!search_learned(&s));
    CHECK_INT(search_next(&s, &hit, NULL), 0);
    CHECK((learned = search_learned(&s)) != NULL);
    search_learned_free(learned, NULL, false);
    CHECK_INT(size_of("h.skip"), -1);
    search_close(&s);
    pattern_release(&p);
    scratch_leave();
}

/* The index does not help with a text that is in nearly all blocks. */
TEST(a_common_text_adds_nothing)
{
    static struct found f;

    begin(1500);
    settle();
    look("number", 1, true, &f);
    CHECK(f.count > 1000);
    CHECK_INT(size_of("h.skip"),
              f.count < (size_t)(size_of("h") / BLOCK) ? (off_t)SKIP_SECTION_SIZE : -1);
    scratch_leave();
}

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns how long ago the history was changed, by the clock that the files' times are taken from
 * or a later one. */
static int64_t age(void)
{
    struct timespec now;
    struct stat st;

    if (stat("h", &st) < 0)
        abort();
    clock_gettime(CLOCK_REALTIME, &now);
    return nanoseconds(now) - nanoseconds(st.st_mtim);
}

/* A change within the same tick of the clock would leave no trace. A round in which this program
 * was held up for longer than a tick proves nothing. */
TEST(a_history_that_was_just_changed_has_none)
{
    static struct found f;

    begin(1500);
    for (int i = 0; i < 20; i++) {
        settle();
        grow(1);
        look("nothing of it", 1, true, &f);
        if (age() < 10000000)
            CHECK_INT(size_of("h.skip"), -1);
        unlink("h.skip");
    }
    scratch_leave();
}

TEST(one_search_after_an_append_is_enough)
{
    static struct found f;

    begin(1200);
    build();
    for (int i = 0; i < 6; i++) {
        append_own(STR("s"), STR("the number 600, again"));
        if (i % 2)
            grow(1);
        settle();
        CHECK(!is_whole());
        look("nothing of it", 1 + (size_t)i % 2, true, &f);
        CHECK(is_whole());
        CHECK(agrees());
    }
    scratch_leave();
}

TEST(blocks_are_added_as_the_history_grows)
{
    begin(1200);
    build();
    for (int i = 0; i < 4; i++) {
        grow(60);
        CHECK(agrees());
        build();
        CHECK(is_whole());
        CHECK(agrees());
    }
    scratch_leave();
}

/* The line that the covered part ends in may be longer than a block, and change afterwards. */
TEST(a_line_across_the_end_of_the_covered_part_is_always_read)
{
    for (int length = 200; length < 3000; length *= 3) {
        begin(300);
        while (size_of("h") < SECTION + 40 * BLOCK)
            grow(1);
        append_content("unicorn", length);
        build();
        CHECK(same("unicorn"));
        overwrite("h", place_of("unicorn"), "walrus!", 7);
        settle();
        CHECK(same("walrus!"));
        grow(100);
        settle();
        CHECK(agrees());
        CHECK(same("walrus!"));
        build();
        CHECK(same("walrus!"));
        CHECK(agrees());
        scratch_leave();
    }
}

/* ---- histories that were changed ---- */

TEST(a_change_by_hand_is_seen)
{
    begin(1200);
    build();
    overwrite("h", place_of("number 600."), "nothing of i", 12);
    CHECK(agrees());
    CHECK(same("thing of i"));
    build();
    CHECK(is_whole());
    CHECK(same("thing of i"));
    /* Something is appended before a search has read the line that was changed. */
    overwrite("h", place_of("number 300."), "nowhere ..", 10);
    grow(2);
    CHECK(same("nowhere .."));
    settle();
    CHECK(same("nowhere .."));
    build();
    CHECK(is_whole());
    CHECK(same("nowhere .."));
    CHECK(agrees());
    scratch_leave();
}

/* A writer takes a line back after a search has read it, and another line takes its place. */
TEST(a_line_that_was_taken_back_is_not_covered)
{
    static const char *const words[] = {"unicorn 1.", "walrus 22."};
    off_t end;

    begin(100);
    while (size_of("h") < 3 * SECTION - 400)
        grow(1);
    build();
    end = size_of("h");
    for (int i = 0; i < 2; i++) {
        append_content(words[i], 5000);
        build();
        if (i == 0)
            CHECK_INT(truncate("h", end), 0);
    }
    CHECK(same(words[1]));
    CHECK(same(words[0]));
    scratch_leave();
}

TEST(a_history_that_was_replaced_is_another)
{
    begin(1500);
    build();
    CHECK_INT(truncate("h", 2 * SECTION + 100), 0);
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
    build();
    CHECK(is_whole());
    CHECK(agrees());
    CHECK_INT(rename("other", "h"), 0);
    CHECK(agrees());
    history_remove_index(&history);
    CHECK_INT(size_of("h.skip"), -1);
    CHECK(agrees());
    scratch_leave();
}

/* ---- an index that was changed ---- */

/* Changes each byte of a header, and many of the rows. */
TEST(damaged_parts_are_not_used)
{
    struct buf good;
    unsigned seed = 1;

    begin(1200);
    build();
    good = scratch_get("h.skip");
    for (size_t i = 0; i < SKIP_HEADER_SIZE + 64; i++) {
        size_t at = i < SKIP_HEADER_SIZE ? i : (seed = seed * 1103515245 + 12345) % good.len;
        char byte = (char)(good.data[at] ^ (1 << i % 8));

        overwrite("h.skip", (off_t)at, &byte, 1);
        CHECK(same("number 300."));
        CHECK(same("message of number 50"));
        scratch_put_bytes("h.skip", good.data, good.len);
        CHECK_INT(chmod("h.skip", 0600), 0);
    }
    CHECK(is_whole());
    /* All bits that could hide a block. */
    for (size_t i = 0; i < 4; i++) {
        struct buf bad = BUF_INIT(SIZE_MAX);

        buf_add_str(&bad, buf_str(&good));
        memset(bad.data + SKIP_HEADER_SIZE, i % 2 ? 0xff : 0, SKIP_SECTION_SIZE - SKIP_HEADER_SIZE);
        scratch_put_bytes("h.skip", bad.data, bad.len);
        CHECK(!is_whole());
        CHECK(agrees());
        buf_release(&bad);
    }
    CHECK_INT(truncate("h.skip", (off_t)SKIP_SECTION_SIZE * 2 + 1000), 0);
    CHECK(agrees());
    buf_release(&good);
    scratch_leave();
}

/* A power cut can leave the headers without all rows. */
TEST(a_section_without_its_rows_is_made_again)
{
    struct buf rows = BUF_INIT(SIZE_MAX);

    begin(1200);
    build();
    memset(buf_room(&rows, SKIP_ROW_SIZE * 1000), 0, SKIP_ROW_SIZE * 1000);
    overwrite("h.skip", (off_t)(SKIP_SECTION_SIZE - SKIP_ROW_SIZE * 1000), rows.data,
              SKIP_ROW_SIZE * 1000);
    CHECK_INT(truncate("h.skip", (off_t)SKIP_SECTION_SIZE * 2 + 1000), 0);
    CHECK(agrees());
    build();
    CHECK(is_whole());
    CHECK(agrees());
    CHECK_INT(build(), 0);
    buf_release(&rows);
    scratch_leave();
}

/* Two sections change places; or the index was made of blocks of another size. */
TEST(a_section_has_its_place)
{
    static struct found f;
    struct buf all, turned = BUF_INIT(SIZE_MAX);

    begin(1200);
    build();
    all = scratch_get("h.skip");
    buf_add(&turned, all.data + SKIP_SECTION_SIZE, SKIP_SECTION_SIZE);
    buf_add(&turned, all.data, SKIP_SECTION_SIZE);
    overwrite("h.skip", 0, turned.data, turned.len);
    CHECK(!is_whole());
    CHECK(agrees());
    build();
    CHECK(is_whole());
    look("nothing of it", 1, false, &f);
    buf_release(&all);
    buf_release(&turned);
    scratch_leave();
}

/* ---- where it cannot be ---- */

static void search_once(void)
{
    static struct found f;

    settle();
    look("nothing of it", 1, true, &f);
}

TEST(a_search_does_not_wait_for_another_program)
{
    int fd;

    begin(1200);
    scratch_put("h.skip", "");
    CHECK_INT(chmod("h.skip", 0600), 0);
    fd = open("h.skip", O_RDWR);
    CHECK_INT(flock(fd, LOCK_EX), 0);
    search_once();
    CHECK_INT(size_of("h.skip"), 0);
    CHECK(agrees());
    close(fd);
    CHECK(build() > 0);
    scratch_leave();
}

/* Another program replaces the history between the search and the update of the index. */
TEST(a_history_that_was_erased_meanwhile_is_not_covered)
{
    struct skip_map m;

    begin(1200);
    settle();
    load(&m, "nothing of it");
    CHECK_INT(rename("h", "old"), 0);
    append("", 0);
    skip_index_update(&history, &m, SKIP_PART);
    CHECK_INT(size_of("h.skip"), -1);
    skip_map_release(&m);
    scratch_leave();
}
