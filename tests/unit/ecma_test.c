#include "base/ecma.h"

#include "chathist/base/regex.h"
#include "test.h"

static int find(const char *pattern, struct str text)
{
    struct err e = ERR_INIT;
    struct regex *re = regex_new_ecma(str_of(pattern), &e);
    size_t at, len;
    int found = re ? regex_find(re, text, 0, true, &at, &len, &e) : -1;

    regex_free(re);
    err_release(&e);
    return found;
}

TEST(ends_are_the_texts_own)
{
    CHECK_INT(find("^a$", STR("a")), 1);
    CHECK_INT(find("^a$", STR("a\n")), 0);
    CHECK_INT(find("^a$", STR("b\na\nb")), 0);
}

TEST(classes)
{
    CHECK_INT(find("^\\d$", STR("7")), 1);
    CHECK_INT(find("^\\d$", STR("\xe0\xa5\xaa")), 0); /* a Devanagari digit */
    CHECK_INT(find("^\\w$", STR("\xc3\xa9")), 0);
    CHECK_INT(find("^\\s$", STR("\xc2\xa0")), 1);
    CHECK_INT(find("^\\S$", STR("\xc2\xa0")), 0);
    CHECK_INT(find("^[\\s]$", STR("\xef\xbb\xbf")), 1);
    CHECK_INT(find("^[^\\s]$", STR("\xef\xbb\xbf")), 0);
    CHECK_INT(find("^[[:x]$", STR("[")), 1);
    CHECK_INT(find("[]", STR("a")), 0);
    CHECK_INT(find("^[^]$", STR("\n")), 1);
}

TEST(any_character)
{
    CHECK_INT(find("^.$", STR("\xf0\x9f\x98\x80")), 1);
    CHECK_INT(find("^.$", STR("\n")), 0);
    CHECK_INT(find("^.$", STR("\xe2\x80\xa8")), 0); /* a line separator */
    CHECK_INT(find("^[.]$", STR("a")), 0);
}

TEST(escapes)
{
    CHECK_INT(find("^\\u0061\\u{62}$", STR("ab")), 1);
    CHECK_INT(find("^\\p{Letter}\\p{gc=Uppercase_Letter}\\P{Letter}$", STR("\xc3\xa9Z1")), 1);
    CHECK_INT(find("^\\p{Lu}$", STR("a")), 0);
    CHECK_INT(find("^\\.$", STR("a")), 0);
    CHECK_INT(find("^a\\/b$", STR("a/b")), 1);
}

TEST(wrong_expressions)
{
    CHECK_INT(find("(", STR("a")), -1);
    CHECK_INT(find("*", STR("a")), -1);
    CHECK_INT(find("a\\", STR("a")), -1);
    CHECK_INT(find("\\p{Nothing}", STR("a")), -1);
}
