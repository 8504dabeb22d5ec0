#include "history/segment_runs.h"
#include "history/segment_names.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "chathist/base/le.h"
#include "test.h"
#include "draw.h"
#include "scratch.h"

#define MESSAGE(id, session, time, role, content)                                                  \
    "{\"id\":\"" id "\",\"session_id\":\"" session "\",\"timestamp\":\"" time                      \
    "\",\"role\":\"" role "\",\"content\":\"" content "\"}\n"

/* Its messages are at 0, 79, 175 … as the checks have it. */
static const char history[] = MESSAGE("1", "a", "t1", "user", "first \\u00e4")
    MESSAGE("2", "b", "t2", "system",
            "second") "no message\n"
                      "\n" MESSAGE("3", "a", "later than t1", "assistant",
                                   "third") "[]\n" MESSAGE("4", "c\\u0000d", "", "user", "")
                          MESSAGE("5", "a", "t5", "user", "fifth");

static struct buf make(const char *content, size_t piece, size_t threads)
{
    struct buf out = BUF_INIT(SIZE_MAX);
    struct segment_job job = {.piece = piece, .threads = threads, .to = (off_t)strlen(content)};
    struct segment_draft d;
    struct scan s;

    scratch_put("f", content);
    CHECK_INT(scan_open(&s, IO_CWD, "f", SCAN_FORWARD, NULL), 0);
    s.block_size = 16;
    job.history = &s;
    segment_draft_init(&d);
    CHECK_INT(segment_build(&d, &job), 0);
    uint64_t size = segment_format(&d, job.from, job.to, 99, segment_write_memory, &out);

    CHECK_INT(size, out.len);
    segment_draft_release(&d);
    scan_close(&s);
    return out;
}

static void keep_id(void *ctx, struct str id)
{
    buf_add_str(ctx, id);
    buf_add_byte(ctx, '\n');
}

/* With the session that it is told to be. */
static void keep_told(void *ctx, const struct segment_session *of, struct str id)
{
    CHECK_INT(of->hash, segment_hash(id));
    CHECK_INT(of->id_len, id.n);
    keep_id(ctx, id);
}

TEST(sessions_come_in_the_order_of_their_use)
{
    struct segment_session of[3], found;
    struct buf ids = BUF_INIT(BUF_SMALL), texts = BUF_INIT(BUF_SMALL);
    uint64_t lines[3], bad[2];
    struct segment s;

    scratch_enter();

    struct buf bytes = make(history, SIZE_MAX, 1);
    struct str text = {history, sizeof(history) - 1};

    if (!CHECK(segment_in_memory(&s, bytes.data, bytes.len)))
        return;
    CHECK_INT(s.from, 0);
    CHECK_INT(s.to, text.n);
    CHECK_INT(s.sessions, 3);
    CHECK_INT(s.lines, 5);
    CHECK_INT(s.bad, 2);
    CHECK_INT(s.mark, 99);
    CHECK_INT(s.size, bytes.len);
    CHECK_INT(segment_sessions(&s, 0, 3, of), 0);
    CHECK_INT(of[0].count, 3);
    CHECK_INT(of[0].last_line, str_find(text, STR("{\"id\":\"5")) - text.p);
    CHECK_INT(of[0].bytes, 85 + 92 + 77);
    CHECK_INT(segment_ids(&s, of, 3, &ids), 0);
    CHECK_MEM(ids.data, ids.len, "a\0c\0d\0b", 8);
    buf_clear(&ids);
    CHECK_INT(segment_each_named(&s, SEGMENT_BEGINNING, STR(""), 9, keep_told, &ids), 0);
    CHECK_INT(segment_each_named(&s, SEGMENT_BEGINNING, STR("c"), 9, keep_told, &ids), 0);
    CHECK_INT(segment_each_named(&s, SEGMENT_END, STR("\0d"), 9, keep_told, &ids), 0);
    CHECK_INT(segment_each_named(&s, SEGMENT_END, STR("c"), 9, keep_told, &ids), 0);
    CHECK_MEM(ids.data, ids.len, "a\nc\0d\nb\nc\0d\nc\0d\n", 16);
    CHECK_INT(segment_texts(&s, of, 3, &texts), 0);
    CHECK_MEM(texts.data, texts.len,
              "user\0t1\0t5\0first \xc3\xa4\0user\0\0\0\0system\0t2\0t2\0second", 48);
    CHECK_INT(segment_lines(&s, &of[0], 1, 2, lines), 0);
    CHECK_INT(lines[0], str_find(text, STR("{\"id\":\"3")) - text.p);
    CHECK_INT(lines[1], of[0].last_line);
    CHECK_INT(segment_bad(&s, bad), 0);
    CHECK_INT(bad[0], str_find(text, STR("no message")) - text.p);
    CHECK_INT(bad[1], str_find(text, STR("[]")) - text.p);
    CHECK_INT(segment_ids(&s, NULL, 0, &ids) | segment_texts(&s, NULL, 0, &texts), 0);
    CHECK_INT(segment_find(&s, STR("b"), &found), 1);
    CHECK_INT(found.count, 1);
    CHECK_INT(segment_find(&s, STR("c\0d"), &found), 1);
    CHECK_INT(segment_find(&s, STR("c"), &found), 0);
    CHECK_INT(segment_find(&s, STR(""), &found), 0);
    buf_release(&ids);
    buf_release(&texts);
    buf_release(&bytes);
    scratch_leave();
}

