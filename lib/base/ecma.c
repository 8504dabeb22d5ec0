#include "base/ecma.h"

#include <stdbool.h>

/* White space and line ends (section 12.2, 12.3), for the inside of a class. */
#define SPACES                                                                                     \
    "\\t\\n\\x0b\\f\\r\\x20\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
#define NO_LINE_END "[^\\n\\r\\u2028\\u2029]"

/* Table 70 of ECMA-262: the values of General_Category. */
static const char *short_name(struct str name)
{
    static const struct {
        const char *name, *value;
    } categories[] = {
        {"Letter", "L"},
        {"Cased_Letter", "L&"},
        {"Uppercase_Letter", "Lu"},
        {"Lowercase_Letter", "Ll"},
        {"Titlecase_Letter", "Lt"},
        {"Modifier_Letter", "Lm"},
        {"Other_Letter", "Lo"},
        {"Mark", "M"},
        {"Nonspacing_Mark", "Mn"},
        {"Spacing_Mark", "Mc"},
        {"Enclosing_Mark", "Me"},
        {"Number", "N"},
        {"Decimal_Number", "Nd"},
        {"digit", "Nd"},
        {"Letter_Number", "Nl"},
        {"Other_Number", "No"},
        {"Punctuation", "P"},
        {"punct", "P"},
        {"Dash_Punctuation", "Pd"},
        {"Open_Punctuation", "Ps"},
        {"Close_Punctuation", "Pe"},
        {"Symbol", "S"},
        {"Math_Symbol", "Sm"},
        {"Currency_Symbol", "Sc"},
        {"Separator", "Z"},
        {"Space_Separator", "Zs"},
        {"Other", "C"},
        {"Control", "Cc"},
        {"Format", "Cf"},
        {"Unassigned", "Cn"},
    };

    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (str_eq_c(name, categories[i].name))
            return categories[i].value;
    return NULL;
}

/* Adds the property at the start of s, `\p{…}`, and gives its length; 0: it is none with a long
 * name. */
static size_t add_property(struct buf *out, struct str s)
{
    struct str rest = s, name;
    const char *value;

    if (s.n < 4 || s.p[2] != '{')
        return 0;
    name = str_cut(&rest, '}');
    if (!rest.p)
        return 0;
    name = (struct str){s.p + 3, name.n - 3};
    if (str_starts(name, STR("General_Category=")))
        name = (struct str){name.p + 17, name.n - 17};
    else if (str_starts(name, STR("gc=")))
        name = (struct str){name.p + 3, name.n - 3};
    value = short_name(name);
    if (!value)
        return 0;
    buf_add(out, s.p, 3);
    buf_add_c(out, value);
    buf_add_byte(out, '}');
    return (size_t)(rest.p - s.p);
}

/* Adds the escape at the start of s (two bytes or more) and gives its length. */
static size_t add_escape(struct buf *out, struct str s, bool in_class)
{
    size_t n = 0;

    if (s.p[1] == 's') {
        buf_add_c(out, in_class ? SPACES : "[" SPACES "]");
        return 2;
    }
    if (s.p[1] == 'S' && !in_class) {
        buf_add_c(out, "[^" SPACES "]");
        return 2;
    }
    if (s.p[1] == 'p' || s.p[1] == 'P')
        n = add_property(out, s);
    if (!n)
        buf_add(out, s.p, n = 2);
    return n;
}

void ecma_add_perl(struct buf *out, struct str pattern)
{
    bool in_class = false;

    /* Perl reads settings such as (*UCP) there; to ECMA it is an error. */
    if (str_starts(pattern, STR("(*")))
        buf_add_c(out, "(?:)");
    for (size_t i = 0; i < pattern.n;) {
        char c = pattern.p[i];

        if (c == '\\' && i + 1 < pattern.n) {
            i += add_escape(out, (struct str){pattern.p + i, pattern.n - i}, in_class);
            continue;
        }
        if (c == '[' && in_class)
            buf_add_c(out, "\\[");
        else if (c == '.' && !in_class)
            buf_add_c(out, NO_LINE_END);
        else
            buf_add_byte(out, c);
        if (c == '[' || c == ']')
            in_class = c == '[';
        i++;
    }
}
