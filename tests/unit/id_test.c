#include "chathist/base/id.h"

#include "test.h"

/* Is s exactly `prefix` and then `digits` lower-case hexadecimal digits? */
static bool has_form(const char *s, const char *prefix, size_t digits)
{
    size_t n = strlen(prefix);

    return strncmp(s, prefix, n) == 0 && strlen(s) == n + digits &&
           strspn(s + n, "0123456789abcdef") == digits;
}

TEST(message_ids_have_their_form)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    id_add_message(&b, INT64_C(1719500000000));
    CHECK(has_form(buf_c(&b), "1719500000000-", 8));
    buf_clear(&b);
    id_add_message(&b, 0);
    CHECK(has_form(buf_c(&b), "0-", 8));
    buf_release(&b);
}

TEST(session_ids_have_their_form)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    id_add_session(&b, INT64_C(1719500000000));
    CHECK(has_form(buf_c(&b), "sess_1719500000000_", 6));
    CHECK(id_session_valid(buf_str(&b)));
    buf_release(&b);
}

TEST(only_an_id_of_that_form_is_generated)
{
    CHECK(id_session_generated(STR("sess_1719500000000_0a9f3c")));
    CHECK(!id_session_generated(STR("sess_1719500000000_0A9f3c")));
    CHECK(!id_session_generated(STR("sess_1719500000000_0a9f3")));
    CHECK(!id_session_generated(STR("sess_1719500000000_0a9\0003c")));
    CHECK(id_is_uuid(STR("0a9f3c00-0000-4000-8000-00000000000F")));
    CHECK(!id_is_uuid(STR("0a9f3c00-0000-4000-8000-0000000000\00000")));
}

TEST(ids_are_appended_and_differ)
{
    struct buf a = BUF_INIT(BUF_SMALL), b = BUF_INIT(BUF_SMALL);

    buf_add_c(&a, "x");
    id_add_message(&a, 1);
    CHECK(has_form(buf_c(&a), "x1-", 8));
    buf_clear(&a);
    id_add_message(&a, 1);
    id_add_message(&b, 1);
    CHECK(!str_eq(buf_str(&a), buf_str(&b)));
    buf_clear(&a);
    buf_clear(&b);
    id_add_session(&a, 1);
    id_add_session(&b, 1);
    CHECK(!str_eq(buf_str(&a), buf_str(&b)));
    buf_release(&a);
    buf_release(&b);
}

TEST(session_ids_of_any_client)
{
    CHECK(id_session_valid(STR("a")));
    CHECK(id_session_valid(STR("0")));
    CHECK(id_session_valid(STR("6f1b4a52-1df3-4c39-9f57-0d1b2e8c7a10")));
    CHECK(id_session_valid(STR("A.b_c:d-e9")));
    CHECK(id_session_valid(STR("currently")));
    CHECK(id_session_valid(STR("Last")));
    CHECK(!id_session_valid(STR("current")));
    CHECK(!id_session_valid(STR("last")));
    CHECK(!id_session_valid(STR("")));
    CHECK(!id_session_valid(STR_NONE));
    CHECK(!id_session_valid(STR("-a")));
    CHECK(!id_session_valid(STR(".a")));
    CHECK(!id_session_valid(STR("_a")));
    CHECK(!id_session_valid(STR("a b")));
    CHECK(!id_session_valid(STR("a/b")));
    CHECK(!id_session_valid(STR("a\n")));
    CHECK(!id_session_valid(STR("a\0b")));
    CHECK(!id_session_valid(STR("\xc3\xa4")));
    CHECK(!id_session_valid(STR("a\xc3\xa4")));
}

TEST(session_ids_have_a_longest)
{
    char id[129];

    memset(id, 'a', sizeof(id));
    CHECK(id_session_valid((struct str){id, 128}));
    CHECK(!id_session_valid((struct str){id, 129}));
}
