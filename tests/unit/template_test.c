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

/* The options as `key|value;`, then `> `, the number of the body's first line, and the body; or the
 * error. */
static void check_head(const char *text, const char *want, int line)
{
    struct preset p = PRESET_INIT("template");
    struct buf got = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    int result;

    buf_add_c(&p.text, text);
    result = preset_parse(&p, &e);
    for (size_t i = 0; i < p.options_count; i++) {
        buf_addf(&got, "%s|", p.options[i].key);
        buf_add_str(&got, p.options[i].value);
        buf_add_byte(&got, ';');
    }
    buf_addf(&got, "> %zu ", p.line);
    buf_add_str(&got, p.body);
    test_check_str(result < 0 ? err_text(&e) : buf_c(&got), want, text, __FILE__, line);
    err_release(&e);
    buf_release(&got);
    preset_release(&p);
}

#define HEAD(text, want) check_head(text, want, __LINE__)

TEST(heads)
{
    HEAD("", "> 1 ");
    HEAD("text\n---\n", "> 1 text\n---");
    HEAD("----\ntext", "> 1 ----\ntext");
    HEAD("---\n---\ntext\n", "> 3 text");
    HEAD("---\n---", "> 3 ");
    HEAD("---\r\noption.a = b\r\n---\r\ntext", "a|b;> 4 text");
    HEAD("--- \n# x = y\n\n option.a=b = c \noption.a.b =\n---\n\ntext", "a|b = c;a.b|;> 8 text");
    HEAD("---\ntext\n---\n", "line 2 is not 'key = value'");
    HEAD("---\n= x\n---\n", "line 2 is not 'key = value'");
    HEAD("---\noption.a = b\n", "the settings at its head do not end with '---'");
    HEAD("---", "the settings at its head do not end with '---'");
}
