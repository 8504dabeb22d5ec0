#include "chathist/base/buf.h"

#include "test.h"

static void check(struct str bytes, const char *want, int line)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    buf_add_c(&b, "x");
    buf_add_base64(&b, bytes);
    test_check_str(buf_c(&b) + 1, want, "base64", __FILE__, line);
    buf_release(&b);
}

/* RFC 4648 section 10. */
TEST(the_vectors_of_the_standard)
{
    check(STR(""), "", __LINE__);
    check(STR("f"), "Zg==", __LINE__);
    check(STR("fo"), "Zm8=", __LINE__);
    check(STR("foo"), "Zm9v", __LINE__);
    check(STR("foob"), "Zm9vYg==", __LINE__);
    check(STR("fooba"), "Zm9vYmE=", __LINE__);
    check(STR("foobar"), "Zm9vYmFy", __LINE__);
}

TEST(any_byte)
{
    check(STR("\0\xff\xfe\xfb\xef\xbe"), "AP/+++++", __LINE__);
    check(STR("\xff\xff\xff"), "////", __LINE__);
    check(STR_NONE, "", __LINE__);
}

TEST(no_more_than_the_buffer_may_hold)
{
    struct buf b = BUF_INIT(7);

    buf_add_base64(&b, STR("foob"));
    CHECK(b.overflow);
    CHECK_INT(b.len, 0);
    buf_release(&b);
}