TEST(pieces_and_threads_change_nothing)
{
    scratch_enter();

    struct buf whole = make(history, SIZE_MAX, 1);

    for (size_t piece = 1; piece < 200; piece++) {
        struct buf bytes = make(history, piece, 1 + piece % 3);

        CHECK_MEM(bytes.data, bytes.len, whole.data, whole.len);
        buf_release(&bytes);
    }
    buf_release(&whole);
    scratch_leave();
}

/* Of lines of few sessions and many, some of them wrong, some times of another length. */
static struct buf draw_history(void)
{
    struct buf content = BUF_INIT(SIZE_MAX);
    uint32_t sessions = 1 + draw(draw(2) ? 5 : 700), lines = draw(draw(16) ? 1500 : 6000);

    for (uint32_t i = 0; i < lines; i++) {
        if (draw(10))
            buf_addf(&content, MESSAGE("i", "%.*s%u", "t%.*s", "user", "%u \\u00e4"), (int)draw(3),
                     "abc", draw(sessions), (int)draw(5), "1234", i);
        else
            buf_add_c(&content, draw(3) ? "wrong\n" : "\n");
    }
    buf_add_c(&content, MESSAGE("i", "z", "t", "user", ""));
    return content;
}

/* How a segment is made in runs. */
struct making {
    size_t piece, held;
    off_t at;      /* of the file; before it is something else */
    rlim_t most;   /* of what a file may take */
    bool broken;   /* one bit of the runs */
    bool given_up; /* when it has been read */
    size_t count;  /* of runs that there were */
};

/* Of a run, or of the ids behind it. Not of where lines begin: of these there is no checksum, the
 * line tells whose it is. */
static void break_bit(const struct segment_runs *r)
{
    size_t run = draw((uint32_t)r->count);
    const struct segment *s = &r->at[run];
    off_t end = run + 1 < r->count ? s[1].at : r->end;
    uint64_t lines = segment_part_at(s, SEGMENT_LINES), bad = segment_part_at(s, SEGMENT_BAD);
    uint64_t at = draw((uint32_t)((uint64_t)(end - s->at) - (bad - lines)));
    char byte;

    at += at < lines ? 0 : bad - lines;
    CHECK_INT(io_pread_full(r->fd, &byte, 1, s->at + (off_t)at), 1);
    byte = (char)(byte ^ 1 << draw(8));
    CHECK_INT(io_pwrite_all(r->fd, &byte, 1, s->at + (off_t)at), 0);
}

static int worked, work_last; /* what `work` was told since the history was read */

static void work(int percent)
{
    CHECK(percent >= -1 && percent <= 100 &&
          (worked == 0 || percent == -1 || percent >= work_last));
    worked++;
    work_last = percent;
}

