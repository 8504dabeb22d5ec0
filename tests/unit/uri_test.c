#include "llm/uri.h"

#include "test.h"

/* `want` ends with the fragment behind a #, if there is one. */
static void check(const char *base, const char *reference, const char *want)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct str fragment = STR_NONE;

    uri_resolve(&out, str_of(base), str_of(reference), &fragment);
    if (fragment.p) {
        buf_add_byte(&out, '#');
        buf_add_str(&out, fragment);
    }
    CHECK_STR(buf_c(&out), want);
    buf_release(&out);
}

#define BASE "http://a/b/c/d;p?q"

/* RFC 3986, section 5.4.1. */
TEST(normal_references)
{
    check(BASE, "g:h", "g:h");
    check(BASE, "g", "http://a/b/c/g");
    check(BASE, "./g", "http://a/b/c/g");
    check(BASE, "g/", "http://a/b/c/g/");
    check(BASE, "/g", "http://a/g");
    check(BASE, "//g", "http://g");
    check(BASE, "?y", "http://a/b/c/d;p?y");
    check(BASE, "g?y", "http://a/b/c/g?y");
    check(BASE, "#s", "http://a/b/c/d;p?q#s");
    check(BASE, "g#s", "http://a/b/c/g#s");
    check(BASE, "g?y#s", "http://a/b/c/g?y#s");
    check(BASE, "", "http://a/b/c/d;p?q");
    check(BASE, ".", "http://a/b/c/");
    check(BASE, "./", "http://a/b/c/");
    check(BASE, "..", "http://a/b/");
    check(BASE, "../", "http://a/b/");
    check(BASE, "../g", "http://a/b/g");
    check(BASE, "../..", "http://a/");
    check(BASE, "../../g", "http://a/g");
}

/* Section 5.4.2. */
TEST(abnormal_references)
{
    check(BASE, "../../../g", "http://a/g");
    check(BASE, "../../../../g", "http://a/g");
    check(BASE, "/./g", "http://a/g");
    check(BASE, "/../g", "http://a/g");
    check(BASE, "g.", "http://a/b/c/g.");
    check(BASE, "..g", "http://a/b/c/..g");
    check(BASE, "./../g", "http://a/b/g");
    check(BASE, "./g/.", "http://a/b/c/g/");
    check(BASE, "g/./h", "http://a/b/c/g/h");
    check(BASE, "g/../h", "http://a/b/c/h");
    check(BASE, "g?y/../x", "http://a/b/c/g?y/../x");
    check(BASE, "g#s/../x", "http://a/b/c/g#s/../x");
}

TEST(without_a_place)
{
    check("", "", "");
    check("", "a.json#/b", "a.json#/b");
    check("", "#a", "#a");
    check("urn:uuid:1", "#a", "urn:uuid:1#a");
    check("http://a", "b", "http://a/b");
}

TEST(decoding)
{
    struct buf out = BUF_INIT(BUF_SMALL);

    CHECK(uri_decode(&out, STR("a%20b%2Fc")));
    CHECK_STR(buf_c(&out), "a b/c");
    CHECK(!uri_decode(&out, STR("%2")));
    CHECK(!uri_decode(&out, STR("%zz")));
    buf_release(&out);
}
