#include "chathist/chat/tools.h"

#include <fcntl.h>
#include <unistd.h>

#include "test.h"

/* Returns whether a call is allowed without a question. Where there is a terminal, the question is
 * drawn and cancelled: /dev/null is always readable. */
static bool allows(const char *patterns, struct str name)
{
    struct consent c = CONSENT_INIT;
    enum consent_answer answer;

    c.allowed = patterns;
    c.cancel_fd = open("/dev/null", O_RDONLY);
    answer = consent_ask(&c, name, STR("{}"));
    close(c.cancel_fd);
    CHECK(answer == CONSENT_GIVEN || answer == CONSENT_NOBODY || answer == CONSENT_CANCELLED);
    return answer == CONSENT_GIVEN;
}

TEST(patterns_of_names)
{
    CHECK(allows("read_file", STR("read_file")));
    CHECK(allows("a\tread_*  b", STR("read_file")));
    CHECK(allows("read_*", STR("read_")));
    CHECK(allows("*", STR("anything")));
    CHECK(!allows("read_*", STR("read")));
    CHECK(!allows("read", STR("read_file")));
    CHECK(!allows("*file", STR("read_file")));
    CHECK(!allows("read_file", STR("read")));
    CHECK(!allows("", STR("a")));
    CHECK(!allows(NULL, STR("a")));
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