/* The same as make; nothing when it says that it cannot be made. */
static struct buf make_in_runs(const char *content, struct making *m)
{
    const struct rlimit small = {.rlim_cur = m->most, .rlim_max = RLIM_INFINITY};
    struct buf out = BUF_INIT(SIZE_MAX);
    atomic_bool given_up = false;
    struct segment_runs r = {.job = {.piece = m->piece,
                                     .threads = 1 + draw(3),
                                     .to = (off_t)strlen(content),
                                     .work = work,
                                     .cancel = &given_up},
                             .dir = IO_CWD,
                             .beside = "index",
                             .held = m->held};
    struct scan s;
    struct rlimit old;
    uint64_t size = 0;
    int fd = open("index", O_RDWR | O_CREAT, 0600);

    scratch_put("f", content);
    CHECK_INT(scan_open(&s, IO_CWD, "f", SCAN_FORWARD, NULL), 0);
    r.job.history = &s;
    getrlimit(RLIMIT_FSIZE, &old);
    setrlimit(RLIMIT_FSIZE, &small);
    if (segment_runs_read(&r) == 0) {
        if (m->broken && r.count > 0)
            break_bit(&r);
        worked = 0;
        atomic_store(&given_up, m->given_up);
        size = segment_runs_write(&r, 99, fd, m->at);
    }
    setrlimit(RLIMIT_FSIZE, &old);
    if (size > 0) {
        CHECK_INT(io_pread_full(fd, buf_room(&out, size), size, m->at), size);
        buf_grew(&out, size);
    }
    m->count = r.count;
    segment_runs_release(&r);
    scan_close(&s);
    close(fd);
    return out;
}

/* Nothing but what the test made. */
static void leave_empty(void)
{
    CHECK_INT(unlink("f") + unlink("index"), 0);
    CHECK_INT(rmdir(scratch_dir), 0);
    CHECK_INT(mkdir(scratch_dir, 0700), 0);
    scratch_leave();
}

TEST(runs_change_nothing_and_leave_nothing)
{
    size_t most = 0;

    scratch_enter();
    for (int round = 0; round < 200 && !test_failed; round++) {
        struct making m = {.piece = 1 + draw(draw(2) ? 300 : 20000),
                           .held = draw(4) ? draw(5000) : SIZE_MAX,
                           .at = draw(100),
                           .most = RLIM_INFINITY};
        struct buf content = draw_history();
        struct buf whole = make(buf_c(&content), SIZE_MAX, 1);
        struct buf bytes = make_in_runs(buf_c(&content), &m);

        CHECK_MEM(bytes.data, bytes.len, whole.data, whole.len);
        if (m.count > most)
            most = m.count;
        buf_release(&content);
        buf_release(&whole);
        buf_release(&bytes);
    }
    CHECK(most > 100);
    leave_empty();
}

TEST(of_runs_that_broke_there_is_no_segment)
{
    struct making m = {.piece = 3000, .held = 4000, .most = RLIM_INFINITY, .broken = true};
    int none = 0;

    scratch_enter();
    for (int round = 0; round < 400 && !test_failed; round++) {
        struct buf content = draw_history();
        struct buf whole = make(buf_c(&content), SIZE_MAX, 1);
        struct buf bytes = make_in_runs(buf_c(&content), &m);

        /* Not all that is in a run is read: its hashes are not. */
        none += bytes.len == 0;
        CHECK(bytes.len == 0 || str_eq(buf_str(&bytes), buf_str(&whole)));
        buf_release(&content);
        buf_release(&whole);
        buf_release(&bytes);
    }
    CHECK(none > 100);
    leave_empty();
}

TEST(runs_are_given_up_and_tell_how_much_is_done)
{
    scratch_enter();
    for (int round = 0; round < 100 && !test_failed; round++) {
        struct buf content = draw_history();
        struct making m = {.piece = 3000, .held = 4000, .most = RLIM_INFINITY};
        struct buf bytes = make_in_runs(buf_c(&content), &m);

        CHECK(bytes.len > 0);
        CHECK(m.count > 0 ? worked > 1 && work_last == -1 : worked == 0);
        buf_release(&bytes);
        m.given_up = true;
        bytes = make_in_runs(buf_c(&content), &m);
        CHECK(m.count > 0 ? bytes.len == 0 : bytes.len > 0);
        buf_release(&bytes);
        buf_release(&content);
    }
    leave_empty();
}

