#include "chathist/history/time_blocks.h"

#include <stdio.h>
#include <stdlib.h>

#include "chathist/base/time.h"
#include "chathist/history/message.h"
#include "chathist/history/session_list.h"
#include "test.h"
#include "scratch.h"

/* 2024-06-27T15:00Z */
#define NOW (INT64_C(1719500400) * TIME_SECOND)

static char path[] = "h", index_path[] = "h.idx";
static struct history history = {
    .dir_fd = FILE_CWD, .pointer_fd = FILE_CWD, .path = path, .now = NOW, .cancel_fd = -1};

/* ---- the time of a line ---- */

static int64_t time_at(struct line_clock *c, int64_t us)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    int64_t time;

    time_add_iso(&text, us);
    time = line_clock_time(c, buf_str(&text));
    buf_release(&text);
    return time;
}

TEST(a_time_that_is_ahead_or_unreadable_counts_as_the_latest_before_it)
{
    struct line_clock c = line_clock_at(NOW, LINE_OLDEST);

    CHECK_INT(line_clock_time(&c, STR("")), LINE_OLDEST);
    CHECK_INT(time_at(&c, NOW + 1), LINE_OLDEST);
    CHECK_INT(time_at(&c, NOW - 5), NOW - 5);
    CHECK_INT(time_at(&c, NOW - 9), NOW - 9);
    CHECK_INT(time_at(&c, NOW + 1), NOW - 5);
    CHECK_INT(line_clock_time(&c, STR("yesterday")), NOW - 5);
    CHECK_INT(time_at(&c, NOW), NOW);
    CHECK_INT(line_clock_time(&c, STR("9999-12-31T23:59:59Z")), NOW);
    CHECK_INT(c.ahead, NOW + 1);
    c = line_clock_at(NOW, NOW - 3);
    CHECK_INT(time_at(&c, NOW + 7), NOW - 3);
    CHECK_INT(c.borrowed, NOW - 3);
}

/* ---- blocks ---- */

#define SESSIONS ((size_t)7)

/* Appends a line of about n bytes, of one of the sessions. */
static void add_line(struct buf *b, struct str timestamp, int n)
{
    buf_addf(b,
             "{\"id\":\"%zu\",\"session_id\":\"s%zu\",\"timestamp\":\"%.*s\",\"role\":\"user\","
             "\"content\":\"%0*d\"}\n",
             b->len, b->len % SESSIONS, (int)timestamp.n, timestamp.p, n, 0);
}

/* Appends lines whose times ascend, but every `wrong`th is wrong (0: none). */
static void put_history(int lines, int wrong)
{
    int fd = open("h", O_WRONLY | O_CREAT | O_APPEND, 0600);
    struct buf b = BUF_INIT(SIZE_MAX), time = BUF_INIT(BUF_SMALL);

    for (int i = 0; i < lines; i++) {
        buf_clear(&time);
        if (wrong && i % wrong == 0)
            buf_add_c(&time, i % 2 ? "9999-01-01T00:00:00Z" : "never");
        else
            time_add_iso(&time, NOW - (int64_t)(wrong ? rand() : lines - i) * 1000);
        add_line(&b, buf_str(&time), 4000);
        if (i % 100 == 7)
            buf_add_c(&b, "no message\n\n");
    }
    CHECK_INT(file_write_all(fd, b.data, b.len), 0);
    close(fd);
    buf_release(&b);
    buf_release(&time);
}

/* Does the list say what one reading of the lines finds? */
static bool list_is_right(struct scan *s)
{
    struct line_clock c = line_clock_at(NOW, LINE_OLDEST);
    struct message m = MESSAGE_INIT;
    struct session_list l;
    struct line line;
    int64_t used[SESSIONS];
    off_t last[SESSIONS];
    bool right = session_list_load(&l, &history, NULL) == 0 && l.count <= SESSIONS;

    for (size_t i = 0; i < SESSIONS; i++)
        used[i] = LINE_OLDEST;
    scan_from(s, 0);
    while (scan_message(s, &m, &line, NULL) > 0) {
        size_t i = (size_t)(m.session_id.p[1] - '0');
        int64_t time = line_clock_time(&c, m.timestamp);

        used[i] = time > used[i] ? time : used[i];
        last[i] = line.at;
    }
    for (size_t i = 0; i < l.count && right; i++) {
        size_t number = (size_t)(l.at[i].id.p[1] - '0');

        right = l.at[i].used == used[number] && l.at[i].last_line == last[number] &&
                (i == 0 || session_compare(&l.at[i - 1], &l.at[i]) < 0);
    }
    session_list_release(&l);
    message_release(&m);
    return right;
}

