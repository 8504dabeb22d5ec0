#define PCRE2_CODE_UNIT_WIDTH 8

#include "chathist/base/regex.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"

/* The limit of steps for one match, PCRE2's own default. */
#define MATCH_LIMIT 10000000
/* The limit of memory for one match, in KiB, besides its stack. */
#define HEAP_LIMIT (256 << 10)
#define JIT_STACK_START ((size_t)32 << 10)
#define JIT_STACK_MOST ((size_t)8 << 20)

struct regex {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack; /* NULL: it is not compiled to machine code */
    bool shared;            /* the code is another one's */
};

/* The characters of utf8_is_word as a class. */
#define WORD                                                                                       \
    "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}"                      \
    "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}]"

/* Compiles a pattern with options. Returns NULL with *e set, which may be NULL. */
static pcre2_code *compile(struct str pattern, uint32_t options, struct err *e)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    PCRE2_UCHAR reason[256];
    pcre2_code *compiled;
    size_t offset;
    int code;

    if (!context)
        mem_exhausted();
    /* The defaults depend on how the library was built. */
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_bsr(context, PCRE2_BSR_UNICODE);
    compiled = pcre2_compile((PCRE2_SPTR)(pattern.n ? pattern.p : ""), pattern.n, options, &code,
                             &offset, context);
    pcre2_compile_context_free(context);
    if (!compiled) {
        if (pcre2_get_error_message(code, reason, sizeof reason) < 0)
            reason[0] = '\0';
        err_set(e, ERR_USAGE, "bad regular expression '%.*s': %s (offset %zu)", ERR_SHOWN(pattern),
                (const char *)reason, offset);
    }
    return compiled;
}

void regex_add_quoted(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (strchr("\\^$.*+?()[]{}|/", text.p[i]) && text.p[i] != '\0')
            buf_add_byte(out, '\\');
        buf_add_byte(out, text.p[i]);
    }
}

/* Returns the settings, such as (*NO_JIT), that are allowed only at the very start of a pattern. A
 * verb such as (*COMMIT) is included: there it means the same before a lookbehind. */
static struct str leading_settings(struct str pattern)
{
    size_t end = 0;

    while (pattern.n - end > 2 && pattern.p[end] == '(' && pattern.p[end + 1] == '*') {
        size_t i = end + 2;

        while (i < pattern.n &&
               ((pattern.p[i] >= 'A' && pattern.p[i] <= 'Z') || ascii_is_digit(pattern.p[i]) ||
                pattern.p[i] == '_' || pattern.p[i] == '='))
            i++;
        if (i == pattern.n || pattern.p[i] != ')')
            break;
        end = i + 1;
    }
    return (struct str){pattern.p, end};
}

/*
 * Compiles the pattern between two assertions that it does not begin or end inside a word. The
 * pattern alone is valid, but it can hide the text that follows it: by a \Q without \E, or by a
 * comment that runs to the end of its line in (?x). Then the closing parenthesis is missing, and
 * the next ending is tried.
 */
static pcre2_code *compile_words(struct str pattern, uint32_t options)
{
    static const char *const endings[] = {"", "\\E", "\n", "\\E\n"};
    struct str start = leading_settings(pattern);
    struct buf whole = BUF_INIT(SIZE_MAX);
    pcre2_code *compiled = NULL;

    for (size_t i = 0; i < sizeof endings / sizeof *endings && !compiled; i++) {
        buf_clear(&whole);
        buf_add_str(&whole, start);
        buf_add_c(&whole, "(?<!" WORD ")(?:");
        buf_add_str(&whole, str_skip(pattern, start.n));
        buf_add_c(&whole, endings[i]);
        buf_add_c(&whole, ")(?!" WORD ")");
        compiled = compile(buf_str(&whole), options, NULL);
    }
    buf_release(&whole);
    return compiled;
}

/* Makes everything that matching needs besides the code. */
static struct regex *regex_prepare(pcre2_code *code, bool stack)
{
    struct regex *r = mem_zalloc(sizeof *r);

    r->code = code;
    r->data = pcre2_match_data_create(1, NULL);
    r->limits = pcre2_match_context_create(NULL);
    if (!r->data || !r->limits)
        mem_exhausted();
    pcre2_set_match_limit(r->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(r->limits, HEAP_LIMIT);
    if (stack) {
        r->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MOST, NULL);
        pcre2_jit_stack_assign(r->limits, NULL, r->stack);
    }
    return r;
}

/* If machine code cannot be made or run, the pattern is interpreted. Returns NULL for NULL. */
static struct regex *complete(pcre2_code *code)
{
    return code ? regex_prepare(code, pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0) : NULL;
}

struct regex *regex_share(const struct regex *r)
{
    struct regex *same = regex_prepare(r->code, r->stack != NULL);

    same->shared = true;
    return same;
}

struct regex *regex_new(struct str pattern, bool caseless, bool words, struct err *e)
{
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C |
                       (caseless ? PCRE2_CASELESS : 0);
    struct buf repaired = BUF_INIT(SIZE_MAX);
    pcre2_code *compiled;

    utf8_add_repaired(&repaired, pattern);
    compiled = compile(buf_str(&repaired), options, e);
    if (compiled && words) {
        pcre2_code_free(compiled);
        compiled = compile_words(buf_str(&repaired), options);
        if (!compiled)
            err_set(e, ERR_USAGE, "bad regular expression '%.*s': not for whole words",
                    ERR_SHOWN(buf_str(&repaired)));
    }
    buf_release(&repaired);
    return complete(compiled);
}

struct regex *regex_new_bytes(struct str pattern, struct err *e)
{
    return complete(compile(pattern, 0, e));
}

void regex_free(struct regex *r)
{
    if (!r)
        return;
    pcre2_jit_stack_free(r->stack);
    pcre2_match_context_free(r->limits);
    pcre2_match_data_free(r->data);
    if (!r->shared)
        pcre2_code_free(r->code);
    free(r);
}

int regex_find(struct regex *r, struct str text, size_t from, bool empty_too, size_t *at,
               size_t *len, struct err *e)
{
    uint32_t options = PCRE2_NO_UTF_CHECK | (empty_too ? 0 : PCRE2_NOTEMPTY);
    PCRE2_SPTR subject = (PCRE2_SPTR)(text.n ? text.p : "");
    PCRE2_UCHAR reason[256];
    int result = pcre2_match(r->code, subject, text.n, from, options, r->data, r->limits);

    /* The interpreter takes its memory from the heap. */
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
        result =
            pcre2_match(r->code, subject, text.n, from, options | PCRE2_NO_JIT, r->data, r->limits);
    if (result == PCRE2_ERROR_NOMATCH)
        return 0;
    if (result == PCRE2_ERROR_NOMEMORY)
        mem_exhausted();
    if (result < 0) {
        if (pcre2_get_error_message(result, reason, sizeof reason) < 0)
            reason[0] = '\0';
        return err_set(e, ERR_FAILURE, "%s", (const char *)reason);
    }

    const size_t *place = pcre2_get_ovector_pointer(r->data);

    /* \K in a lookahead can put the start after the end. */
    *at = place[0] < place[1] ? place[0] : place[1];
    *len = place[1] - *at;
    return 1;
}
