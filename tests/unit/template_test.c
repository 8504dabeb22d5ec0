#include "chathist/chat/template.h"

#include "test.h"

/* With a = "A", b = "B {{a}}", none without a value. NULL: there is an error, the one given. */
static void check(const char *text, const char *want, const char *message, int line)
{
    struct template_var vars[] = {{STR("a"), STR("unused"), false, false},
                                  {STR("none"), STR_NONE, false, false},
                                  {STR("a"), STR("A"), false, false},
                                  {STR("b"), STR("B {{a}}"), false, false},
                                  {STR("empty"), STR(""), false, false}};
    struct buf out = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    int result = template_expand(str_of(text), 1, vars, sizeof vars / sizeof *vars, &out, &e);

    if (want)
        test_check_str(result == 0 ? buf_c(&out) : err_text(&e), want, text, __FILE__, line);
    else
        test_check_str(result < 0 ? err_text(&e) : buf_c(&out), message, text, __FILE__, line);
    if (result < 0)
        CHECK_INT(e.kind, ERR_USAGE);
    err_release(&e);
    buf_release(&out);
}

#define EXPANDS(text, want) check(text, want, NULL, __LINE__)
#define REFUSES(text, message) check(text, NULL, message, __LINE__)
#define NO_VARIABLE ": '{{' begins no variable ('{{{{' stands for it)"

TEST(defaults)
{
    EXPANDS("{{none:x}}", "x");
    EXPANDS("{{ other : x: y }}", "x: y");
    EXPANDS("{{none:}}.", ".");
    EXPANDS("{{a:x}}", "A");
    EXPANDS("[{{empty:x}}]", "[]");
}

TEST(braces)
{
    EXPANDS("{{{{a}}", "{{a}}");
    EXPANDS("{{{{", "{{");
    EXPANDS("{{{a}}}", "{A}");
    EXPANDS("{{{{{a}}", "{{{a}}");
    EXPANDS("{{{{{{a}}}}", "{{A}}");
    EXPANDS("{", "{");
}

TEST(what_is_no_variable)
{
    REFUSES("{{}}", "line 1" NO_VARIABLE);
    REFUSES("\n\n{{ 1a }}", "line 3" NO_VARIABLE);
    REFUSES("{{a", "line 1" NO_VARIABLE);
    REFUSES("{{a}", "line 1" NO_VARIABLE);
    REFUSES("{{", "line 1" NO_VARIABLE);
    REFUSES("{{{", "line 1" NO_VARIABLE);
    REFUSES("{{a\n:x}}\n{{a.b}}", "line 3" NO_VARIABLE);
    REFUSES("{{:x}}", "line 1" NO_VARIABLE);
    REFUSES("\n{{none}}", "line 2: no value for 'none'");
    REFUSES("{{a}} {{other}}", "line 1: no value for 'other'");
}

TEST(names)
{
    CHECK(template_name_valid(STR("a")));
    CHECK(template_name_valid(STR("_a-1_B")));
    CHECK(!template_name_valid(STR("")));
    CHECK(!template_name_valid(STR_NONE));
    CHECK(!template_name_valid(STR("1a")));
    CHECK(!template_name_valid(STR("-a")));
    CHECK(!template_name_valid(STR("a b")));
    CHECK(!template_name_valid(STR("a.b")));
}

/* The settings as `key|value;`, then `> `, the number of the body's first line less one, and the
 * body; or the error. */
static void check_head(const char *text, const char *want, int line)
{
    struct template_head h = {.rest = str_of(text)};
    struct buf got = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    int more;

    while ((more = template_head_next(&h, &e)) > 0)
        buf_addf(&got, "%.*s|%.*s;", (int)h.key.n, h.key.p, (int)h.value.n, h.value.p);
    if (more == 0)
        buf_addf(&got, "> %zu %.*s", h.line, (int)h.rest.n, h.rest.p ? h.rest.p : "");
    test_check_str(more < 0 ? err_text(&e) : buf_c(&got), want, text, __FILE__, line);
    /* It stays at its end. */
    if (more == 0)
        CHECK_INT(template_head_next(&h, &e), 0);
    err_release(&e);
    buf_release(&got);
}

#define HEAD(text, want) check_head(text, want, __LINE__)

TEST(heads)
{
    HEAD("", "> 0 ");
    HEAD("text\n---\n", "> 0 text\n---\n");
    HEAD("----\ntext", "> 0 ----\ntext");
    HEAD("---\n---\ntext\n", "> 2 text\n");
    HEAD("---\n---", "> 2 ");
    HEAD("---\r\na = b\r\n---\r\ntext", "a|b;> 3 text");
    HEAD("--- \n# x = y\n\n a=b = c \na.b =\n---\n\ntext", "a|b = c;a.b|;> 6 \ntext");
    HEAD("---\ntext\n---\n", "line 2 is not 'key = value'");
    HEAD("---\n= x\n---\n", "line 2 is not 'key = value'");
    HEAD("---\na = b\n", "the settings at its head do not end with '---'");
    HEAD("---", "the settings at its head do not end with '---'");
}
