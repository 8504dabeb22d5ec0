#include "chathist/history/stats.h"

#include "test.h"

static void add(struct stats *s, const char *session, const char *timestamp, const char *more)
{
    struct message m = MESSAGE_INIT;
    struct buf line = BUF_INIT(BUF_SMALL);

    buf_addf(&line,
             "{\"id\":\"1\",\"session_id\":\"%s\",\"timestamp\":\"%s\",\"role\":\"assistant\","
             "\"content\":\"\"%s}",
             session, timestamp, more);
    CHECK(message_parse(&m, buf_str(&line)));
    stats_add(s, &m);
    message_release(&m);
    buf_release(&line);
}

TEST(sessions_are_counted_once_in_each_row)
{
    struct stats s;

    stats_init(&s, STATS_MODEL);
    add(&s, "a", "2024-06-27T15:00:00Z", ",\"model\":\"x\"");
    add(&s, "a", "2024-06-27T15:00:00Z", ",\"model\":\"y\"");
    add(&s, "a", "2024-06-27T15:00:00Z", ",\"model\":\"x\"");
    add(&s, "b", "2024-06-28T15:00:00Z", ",\"model\":\"x\"");
    stats_sort(&s);
    CHECK(s.rows.count == 2);
    CHECK(str_eq_c(str_of(s.rows.at[0].key), "x"));
    CHECK(s.rows.at[0].count.messages == 3);
    CHECK(s.rows.at[0].count.sessions == 2);
    CHECK(s.rows.at[1].count.sessions == 1);
    CHECK(s.total.sessions == 2);
    stats_release(&s);
}

TEST(what_is_unknown_is_one_row_and_the_last)
{
    struct stats s;

    stats_init(&s, STATS_MONTH);
    add(&s, "a", "never", "");
    add(&s, "a", "", "");
    add(&s, "a", "2024-06-27T15:00:00Z", "");
    stats_sort(&s);
    CHECK(s.rows.count == 2);
    CHECK(s.rows.at[0].key != NULL);
    CHECK(s.rows.at[1].key == NULL);
    CHECK(s.rows.at[1].count.messages == 2);
    CHECK(s.total.unknown == 3);
    stats_release(&s);
}
