#include "chathist/cli/options.h"

#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/search/query.h"

/* Returns whether one of the names begins with the other. */
static bool is_shortened(const char *a, const char *b)
{
    return str_starts(str_of(a), str_of(b)) || str_starts(str_of(b), str_of(a));
}

void nearest_offer(struct nearest *n, const char *name)
{
    size_t length = strlen(n->typed), most = length / 3 < 3 ? length / 3 + 1 : 4;
    size_t far = str_distance(str_of(n->typed), str_of(name), most);
    bool within = (length > 3 && strstr(name, n->typed)) || strstr(n->typed, name);
    bool better = false;

    if (far == most && !within)
        return;
    if (far == most)
        far = most + 1;
    /* Of equally similar names, one that begins with the other one, or else the longer one. */
    if (n->name && far == n->far) {
        bool begins = is_shortened(n->typed, name), did = is_shortened(n->typed, n->name);

        better = begins != did ? begins : strlen(name) > strlen(n->name);
    }
    if (!n->name || far < n->far || better) {
        n->far = far;
        n->name = name;
    }
}

#ifndef CHATHIST_VERSION
#define CHATHIST_VERSION "unknown"
#endif

/* For completion scripts; not in any table. */
enum { COMPLETION_TABLE = OPT_COLOR + 1 };

