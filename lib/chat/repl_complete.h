/*
 * repl_complete - what TAB offers in the interactive chat: commands, and by what a command takes
 * sessions, models or files.
 */
#ifndef CHATHIST_CHAT_REPL_COMPLETE_H
#define CHATHIST_CHAT_REPL_COMPLETE_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chat/line.h"
#include "chat/dialogue.h"
#include "chathist/llm/models.h"

struct repl_complete {
    struct dialogue *dialogue;
    struct model_list models; /* of the server below, once they were asked for */
    const struct provider *provider;
};

/* For struct line_setup, with a struct repl_complete. */
void repl_complete(void *arg, struct str before, struct line_words *words);
/* The models of the present server, asked for at most once; a signal ends the wait. -1: borrowed
 * from c is an empty list. */
int repl_complete_models(struct repl_complete *c, const struct http_limits *limits, struct err *e);
void repl_complete_release(struct repl_complete *c);

/* `~/x` in the user's home. The caller frees it. */
char *repl_file_name(const struct dialogue *d, struct str name);

#endif
