/*
 * opt - the command line of a program: one table feeds parsing, --help and completion.
 *
 * Options may stand among the operands (GNU habit), `--` ends them, long names may be shortened
 * while they are unique. Every program has the common options; they are handled here and left in
 * struct opt_common.
 */
#ifndef CHATHIST_CLI_OPTIONS_H
#define CHATHIST_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an option or an operand takes: tells the completion what to offer. */
enum opt_kind {
    OPT_FLAG, /* nothing */
    OPT_TEXT,
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
    OPT_PERSONA, /* a role that the model takes on; OPT_ROLE is that of a message */
    OPT_TIME,    /* clock_parse_when */
    OPT_GROUP,   /* what is counted by: stats_by_name */
    OPT_CHOICE,  /* one of the words in `meta`, `this|that` */
};

struct opt {
    int key; /* the letter of the short form, or OPT_LONG + n when there is none; 0 ends a table */
    const char *name; /* of the long form */
    enum opt_kind kind;
    const char *meta; /* what the argument is called in help; NULL for flags */
    const char *help;
};

#define OPT_LONG 256
/* Keys of the common options. A program's own entry with one of them, and the common name, gives
 * the option other words in that program; its meaning stays. One that takes an argument is given by
 * opt_next, too, so that it can be repeated. */
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
    const char *purpose;  /* completes "NAME - " */
    const char *operands; /* as in the synopsis: "[PROMPT…]"; of OPT_CHOICE "[THIS|THAT]" */
    enum opt_kind operand_kind;
    const struct opt *options;
};

enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct opt_common {
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

/* The version of the suite, `0.1.0`. */
const char *opt_version(void);

/* Names the tool in messages (die_start), too: the first call of every main. */
void opt_start(struct opt_parser *p, const struct program *program, int argc, char **argv);
/* The key of the next option of the program's own table, its argument (part of argv) in *value; 0
 * when there are no more. Prints --help and --version and exits; a wrong option ends the program
 * with exit code 2. */
int opt_next(struct opt_parser *p, char **value);
/* What is left once opt_next gave 0: operands[0 … *count-1], borrowed from argv. */
char **opt_operands(struct opt_parser *p, size_t *count);

/* Arguments with a meaning; a wrong one ends the program with exit code 2, naming the option. */
size_t opt_count(const char *option, const char *value); /* `all` or 1, 2, … ; all is (size_t)-1 */
unsigned opt_number(const char *option, const char *value);   /* 0, 1, 2, … */
long opt_milliseconds(const char *option, const char *value); /* `90`, `30s`, `5m`; `0` for none */
/* A time as clock_parse_when reads it, at `now` (µs): its first and its last microsecond. */
void opt_when(const char *option, const char *value, int64_t now, int64_t *first, int64_t *last);

/* Bytes: `500000`, `500k`, `10M`, `2G`, powers of 1024; a `B` or `iB` behind the letter is fine. */
uint64_t opt_size(const char *option, const char *value);

/* ---- nearest ---- */

/*
 * nearest - the name that a mistyped word could mean, for "did you mean".
 *
 * The caller offers every possible name; the most similar one is kept.
 */
struct nearest {
    const char *typed; /* set by the caller; borrowed */
    const char *name;  /* the most similar name offered, borrowed; NULL if all differ too much */
    size_t far;        /* private */
};

/* Offers one name. About a third of its letters may differ, or be swapped with their neighbour. A
 * name that contains the typed word, or is contained in it, counts only if no other is similar. */
void nearest_offer(struct nearest *n, const char *name);

#endif
