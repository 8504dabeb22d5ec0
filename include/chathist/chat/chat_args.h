/*
 * chat_args - the command line of chat: its option table, and what it asks for.
 */
#ifndef CHATHIST_CHAT_CHAT_ARGS_H
#define CHATHIST_CHAT_CHAT_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/cli/config.h"
#include "chathist/cli/options.h"
#include "chathist/history/resume.h"
#include "chathist/llm/http.h"
#include "chathist/llm/provider.h"

/* Everything borrowed from argv but the arrays. */
struct chat_args {
    struct opt_common common;
    uint64_t given; /* which of chat's options, a bit for each row of their table */
    struct resume_wish wish;
    const char *setting[SETTING_COUNT]; /* flags over the configuration; NULL: not given */
    const char *preset[SETTING_COUNT]; /* what -t and --role set (front/preset), behind the flags */
    const char *messages;              /* NULL: not given */
    const char *system;                /* NULL: not given */
    const char *schema;                /* a file's name; NULL: not given */
    const char *template_name, *role;  /* NULL: not given */
    const char *list;                  /* "templates" or "roles" are to be listed; NULL: no */
    const char **vars;                 /* NAME=VALUE */
    size_t vars_count, vars_cap;
    const char **files; /* ends with NULL; NULL when there are none */
    size_t files_count, files_cap;
    struct ask_option *options;
    size_t options_count, options_cap;
    const char **tools; /* ends with NULL; NULL when there are none */
    size_t tools_count, tools_cap;
    unsigned max_iterations;
    long tool_timeout_ms;
    const char **mcp; /* ends with NULL; NULL when there are none */
    size_t mcp_count, mcp_cap;
    struct http_limits limits;
    unsigned retries;
    char **words;
    size_t words_count;
    bool stream, read_stdin, store, dry_run, models, verbose, regenerate, edit, extract, usage, yes;
    bool once; /* no context, nothing stored */
    bool insecure, no_markdown, reasoning, cached;
};

/* Ends the program when something is wrong, or after --help and --version. */
void chat_args_parse(struct chat_args *a, int argc, char **argv);
/* Is --json among the options? To be asked before they are known to be right. */
bool chat_args_want_json(int argc, char **argv);
/* Is standard input what --messages reads? */
bool chat_args_messages_stdin(const struct chat_args *a);
void chat_args_release(struct chat_args *a);

#endif