TEST(what_cannot_be_written_is_no_segment_and_leaves_nothing)
{
    int none = 0;

    scratch_enter();
    signal(SIGXFSZ, SIG_IGN);
    for (int round = 0; round < 300 && !test_failed; round++) {
        struct buf content = draw_history();
        struct buf whole = make(buf_c(&content), SIZE_MAX, 1);
        struct making m = {.piece = 3000, .held = draw(9000), .at = draw(100)};

        m.most = draw((uint32_t)whole.len + 100);

        struct buf bytes = make_in_runs(buf_c(&content), &m);

        none += bytes.len == 0;
        if (whole.len + (size_t)m.at > m.most)
            CHECK_INT(bytes.len, 0);
        CHECK(bytes.len == 0 || str_eq(buf_str(&bytes), buf_str(&whole)));
        buf_release(&content);
        buf_release(&whole);
        buf_release(&bytes);
    }
    signal(SIGXFSZ, SIG_DFL);
    CHECK(none > 200);
    leave_empty();
}

/* What one says of all its sessions, as text; -1 when it says that it is broken. */
static int tell(const struct segment *s, struct buf *out)
{
    static const char *const names[] = {"a", "b", "e", "session 40", "session 41"};
    struct segment_session of[64], found;
    uint64_t bad[8];

    if (s->sessions > 64 || s->bad > 8 || segment_sessions(s, 0, (size_t)s->sessions, of) < 0 ||
        segment_ids(s, of, (size_t)s->sessions, out) < 0 ||
        segment_texts(s, of, (size_t)s->sessions, out) < 0 || segment_bad(s, bad) < 0 ||
        segment_each_named(s, SEGMENT_BEGINNING, STR("session 4"), 64, keep_told, out) < 0 ||
        segment_each_named(s, SEGMENT_END, STR("7"), 64, keep_told, out) < 0 ||
        segment_each_named(s, SEGMENT_END, STR(""), 64, keep_told, out) < 0)
        return -1;
    for (size_t i = 0; i < s->sessions; i++)
        buf_addf(out, "%llu %llu %llu\n", (unsigned long long)of[i].count,
                 (unsigned long long)of[i].bytes, (unsigned long long)of[i].last_line);
    for (size_t i = 0; i < s->bad; i++)
        buf_addf(out, "bad %llu\n", (unsigned long long)bad[i]);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int is = segment_find(s, str_of(names[i]), &found);

        if (is < 0)
            return -1;
        buf_addf(out, "%s %d %llu\n", names[i], is, is ? (unsigned long long)found.count : 0);
    }
    buf_addf(out, "%llu %lld %lld %llu", (unsigned long long)s->lines, (long long)s->from,
             (long long)s->to, (unsigned long long)s->mark);
    return 0;
}

/* Of many sessions, so that buckets overflow. */
static struct buf make_large(void)
{
    struct buf content = BUF_INIT(SIZE_MAX);

    buf_add_c(&content, history);
    for (int i = 0; i < 60; i++)
        buf_addf(&content, MESSAGE("x", "session %d", "t", "user", "hello"), i % 50);

    struct buf bytes = make(buf_c(&content), SIZE_MAX, 1);

    buf_release(&content);
    return bytes;
}

TEST(each_changed_bit_is_seen_or_of_no_meaning)
{
    struct segment s;
    struct buf right = BUF_INIT(SIZE_MAX), told = BUF_INIT(SIZE_MAX);
    size_t seen = 0, wrong = 0;

    scratch_enter();

    struct buf bytes = make_large();

    CHECK(segment_in_memory(&s, bytes.data, bytes.len));
    CHECK_INT(tell(&s, &right), 0);
    CHECK(str_find(buf_str(&right), STR("a 1 3\nb 1 1\ne 0 0\nsession 40 1 1\n")) != NULL);
    for (size_t i = 0; i < bytes.len * 8; i++) {
        bytes.data[i / 8] = (char)(bytes.data[i / 8] ^ 1 << i % 8);
        buf_clear(&told);
        if (!segment_in_memory(&s, bytes.data, bytes.len) || tell(&s, &told) < 0)
            seen++;
        else if (!str_eq(buf_str(&told), buf_str(&right)))
            wrong++;
        bytes.data[i / 8] = (char)(bytes.data[i / 8] ^ 1 << i % 8);
    }
    CHECK_INT(wrong, 0);
    CHECK(seen > bytes.len * 8 / 2);
    buf_release(&bytes);
    buf_release(&right);
    buf_release(&told);
    scratch_leave();
}