/* Do the blocks say what one reading of the lines finds? */
static bool blocks_are_right(const struct time_blocks *b, struct scan *s)
{
    struct line_clock c = line_clock_at(NOW, LINE_OLDEST);
    struct message m = MESSAGE_INIT;
    struct line l;
    bool right = true;
    off_t end = 0;

    scan_from(s, 0);
    for (size_t i = 0; i < b->count && right; i++) {
        const struct time_block *block = &b->at[i];
        int64_t earliest = INT64_MAX, latest = LINE_OLDEST;
        bool ascending = true;

        right = block->from == end && block->before == c.latest;
        while (scan_offset(s) < block->to && scan_line(s, &l, NULL) > 0) {
            int64_t time;

            if (scan_judge(&l, &m) != SCAN_MESSAGE)
                continue;
            time = line_clock_time(&c, m.timestamp);
            ascending = ascending && time >= latest;
            earliest = time < earliest ? time : earliest;
            latest = time > latest ? time : latest;
        }
        right = right && block->earliest == earliest && block->latest == latest &&
                block->ascending == ascending;
        end = block->to;
    }
    message_release(&m);
    return right && end == s->size;
}

static bool blocks_of(struct time_blocks *b)
{
    struct scan s;
    bool right = false;

    if (scan_open(&s, FILE_CWD, "h", NULL) == 0)
        right = time_blocks_load(b, &history, &s, NULL) == 0 && blocks_are_right(b, &s) &&
                list_is_right(&s);
    scan_close(&s);
    return right;
}

TEST(an_empty_history_has_no_blocks)
{
    struct time_blocks b;

    scratch_enter();
    CHECK(blocks_of(&b));
    CHECK_INT(b.count, 0);
    time_blocks_release(&b);
    scratch_leave();
}

TEST(the_blocks_of_ascending_times_ascend)
{
    struct time_blocks b;
    bool ascend = true;

    scratch_enter();
    put_history(2000, 0);
    CHECK(blocks_of(&b));
    CHECK(b.count > 20);
    for (size_t i = 0; i < b.count; i++)
        ascend = ascend && b.at[i].ascending && (i == 0 || b.at[i - 1].latest <= b.at[i].earliest);
    CHECK(ascend);
    time_blocks_release(&b);
    scratch_leave();
}

/* A large history is read in pieces by several threads, which don't know the lines before. */
TEST(wrong_clocks_are_found_by_several_threads_as_by_one)
{
    static const int wrong[] = {1, 2, 3, 50, 1000};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct time_blocks b;

        scratch_enter();
        put_history(2000, wrong[i]);
        CHECK(blocks_of(&b));
        CHECK(b.count > 20);
        time_blocks_release(&b);
        scratch_leave();
    }
}

TEST(an_index_makes_no_difference)
{
    struct time_blocks b;

    scratch_enter();
    history.index = index_path;
    history.trusted = history.dir_exists = true;
    for (int i = 0; i < 4; i++) {
        put_history(i == 0 ? 1000 : 10 * i, 7);
        CHECK(blocks_of(&b));
        time_blocks_release(&b);
    }
    CHECK(access("h.idx", F_OK) == 0);
    history.index = NULL;
    scratch_leave();
}

TEST(the_time_of_one_line_is_found)
{
    struct line_clock c = line_clock_at(NOW, LINE_OLDEST);
    struct line_times times = {.now = NOW, .scan = NULL, .h = &history};
    struct message m = MESSAGE_INIT;
    struct line l;
    struct scan s;
    bool right = true;

    scratch_enter();
    put_history(300, 3);
    CHECK_INT(scan_open(&s, FILE_CWD, "h", NULL), 0);
    times.scan = &s;
    while (scan_message(&s, &m, &l, NULL) > 0) {
        int64_t time = line_clock_time(&c, m.timestamp), found;

        /* Every third line is asked for twice: the second time the reader has passed it. */
        for (int i = 0; i < (l.at % 3 == 0 ? 2 : 1); i++)
            right = right && line_times_get(&times, l.at, m.timestamp, &found, NULL) == 0 &&
                    found == time;
    }
    CHECK(right);
    line_times_release(&times);
    message_release(&m);
    scan_close(&s);
    scratch_leave();
}
