/*
 * like - vectors of texts by the model of the configuration, for hist-search --like.
 *
 * `embed.model` names the model, as CHAT_MODEL does, and `embed.base_url` its server. Nothing is sent
 * without the former. `chat --embed` sends the texts, so that only chat is linked with libcurl and
 * reads keys. Secrets in them are replaced before (convert/redact.h).
 */
#ifndef CHATHIST_CLI_LIKE_H
#define CHATHIST_CLI_LIKE_H

#include "chathist/base/process.h"
#include "chathist/cli/choose.h"
#include "chathist/convert/redact.h"
#include "chathist/embed/vectors.h"

struct like {
    struct vectors_model model;
    /* private */
    struct words argv;
    struct redactor *redactor;
    struct buf line; /* the text */
    int cancel_fd;
};

/* Makes the vector of a text, which the caller frees. From now on signals end the program only while
 * a vector is made and in like_close. Returns 0, or -1 with *e set; call like_close in both cases. Ends the
 * program if no model is configured. */
int like_open(struct like *l, const struct choice *c, struct str text, struct vector *v,
              struct err *e);
void like_close(struct like *l);

#endif
