#include "chathist/history/filter.h"

#include "test.h"

static bool matches(const struct filter *f, const char *session, const char *role)
{
    struct message m = MESSAGE_INIT;

    m.session_id = str_of(session);
    m.role_text = str_of(role);
    m.role = role_of(m.role_text);
    return filter_match(f, &m);
}

TEST(an_empty_filter_lets_everything_through)
{
    struct filter f = {0};

    CHECK(matches(&f, "s", "user"));
    CHECK(matches(&f, "", "whatever"));
    filter_release(&f);
}

TEST(any_of_the_roles_will_do)
{
    struct filter f = {0};

    filter_add(&f.roles, STR("user"));
    filter_add(&f.roles, STR("developer"));
    CHECK(matches(&f, "s", "user"));
    CHECK(matches(&f, "s", "developer"));
    CHECK(!matches(&f, "s", "assistant"));
    CHECK(!matches(&f, "s", "use"));
    CHECK(!matches(&f, "s", "users"));
    filter_release(&f);
    CHECK(matches(&f, "s", "assistant"));
}

TEST(a_session_is_matched_whole)
{
    struct filter f = {0};

    filter_add(&f.sessions, STR("s1"));
    filter_add(&f.roles, STR("user"));
    CHECK(matches(&f, "s1", "user"));
    CHECK(!matches(&f, "s1", "tool"));
    CHECK(!matches(&f, "s", "user"));
    CHECK(!matches(&f, "s12", "user"));
    filter_add(&f.sessions, STR("s12"));
    CHECK(matches(&f, "s12", "user"));
    filter_clear(&f.sessions);
    CHECK(matches(&f, "s", "user"));
    filter_release(&f);
}

/* Does the filter let a line with these members through? */
static bool passes(const struct filter *f, const char *timestamp, const char *members)
{
    struct message m = MESSAGE_INIT;
    struct buf line = BUF_INIT(BUF_SMALL);
    bool wanted;

    buf_addf(&line,
             "{\"id\":\"1\",\"session_id\":\"s\",\"timestamp\":\"%s\",\"role\":\"user\","
             "\"content\":\"c\"%s%s}",
             timestamp, *members ? "," : "", members);
    CHECK(message_parse(&m, buf_str(&line)));
    wanted = filter_match(f, &m);
    message_release(&m);
    buf_release(&line);
    return wanted;
}

TEST(a_model_by_its_name_or_with_its_provider)
{
    struct filter f = {0};

    filter_add(&f.models, STR("m:1"));
    filter_add(&f.models, STR("ollama:qwen"));
    CHECK(passes(&f, "t", "\"model\":\"m:1\""));
    CHECK(passes(&f, "t", "\"model\":\"m\\u003a1\",\"provider\":\"x\""));
    CHECK(passes(&f, "t", "\"model\":\"qwen\",\"provider\":\"ollama\""));
    CHECK(!passes(&f, "t", "\"model\":\"qwen\""));
    CHECK(!passes(&f, "t", "\"model\":\"qwen\",\"provider\":\"x\""));
    CHECK(!passes(&f, "t", "\"model\":\"M:1\""));
    CHECK(!passes(&f, "t", "\"model\":7"));
    CHECK(!passes(&f, "t", ""));
    filter_release(&f);
}

TEST(a_program_that_messages_came_from)
{
    struct filter f = {0};

    filter_add(&f.tools, STR("claude-code"));
    CHECK(passes(&f, "t", "\"origin\":\"claude-code:a/b\""));
    CHECK(passes(&f, "t", "\"origin\":\"claude\\u002dcode:a/b+c\""));
    CHECK(!passes(&f, "t", "\"origin\":\"claude-codex:a/b\""));
    CHECK(!passes(&f, "t", "\"origin\":\"codex:claude-code/claude-code:b\""));
    CHECK(!passes(&f, "t", "\"origin\":7"));
    CHECK(!passes(&f, "t", ""));
    filter_release(&f);
}

TEST(a_file_that_is_named)
{
    struct filter f = {0};

    filter_add(&f.files, STR("src/a.c"));
    filter_add(&f.files, STR("./b\xc3\xa9"));
    CHECK(passes(&f, "t", "\"files\":[\"x\",\"src/a.c\"]"));
    CHECK(passes(&f, "t", "\"files_modified\":[\".//src\\/a.c\"]"));
    CHECK(passes(&f, "t", "\"files\":[5,null,\"b\\u00e9\"]"));
    CHECK(!passes(&f, "t", "\"files\":[\"a.c\",\"src/a.cc\",\"SRC/a.c\"]"));
    CHECK(!passes(&f, "t", "\"files\":\"src/a.c\",\"files_modified\":{\"a\":\"src/a.c\"}"));
    CHECK(!passes(&f, "t", "\"images\":1,\"other\":[\"src/a.c\"]"));
    filter_release(&f);
}

TEST(times_from_and_to)
{
    struct filter f = {.has_since = true, .since = 1719500400 * INT64_C(1000000)};

    CHECK(passes(&f, "2024-06-27T15:00:00Z", ""));
    CHECK(passes(&f, "2024-06-27T17:00:00.5+02:00", ""));
    CHECK(!passes(&f, "2024-06-27T14:59:59.999999Z", ""));
    CHECK(!passes(&f, "later", ""));
    f.has_until = true;
    f.until = f.since + 1;
    CHECK(passes(&f, "2024-06-27T15:00:00.000001Z", ""));
    CHECK(!passes(&f, "2024-06-27T15:00:00.000002Z", ""));
    f.has_since = false;
    CHECK(passes(&f, "1999-01-01", ""));
    CHECK(!passes(&f, "", ""));
}
