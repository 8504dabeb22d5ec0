#include "hist/filter.h"

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

    filter_add_role(&f, "user");
    filter_add_role(&f, "developer");
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
    struct filter f = {.session = STR("s1")};

    filter_add_role(&f, "user");
    CHECK(matches(&f, "s1", "user"));
    CHECK(!matches(&f, "s1", "tool"));
    CHECK(!matches(&f, "s", "user"));
    CHECK(!matches(&f, "s12", "user"));
    filter_release(&f);
}
