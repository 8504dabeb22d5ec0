/*
 * chat_args - the command line of chat: its option table and the arguments.
 */
#ifndef CHATHIST_CHAT_CHAT_ARGS_H
#define CHATHIST_CHAT_CHAT_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/cli/config.h"
#include "chathist/cli/options.h"
#include "chathist/history/session.h"
#include "chathist/llm/http.h"
#include "chathist/llm/provider.h"

/* The name of standard input in chat_args.files (`-f -`); it must not be empty. */
#define ATTACH_STDIN "/dev/stdin"

/* Strings are borrowed from argv, arrays are owned. */
struct chat_args {
    const char *self; /* argv[0] */
    struct opt_common common;
    uint64_t given; /* the options that were given, a bit for each row of the table */
    struct resume_request resume;
    const char
        *setting[SETTING_COUNT]; /* flags, which override the configuration; NULL: not given */
    const char *preset
        [SETTING_COUNT];  /* settings of -t and --persona (chat/template), which flags override */
    const char *messages; /* NULL: not given */
    const char *system;   /* NULL: not given */
    const char *title;    /* the title of the session; NULL: not given */
    const char *output;   /* the file for images of the answer; NULL: not given */
    const char *schema;   /* a file's name or a line of fields; NULL: not given */
    const char *template_name, *persona;     /* NULL: not given */
    const char *save;                        /* the name of a template to store; NULL: not given */
    struct arg_list vars, files, tools, mcp; /* each of vars is NAME=VALUE */
    struct ask_option *options;
    size_t options_count, options_cap;
    struct ask_header *headers; /* the headers of --header */
    size_t headers_count, headers_cap;
    struct arg_list hosted; /* the names of -T @NAME, without the @ */
    struct arg_list chosen; /* the values of -T SERVER:TOOL */
    char **words;
    size_t words_count;
    bool stream, read_stdin, store, dry_run, models, verbose, regenerate, edit, extract, usage, yes;
    bool once; /* no earlier message is sent, nothing is stored */
    bool insecure, no_markdown, cached, embed;
};

/* Reads the command line. An error ends the program, as do --help and --version. */
void chat_args_parse(struct chat_args *a, int argc, char **argv);
/* Returns whether --json is among the options. It can be called before chat_args_parse. */
bool chat_args_want_json(int argc, char **argv);
/* Adds an option of a request. The strings are borrowed. */
void chat_args_add_option(struct chat_args *a, struct ask_option option);
/* Returns whether --messages reads standard input. */
bool chat_args_messages_stdin(const struct chat_args *a);
void chat_args_release(struct chat_args *a);

#endif
