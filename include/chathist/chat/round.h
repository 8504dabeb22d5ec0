/*
 * round - the calls that an answer ends with, carried out (turn/turn):
 *
 *     round_begin   looks up each call's tool; what cannot be run has its result now
 *     round_refuse  … for the calls that somebody does not allow
 *     round_run     runs the others side by side
 *     round_store   a line for each result, in the order of the calls
 *     round_end     the context has grown by calls and results, the answer is empty again
 *
 * Nothing that goes wrong with a call is an error of the turn: the model is told.
 */
#ifndef CHATHIST_CHAT_ROUND_H
#define CHATHIST_CHAT_ROUND_H

#include "chathist/llm/tool.h"
#include "chathist/chat/turn.h"

struct round_call {
    const struct tool_call *call; /* of the answer; borrowed from it */
    struct tool_job job;          /* job.done: it has its result */
};

/* Fills t->calls from t->answer, which stays as it is until round_end. */
void round_begin(struct turn *t);
/* The call is not run; why is told to the model. */
void round_refuse(struct round_call *c, const char *why);
/* Carries out what has no result yet. -1 (ERR_SIGNAL) when it was interrupted: each call has a
 * result all the same. */
int round_run(struct turn *t, struct err *e);
/* -1 as turn_store. */
int round_store(struct turn *t, struct err *e);
/* Nothing happens when no round was begun. */
void round_end(struct turn *t);

#endif
