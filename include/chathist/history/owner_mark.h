/*
 * owner_mark - which lines of a history an account stored, as its line in the file `owner` says
 * (chathist(5), "Trust").
 */
#ifndef CHATHIST_HISTORY_OWNER_MARK_H
#define CHATHIST_HISTORY_OWNER_MARK_H

#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"

struct owner_mark {
    /* The file, all 0 if it does not exist: its inode, and when it was made, because another file
     * may have the inode later (system_birth). */
    uint64_t inode;
    int64_t born;
    off_t from;       /* its size when the account first stored something there */
    struct buf named; /* the ids of the sessions that the account has named, each with a newline */
};

#endif
