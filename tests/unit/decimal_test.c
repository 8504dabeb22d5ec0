#include "chathist/base/decimal.h"

#include "test.h"

static int compare(const char *a, const char *b)
{
    struct decimal x = decimal_of(str_of(a)), y = decimal_of(str_of(b));

    return decimal_compare(&x, &y);
}

TEST(comparing)
{
    CHECK_INT(compare("1", "1.0"), 0);
    CHECK_INT(compare("100", "1e2"), 0);
    CHECK_INT(compare("0.001", "10e-4"), 0);
    CHECK_INT(compare("-0", "0.0e9"), 0);
    CHECK(compare("9007199254740993", "9007199254740992") > 0);
    CHECK(compare("-2", "-1") < 0);
    CHECK(compare("-1", "1") < 0);
    CHECK(compare("0", "-0.1") > 0);
    CHECK(compare("0", "0.1") < 0);
    CHECK(compare("12", "12.5") < 0);
    CHECK(compare("9.9", "10") < 0);
    CHECK(compare("1e999999999999999999999", "1e5") > 0);
    CHECK(compare("1e-999999999999999999999", "0") > 0);
}

static bool is_integer(const char *number)
{
    struct decimal d = decimal_of(str_of(number));

    return decimal_is_integer(&d);
}

TEST(integers)
{
    CHECK(is_integer("0"));
    CHECK(is_integer("-7"));
    CHECK(is_integer("1.0"));
    CHECK(is_integer("1.5e1"));
    CHECK(is_integer("1e400"));
    CHECK(!is_integer("1.5"));
    CHECK(!is_integer("0.1"));
    CHECK(!is_integer("15e-1"));
}

static bool is_multiple(const char *a, const char *b)
{
    struct decimal x = decimal_of(str_of(a)), y = decimal_of(str_of(b));

    return decimal_is_multiple(&x, &y);
}

TEST(multiples)
{
    CHECK(is_multiple("0", "3"));
    CHECK(is_multiple("-9", "3"));
    CHECK(is_multiple("0.0075", "0.0001"));
    CHECK(is_multiple("4.5", "1.5"));
    CHECK(is_multiple("1e300", "0.5"));
    CHECK(is_multiple("1e300", "1024"));
    CHECK(is_multiple("100", "1e2"));
    CHECK(!is_multiple("10", "1e2"));
    CHECK(!is_multiple("1e300", "7"));
    CHECK(!is_multiple("35", "10"));
    CHECK(!is_multiple("0.00751", "0.0001"));
    CHECK(is_multiple("999999999999999999", "999999999999999999"));
    CHECK(is_multiple("123456789012345678901234567890", "10"));
}

static void check_text(const char *number, const char *want)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct decimal d = decimal_of(str_of(number));

    decimal_add(&out, &d);
    CHECK_STR(buf_c(&out), want);
    buf_release(&out);
}

TEST(one_text_for_equal_numbers)
{
    check_text("0", "0");
    check_text("-0.00", "0");
    check_text("12.50", "0.125e2");
    check_text("1250e-2", "0.125e2");
    check_text("-0.0012", "-0.12e-2");
}
