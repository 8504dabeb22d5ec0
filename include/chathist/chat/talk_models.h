/*
 * talk_models - which models there are to talk with, and a change to another one.
 */
#ifndef CHATHIST_CHAT_TALK_MODELS_H
#define CHATHIST_CHAT_TALK_MODELS_H

#include "chathist/base/err.h"
#include "chathist/chat/talk.h"
#include "chathist/llm/http.h"
#include "chathist/llm/models.h"

/* Looks once more for the model when there was no server to ask for it: the next turn knows. */
void talk_seek_model(struct talk *t);
/* Asks another model from now on, of the present provider unless `name` has one; gets its
 * key, which may take the terminal. -1: everything stays as it was; ERR_SIGNAL as key_fetch. */
int talk_change_model(struct talk *t, const char *name, struct err *e);
/* The models of the server, which is given `limits`. The caller releases the list. */
int talk_load_models(struct talk *t, const struct http_limits *limits, struct model_list *list,
                     struct err *e);
/* chat --models: gives the exit code. */
int talk_list_models(struct talk *t);

#endif