TEST(what_is_cut_off_is_no_segment)
{
    struct segment s;

    scratch_enter();

    struct buf bytes = make_large();

    for (size_t n = 0; n < bytes.len; n++)
        CHECK(!segment_in_memory(&s, bytes.data, n));
    scratch_put_bytes("f", bytes.data, bytes.len);

    int fd = open("f", O_RDONLY);
    struct segment_session of;

    CHECK(!segment_in_file(&s, fd, 1, bytes.len - 1));
    CHECK(segment_in_file(&s, fd, 0, bytes.len));
    CHECK_INT(segment_find(&s, STR("session 7"), &of), 1);
    CHECK_INT(truncate("f", 500), 0);
    CHECK_INT(segment_find(&s, STR("session 7"), &of), -1);
    close(fd);
    buf_release(&bytes);
    scratch_leave();
}

/* A file that becomes shorter has not got all lines. */
TEST(a_part_that_cannot_be_read_is_none)
{
    struct segment_job job = {.piece = 64, .threads = 2, .to = (off_t)sizeof(history) - 1};
    struct segment_draft d;
    struct scan s;

    scratch_enter();
    scratch_put("f", history);
    CHECK_INT(scan_open(&s, IO_CWD, "f", SCAN_FORWARD, NULL), 0);
    CHECK_INT(truncate("f", 100), 0);
    job.history = &s;
    segment_draft_init(&d);
    CHECK_INT(segment_build(&d, &job), -1);
    segment_draft_release(&d);
    scan_close(&s);
    scratch_leave();
}

/* What is to be told of the ids 0 to COUNT - 1, of which the first ones are the oldest. */
#define COUNT 3000

static void id_number(int i, struct buf *id)
{
    buf_clear(id);
    buf_addf(id, "%0*d", 1 + i * 37 % 100, i * 7 % COUNT);
}

static void want_named(enum segment_side side, struct str text, size_t most, struct buf *want)
{
    struct buf id = BUF_INIT(BUF_SMALL);

    buf_clear(want);
    for (int i = COUNT; i-- > 0 && most > 0;) {
        id_number(i, &id);
        if (side == SEGMENT_BEGINNING ? str_starts(buf_str(&id), text)
                                      : str_ends(buf_str(&id), text)) {
            keep_id(want, buf_str(&id));
            most--;
        }
    }
    buf_release(&id);
}

/* By every beginning and end of up to three characters: over many blocks, and none. */
TEST(ids_are_told_by_their_beginnings_and_ends)
{
    struct buf content = BUF_INIT(SIZE_MAX), told = BUF_INIT(SIZE_MAX), want = BUF_INIT(SIZE_MAX);
    struct buf id = BUF_INIT(BUF_SMALL), text = BUF_INIT(BUF_SMALL);
    struct segment s;

    scratch_enter();
    for (int i = 0; i < COUNT; i++) {
        id_number(i, &id);
        buf_addf(&content, MESSAGE("x", "%s", "t", "user", ""), buf_c(&id));
    }

    struct buf bytes = make(buf_c(&content), SIZE_MAX, 1);

    CHECK(segment_in_memory(&s, bytes.data, bytes.len));
    for (int i = 0; i < 1000; i++) {
        enum segment_side side = i % 2 ? SEGMENT_END : SEGMENT_BEGINNING;

        buf_clear(&text);
        buf_addf(&text, "%0*d", i % 5, i / 3);
        text.len = text.len < (size_t)i % 4 ? text.len : (size_t)i % 4;
        buf_clear(&told);
        want_named(side, buf_str(&text), i % 3 ? 20 : SIZE_MAX, &want);
        CHECK_INT(
            segment_each_named(&s, side, buf_str(&text), i % 3 ? 20 : SIZE_MAX, keep_told, &told),
            0);
        CHECK_MEM(told.data, told.len, want.data, want.len);
    }
    buf_clear(&told);
    CHECK_INT(segment_each_named(&s, SEGMENT_BEGINNING, STR("1"), 0, keep_told, &told), 0);
    CHECK_INT(told.len, 0);
    buf_release(&bytes);
    buf_release(&content);
    buf_release(&told);
    buf_release(&want);
    buf_release(&id);
    buf_release(&text);
    scratch_leave();
}

