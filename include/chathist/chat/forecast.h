/*
 * forecast - what the next turn of chat would send of a session, before its prompt.
 *
 * By the rules of the context (llm/context) and the settings that chat goes by; what only a command
 * line of chat can say (a template, a system prompt) is not known here.
 */
#ifndef CHATHIST_CHAT_FORECAST_H
#define CHATHIST_CHAT_FORECAST_H

#include <stddef.h>

#include "chathist/base/err.h"
#include "chathist/cli/config.h"
#include "chathist/history/locate.h"

struct forecast {
    size_t messages; /* the system prompt is one of them */
    size_t tokens;   /* about: there is one for every four bytes in English text */
};

/* 0; -1: the history cannot be read, or a setting has no meaning. */
int forecast_session(struct forecast *f, const struct config *c, const struct history *h,
                     struct str id, struct err *e);

#endif
