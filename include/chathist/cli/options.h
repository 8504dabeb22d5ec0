/*
 * options - the command line of a program: one table is used for parsing, --help and completion.
 *
 * Options may stand between operands, `--` ends them, and long names may be shortened as long as
 * they are unique. The common options of all programs are handled here and stored in struct
 * opt_common.
 */
#ifndef CHATHIST_CLI_OPTIONS_H
#define CHATHIST_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

/* The argument of an option or an operand; completion offers values of this kind. */
enum opt_kind {
    OPT_FLAG, /* no argument */
    OPT_TEXT,
    OPT_QUERY, /* a query (search/query.h) */
    OPT_NUMBER,
    OPT_FILE,
    OPT_SESSION,
    OPT_ROLE,
    OPT_MODEL,
    OPT_PROVIDER,
    OPT_TOOL, /* a file, or a name in the directory of tools */
    OPT_MCP,  /* a command, or a name in the user configuration */
    OPT_WHEN, /* auto, always, never */
    OPT_TEMPLATE,
    OPT_PERSONA, /* a system prompt of the user; OPT_ROLE is the role of a message */
    OPT_TIME,    /* a time for time_parse_when */
    OPT_CHOICE,  /* one of the words in `meta`, `this|that` */
    OPT_WORD,    /* a NAME; `meta` has those to offer, `this|that` */
    OPT_CHOICES, /* several of them, separated by commas */
};

struct opt {
    int key; /* the letter of the short form, or OPT_LONG + n without one; 0 ends a table */
    const char *name; /* the name of the long form */
    enum opt_kind kind;
    const char *meta; /* the name of the argument in help; NULL for flags */
    const char *help; /* NULL: accepted, but listed neither in --help nor for completion */
};

#define OPT_LONG 256
/* Keys of the common options. A row with one of these keys in a program's table changes the help
 * text of the option in that program, not its meaning. If the option has an argument, opt_next also
 * returns it, so that it can be repeated. */
enum {
    OPT_HELP = 'h',
    OPT_VERSION = 'V',
    OPT_QUIET = 'q',
    OPT_HISTORY = 1024,
    OPT_JSON,
    OPT_COLOR
};

struct program {
    const char *name;
    const char *purpose; /* completes "NAME - " */
    const char *operands; /* the words of the synopsis: "[PROMPT…]"; of OPT_CHOICE "[THIS|THAT]…" */
    enum opt_kind operand_kind; /* OPT_FLAG: none */
    const struct opt *options;
};

enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct opt_common {
    const char *self;    /* argv[0] */
    const char *history; /* --history, else NULL */
    bool json;
    bool quiet;
    enum color_when color;
};

struct opt_parser {
    const struct program *program;
    struct opt_common common;
    int argc;
    char **argv;
    void *table; /* private */
    char *letters;
};

/* Arguments of an option that may be repeated, borrowed from argv. Zero-initialise; the caller
 * frees `at`. */
struct arg_list {
    const char **at; /* ends with NULL, or is NULL */
    size_t count, cap;
};

void arg_list_add(struct arg_list *l, const char *value);

/* The version of the suite, `0.1.0`. */
const char *opt_version(void);

/* The first call of every main; it calls die_start. */
void opt_start(struct opt_parser *p, const struct program *program, int argc, char **argv);
/* Returns the key of the next option of the program's own table, with its argument (part of argv)
 * in *value, or 0 after the last one. --help and --version are printed and end the program. A wrong
 * option, an unknown word for an OPT_CHOICE or OPT_CHOICES, or an operand of a program without
 * operands ends it with exit code 2. */
int opt_next(struct opt_parser *p, char **value);
/* Returns the *count operands, borrowed from argv, after opt_next returned 0. If the first one is
 * not among the words of an OPT_CHOICE, it ends the program as a wrong option does. */
char **opt_operands(struct opt_parser *p, size_t *count);

/* Returns the number of a value of OPT_CHOICE, or of one of OPT_CHOICES, among its words, from 0;
 * of any other text, how many words there are. */
size_t opt_choice(const char *words, struct str value);

/* Each of these reads an argument. A bad one ends the program with exit code 2 and a message that
 * names the option. */
size_t opt_count(const char *option, const char *value);    /* `all` (SIZE_MAX) or 1, 2, ... */
unsigned opt_number(const char *option, const char *value); /* 0, 1, 2, ... */
/* Sets the first and the last microsecond of a time (time_parse_when). */
void opt_when(const char *option, const char *value, int64_t *first, int64_t *last);

/* Reads `all` (SIZE_MAX) or 0, 1, 2, ... Returns false for any other text. */
bool opt_read_count(struct str text, size_t *n);
/* Reads 0, 1, 2, ... Returns false for any other text. */
bool opt_read_number(struct str text, unsigned *n);
/* Reads a time such as `90`, `30s` or `5m`. Returns false for any other text. */
bool opt_read_milliseconds(struct str text, long *ms);

/* Reads a number of bytes: `500000`, `500k`, `10M`, `2GiB`; the units are powers of 1024. */
uint64_t opt_size(const char *option, const char *value);

/* For "did you mean": the caller offers every possible name, and the one that is most similar to a
 * mistyped word is kept. */
struct nearest {
    const char *typed; /* set by the caller; borrowed */
    const char *name;  /* the most similar name offered, borrowed; NULL if all differ too much */
    size_t far;        /* private */
};

/* Offers one name. About a third of its letters may differ, or be swapped with their neighbour. A
 * name that contains the typed word, or is contained in it, counts only if no other is similar. */
void nearest_offer(struct nearest *n, const char *name);

#endif