/* Writes a word, and the checksum of the `count` that it is one of behind these. */
static void put_word(char *words, size_t count, size_t which, uint64_t word, uint64_t before)
{
    uint64_t all[SEGMENT_ORDER_WORDS];

    le_put(words + which * sizeof(word), word);
    le_get_all(all, words, count);
    le_put(words + count * sizeof(word), le_sum_words(all, count, before));
}

/* Sums that no writer of this program has made. */
TEST(a_right_checksum_is_not_all)
{
    struct segment_session of;
    struct buf told = BUF_INIT(BUF_SMALL);
    struct segment s;

    scratch_enter();
    for (size_t word = 3; word < 12; word++) {
        struct buf bytes = make(history, SIZE_MAX, 1);

        CHECK(segment_in_memory(&s, bytes.data, bytes.len));
        put_word(bytes.data + SEGMENT_HEADER_WORDS * 8, SEGMENT_SESSION_WORDS, word, UINT64_MAX, 0);
        CHECK_INT(segment_sessions(&s, 0, 1, &of), -1);
        CHECK_INT(segment_sessions(&s, 1, 1, &of), 0);
        buf_release(&bytes);
    }

    /* The first one of the order by beginnings, `a`, is said to be `b`, and the last one not
     * there. */
    struct buf bytes = make(history, SIZE_MAX, 1);
    char *orders =
        bytes.data +
        (SEGMENT_HEADER_WORDS + 3 * (SEGMENT_SESSION_WORDS + 1) + 5 + 2 + SEGMENT_BUCKET_WORDS) * 8;

    CHECK(segment_in_memory(&s, bytes.data, bytes.len));
    CHECK_INT(segment_each_named(&s, SEGMENT_BEGINNING, STR("a"), 9, keep_told, &told), 0);
    CHECK_MEM(told.data, told.len, "a\n", 2);
    put_word(orders, SEGMENT_ORDER_WORDS - 1, 0, UINT64_C(2) << 32 | 2, 0);
    CHECK_INT(segment_each_named(&s, SEGMENT_BEGINNING, STR("b"), 9, keep_told, &told), 0);
    put_word(orders, SEGMENT_ORDER_WORDS - 1, 1, 3, 0);
    CHECK_INT(segment_each_named(&s, SEGMENT_BEGINNING, STR("c"), 9, keep_told, &told), -1);
    put_word(orders, SEGMENT_ORDER_WORDS - 1, 1, 0, 0);
    CHECK_INT(segment_each_named(&s, SEGMENT_BEGINNING, STR("b"), 9, keep_told, &told), -1);
    buf_release(&bytes);
    buf_release(&told);
    scratch_leave();
}

TEST(an_order_is_by_bytes)
{
    CHECK(segment_compare(STR("abc"), STR("ab"), SEGMENT_BEGINNING) == 0);
    CHECK(segment_compare(STR("ab"), STR("abc"), SEGMENT_BEGINNING) < 0);
    CHECK(segment_compare(STR("b"), STR("abc"), SEGMENT_BEGINNING) > 0);
    CHECK(segment_compare(STR("\xc3"), STR("a"), SEGMENT_BEGINNING) > 0);
    CHECK(segment_compare(STR("abc"), STR("bc"), SEGMENT_END) == 0);
    CHECK(segment_compare(STR("bc"), STR("abc"), SEGMENT_END) < 0);
    CHECK(segment_compare(STR("zb"), STR("abc"), SEGMENT_END) < 0);
    CHECK(segment_compare(STR("a\xc3"), STR("abc"), SEGMENT_END) > 0);
    CHECK(segment_compare(STR("a"), STR(""), SEGMENT_END) == 0);
}
