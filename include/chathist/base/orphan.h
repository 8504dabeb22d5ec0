/*
 * orphan - ends processes that children leave running, also those that left their process group and
 * session.
 *
 * On Linux, a process whose parent ends becomes the child of its nearest ancestor that asked for
 * this (PR_SET_CHILD_SUBREAPER in prctl(2)). Between orphans_begin and orphans_end this process is
 * that ancestor. Only children of this process are ever signalled. Other systems have no such
 * request, so there such processes keep running.
 */
#ifndef CHATHIST_BASE_ORPHAN_H
#define CHATHIST_BASE_ORPHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct orphans {
    /* private */
    pid_t *known; /* the children from before orphans_begin, which are left alone */
    size_t count, cap;
    bool listed; /* were they read? */
    bool was_reaper;
};

/* Adopts processes from now on. Children that exist already, and what they start, are not affected
 * unless a process of theirs is orphaned before orphans_end. */
void orphans_begin(struct orphans *o);
/* Kills every child that is not from before orphans_begin, then the children that these leave, and
 * so on; call it when all children started since then have ended. Waits for a second at most, and
 * adopts no more processes afterwards. */
void orphans_end(struct orphans *o);

#endif