static const struct opt common_options[] = {
    {OPT_HISTORY, "history", OPT_FILE, "FILE", "use this history file"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print the stored lines"},
    {OPT_QUIET, "quiet", OPT_FLAG, NULL, "leave out notices and hints"},
    {OPT_COLOR, "color", OPT_WHEN, "WHEN", "colour: auto, always or never"},
    {OPT_HELP, "help", OPT_FLAG, NULL, "print this help"},
    {OPT_VERSION, "version", OPT_FLAG, NULL, "print the version"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};

static const char *const kind_names[] = {
    [OPT_FLAG] = "flag",     [OPT_TEXT] = "text",         [OPT_NUMBER] = "number",
    [OPT_QUERY] = "query",   [OPT_FILE] = "file",         [OPT_SESSION] = "session",
    [OPT_ROLE] = "role",     [OPT_MODEL] = "model",       [OPT_PROVIDER] = "provider",
    [OPT_WHEN] = "when",     [OPT_TEMPLATE] = "template", [OPT_PERSONA] = "persona",
    [OPT_TOOL] = "tool",     [OPT_MCP] = "mcp",           [OPT_TIME] = "time",
    [OPT_CHOICE] = "choice", [OPT_WORD] = "word",         [OPT_CHOICES] = "choices",
};

/* Returns the row with this name, or NULL. */
static const struct opt *find_row(const struct opt *table, const char *name)
{
    for (; table->key; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

/* Calls fn for each option: the program's own, then the common ones. If the program has a row of
 * its own for a common option, fn gets that row. */
static void each_option(const struct program *program, void (*fn)(void *arg, const struct opt *o),
                        void *arg)
{
    for (const struct opt *o = program->options; o->key; o++)
        if (!find_row(common_options, o->name))
            fn(arg, o);
    for (const struct opt *o = common_options; o->key; o++) {
        const struct opt *reworded = find_row(program->options, o->name);

        fn(arg, reworded ? reworded : o);
    }
}

/* ---- help and completion ---- */

/* The column in which help texts begin; after a longer name they begin on the next line. */
#define HELP_COLUMN 32
#define HELP_NEXT_LINE "\n                                "

static void print_option(void *arg, const struct opt *o)
{
    struct buf left = BUF_INIT(BUF_SMALL);
    bool *has_query = arg;

    if (!o->help)
        return;
    *has_query = *has_query || o->kind == OPT_QUERY;
    if (o->key < OPT_LONG)
        buf_addf(&left, "-%c, --%s", o->key, o->name);
    else
        buf_addf(&left, "    --%s", o->name);
    if (o->kind == OPT_WORD)
        buf_add_c(&left, "=NAME");
    else if (o->meta)
        buf_addf(&left, "=%s", o->meta);
    printf("  %-*s%s%s\n", HELP_COLUMN - 2, buf_c(&left),
           left.len > HELP_COLUMN - 3 ? HELP_NEXT_LINE : "", o->help);
    buf_release(&left);
}

static void print_help(const struct program *program)
{
    bool has_query = false;

    printf("usage: " PROGRAM_PREFIX "%s [OPTION]...%s%s\n" PROGRAM_PREFIX "%s - %s\n\n",
           program->name, *program->operands ? " " : "", program->operands, program->name,
           program->purpose);
    each_option(program, print_option, &has_query);
    if (has_query)
        printf("\nQUERY: " QUERY_HELP_WORDS "\n       " QUERY_HELP_FIELDS "\n");
    printf("\nThe manual is " PROGRAM_PREFIX "%s(1); files and formats are in " PROGRAM_PREFIX
           "chathist(5).\n'" PROGRAM_PREFIX "chathist' lists all programs, '" PROGRAM_PREFIX
           "chathist info' prints where everything is.\n",
           program->name);
}

const char *opt_version(void)
{
    return CHATHIST_VERSION;
}

/* Prints letter, name, kind, meta and help of an option, separated by tabs, for completion scripts
 * and tests. The last line of the table describes the operands. */
static void print_completion(void *arg, const struct opt *o)
{
    (void)arg;
    if (!o->help)
        return;
    if (o->key < OPT_LONG)
        printf("-%c", o->key);
    printf("\t--%s\t%s\t%s\t%s\n", o->name, kind_names[o->kind], o->meta ? o->meta : "", o->help);
}

static void finish_printing(void)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        warnf("cannot write to standard output");
        exit(exit_code(ERR_FAILURE));
    }
    exit(0);
}

/* ---- parsing ---- */

struct tables {
    struct option *longs;
    size_t count, cap;
    struct buf letters;
};

static void add_row_for_getopt(void *arg, const struct opt *o)
{
    struct tables *t = arg;

    t->longs = mem_grow(t->longs, &t->cap, t->count + 1, sizeof *t->longs);
    t->longs[t->count++] = (struct option){
        o->name, o->kind == OPT_FLAG ? no_argument : required_argument, NULL, o->key};
    if (o->key < OPT_LONG) {
        buf_add_byte(&t->letters, (char)o->key);
        if (o->kind != OPT_FLAG)
            buf_add_byte(&t->letters, ':');
    }
}

void opt_start(struct opt_parser *p, const struct program *program, int argc, char **argv)
{
    static const struct opt helper = {COMPLETION_TABLE, "completion-table", OPT_FLAG, NULL, ""};
    struct tables t = {NULL, 0, 0, BUF_INIT(BUF_SMALL)};

    die_start(program->name);
    *p =
        (struct opt_parser){.program = program, .common.self = argv[0], .argc = argc, .argv = argv};
    /* With a leading colon getopt reports a missing argument and an unknown option differently. */
    buf_add_byte(&t.letters, ':');
    each_option(program, add_row_for_getopt, &t);
    add_row_for_getopt(&t, &helper);
    t.longs = mem_grow(t.longs, &t.cap, t.count + 1, sizeof *t.longs);
    t.longs[t.count] = (struct option){0};
    p->table = t.longs;
    p->letters = buf_detach(&t.letters);
    opterr = 0;
    optind = 1;
}

/* Returns the operands as in the synopsis; of a choice the first one, without its brackets. */
static struct str operand_words(const struct program *program)
{
    struct str words = str_of(program->operands);

    if (program->operand_kind != OPT_CHOICE)
        return words;
    return (struct str){words.p + 1, strcspn(words.p + 1, "]")};
}

/* Handles a common option. Returns false if the key is not one. */
static bool set_common(struct opt_parser *p, int key)
{
    struct str operands;
    size_t when;

    switch (key) {
    case OPT_HELP:
        print_help(p->program);
        finish_printing();
        break;
    case OPT_VERSION:
        printf(PROGRAM_PREFIX "%s (chathist) %s\n", p->program->name, CHATHIST_VERSION);
        finish_printing();
        break;
    case COMPLETION_TABLE:
        each_option(p->program, print_completion, NULL);
        operands = operand_words(p->program);
        printf("\t\t%s\t%.*s\t\n", kind_names[p->program->operand_kind], (int)operands.n,
               operands.p);
        finish_printing();
        break;
    case OPT_HISTORY:
        p->common.history = optarg;
        break;
    case OPT_JSON:
        p->common.json = true;
        break;
    case OPT_QUIET:
        p->common.quiet = true;
        break;
    case OPT_COLOR:
        when = opt_choice("auto|always|never", str_of(optarg));
        if (when > COLOR_NEVER)
            die_usage("bad value '%s' for --color: auto, always or never is expected", optarg);
        p->common.color = (enum color_when)when;
        break;
    default:
        return false;
    }
    return true;
}

/* Which options a mistyped long name could mean. */
struct guess {
    struct nearest nearest; /* the option's name, without dashes and argument */
    struct buf begun;       /* the names that begin with it, for a message */
    size_t count;           /* how many these are */
};

static void guess_option(void *arg, const struct opt *o)
{
    struct guess *g = arg;

    if (str_starts(str_of(o->name), str_of(g->nearest.typed)))
        buf_addf(&g->begun, "%s--%s", g->count++ > 0 ? ", " : "", o->name);
    nearest_offer(&g->nearest, o->name);
}

static _Noreturn void die_long(const struct opt_parser *p, const char *word)
{
    size_t n = strcspn(word, "=");
    char *typed = mem_copy(word + 2, n - 2);
    struct guess g = {.nearest = {.typed = typed}, .begun = BUF_INIT(BUF_SMALL)};

    each_option(p->program, guess_option, &g);
    if (g.count > 1)
        die_usage("option '--%s' is ambiguous: %s", typed, buf_c(&g.begun));
    if (g.nearest.name)
        die_usage("unknown option '--%s': did you mean --%s?", typed, g.nearest.name);
    die_usage("unknown option '--%s'", typed);
}

static void die_option(struct opt_parser *p, int key)
{
    const char *word = p->argv[optind - 1];
    bool is_letter = optopt > 0 && optopt < OPT_LONG;

    if (key == ':' && word[0] == '-' && word[1] == '-')
        die_usage("option '%s' needs an argument", word);
    if (key == ':')
        die_usage("option '-%c' needs an argument", optopt);
    /* optopt is 0 for an unknown long option, a letter for an unknown short one, and the key of the
     * option for a flag with an argument. */
    if (is_letter && (optopt == ':' || !strchr(p->letters, optopt))) {
        /* getopt does not advance while letters of a word are left. */
        bool is_last = word[0] == '-' && word[1] != '-' && word[strlen(word) - 1] == optopt;

        if (!is_last && optind < p->argc)
            word = p->argv[optind];
        /* If the argument has blanks, it was meant as text. */
        if (strpbrk(word, " \t\n"))
            die_usage("unknown option '-%c' in '%s': put -- before a text that begins with -",
                      optopt, word);
        die_usage("unknown option '-%c'", optopt);
    }
    if (optopt != 0)
        die_usage("option '%s' takes no argument", word);
    die_long(p, word);
}

/* Ends the program unless the text is one of the words `this|that` of a choice. `o`: the option
 * whose argument it is; NULL: it is the first operand. */
static void check_choice(struct str choice, const struct opt *o, struct str text)
{
    char *words = mem_copy(choice.p, choice.n), *value = mem_copy(text.p, text.n);
    struct nearest meant = {.typed = value};
    struct buf list = BUF_INIT(BUF_SMALL), wrong = BUF_INIT(SIZE_MAX);
    bool known = false;
    char *next;

    for (char *word = words; word; word = next) {
        next = strchr(word, '|');
        if (next)
            *next++ = '\0';
        known = known || strcmp(word, value) == 0;
        nearest_offer(&meant, word);
        buf_addf(&list, "%s%s", word == words ? "" : next ? ", " : " or ", word);
    }
    if (o)
        buf_addf(&wrong, "bad value '%s' for --%s", value, o->name);
    else
        buf_addf(&wrong, "unknown command '%s'", value);
    if (!known && meant.name)
        die_usage("%s: did you mean %s?", buf_c(&wrong), meant.name);
    if (!known)
        die_usage("%s: %s is expected", buf_c(&wrong), buf_c(&list));
    buf_release(&list);
    buf_release(&wrong);
    free(words);
    free(value);
}

int opt_next(struct opt_parser *p, char **value)
{
    int key;

    while ((key = getopt_long(p->argc, p->argv, p->letters, p->table, NULL)) != -1) {
        const struct opt *own = p->program->options;
        struct str rest;

        if (key == '?' || key == ':')
            die_option(p, key);
        /* The last row is a flag and stands for the options that the program does not have. */
        while (own->key && own->key != key)
            own++;
        rest = own->kind == OPT_CHOICES ? str_of(optarg) : STR_NONE;
        if (own->kind == OPT_CHOICE)
            check_choice(str_of(own->meta), own, str_of(optarg));
        while (rest.p)
            check_choice(str_of(own->meta), own, str_cut(&rest, ','));
        if (!set_common(p, key) || own->kind != OPT_FLAG) {
            *value = optarg;
            return key;
        }
    }
    free(p->table);
    free(p->letters);
    p->table = NULL;
    p->letters = NULL;
    if (p->program->operand_kind == OPT_FLAG && optind < p->argc)
        die_usage("no argument is expected");
    return 0;
}

char **opt_operands(struct opt_parser *p, size_t *count)
{
    *count = (size_t)(p->argc - optind);
    if (*count > 0 && p->program->operand_kind == OPT_CHOICE)
        check_choice(operand_words(p->program), NULL, str_of(p->argv[optind]));
    return p->argv + optind;
}

/* Reads the number at the beginning of *text, and moves *text to its end. Returns false if *text
 * begins with another character, or if the number is larger than `most`. */
static bool read_digits(struct str *text, uint64_t most, uint64_t *n)
{
    size_t i = 0;

    for (*n = 0; i < text->n && ascii_is_digit(text->p[i]); i++) {
        unsigned digit = (unsigned)(text->p[i] - '0');

        if (*n > (most - digit) / 10)
            return false;
        *n = *n * 10 + digit;
    }
    *text = str_skip(*text, i);
    return i > 0;
}

bool opt_read_count(struct str text, size_t *n)
{
    uint64_t read = SIZE_MAX;
    bool good = str_eq_c(text, "all") || (read_digits(&text, SIZE_MAX, &read) && text.n == 0);

    *n = (size_t)read;
    return good;
}

void arg_list_add(struct arg_list *l, const char *value)
{
    l->at = mem_grow(l->at, &l->cap, l->count + 2, sizeof *l->at);
    l->at[l->count++] = value;
    l->at[l->count] = NULL;
}

size_t opt_choice(const char *words, struct str value)
{
    struct str rest = str_of(words);
    size_t i = 0;

    while (rest.p && !str_eq(str_cut(&rest, '|'), value))
        i++;
    return i;
}

size_t opt_count(const char *option, const char *value)
{
    size_t n;

    if (!opt_read_count(str_of(value), &n) || n == 0)
        die_usage("bad value '%s' for %s: a number from 1 or 'all' is expected", value, option);
    return n;
}

bool opt_read_number(struct str text, unsigned *n)
{
    uint64_t number;

    if (!read_digits(&text, UINT_MAX, &number) || text.n > 0)
        return false;
    *n = (unsigned)number;
    return true;
}

bool opt_read_milliseconds(struct str text, long *ms)
{
    int64_t span;

    if (!time_parse_span(text, &span) || span > INT_MAX)
        return false;
    *ms = (long)span;
    return true;
}

unsigned opt_number(const char *option, const char *value)
{
    unsigned n;

    if (!opt_read_number(str_of(value), &n))
        die_usage("bad value '%s' for %s: a number is expected", value, option);
    return n;
}

void opt_when(const char *option, const char *value, int64_t *first, int64_t *last)
{
    if (!time_parse_when(str_of(value), time_now(), first, last))
        die_usage("bad value '%s' for %s: a time such as 2024-06-27, 7d, 'monday' or '2 weeks ago' "
                  "is expected",
                  value, option);
}

uint64_t opt_size(const char *option, const char *value)
{
    static const char units[] = "kKmMgGtT";
    struct str rest = str_of(value);
    uint64_t n;
    bool good = read_digits(&rest, UINT64_MAX, &n);
    const char *unit = rest.n > 0 ? strchr(units, rest.p[0]) : NULL;
    unsigned shift = unit ? 10 * ((unsigned)(unit - units) / 2 + 1) : 0;

    rest = str_skip(rest, unit ? 1 : 0);
    if (unit && str_starts(rest, STR("iB")))
        rest = str_skip(rest, 1);
    rest = str_skip(rest, str_starts(rest, STR("B")) ? 1 : 0);
    if (!good || rest.n > 0 || n > UINT64_MAX >> shift)
        die_usage("bad value '%s' for %s: a size such as 500k or 10M is expected", value, option);
    return n << shift;
}
