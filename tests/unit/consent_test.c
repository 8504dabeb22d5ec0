#include "chathist/chat/tools.h"

#include "test.h"

TEST(patterns_of_names)
{
    CHECK(consent_matches("read_file", STR("read_file")));
    CHECK(consent_matches("a\tread_*  b", STR("read_file")));
    CHECK(consent_matches("read_*", STR("read_")));
    CHECK(consent_matches("*", STR("anything")));
    CHECK(!consent_matches("read_*", STR("read")));
    CHECK(!consent_matches("read", STR("read_file")));
    CHECK(!consent_matches("*file", STR("read_file")));
    CHECK(!consent_matches("read_file", STR("read")));
    CHECK(!consent_matches("", STR("a")));
    CHECK(!consent_matches(NULL, STR("a")));
}

TEST(what_is_allowed_is_not_asked_for)
{
    struct consent c = CONSENT_INIT;

    c.allowed = "read_*";
    CHECK_INT(consent_ask(&c, STR("read_file"), STR("{}")), CONSENT_GIVEN);
    c.all = true;
    CHECK_INT(consent_ask(&c, STR("remove"), STR("{}")), CONSENT_GIVEN);
    c.all = false;
    buf_add_c(&c.always, "remove\n");
    CHECK_INT(consent_ask(&c, STR("remove"), STR("{}")), CONSENT_GIVEN);
    buf_release(&c.always);
}
