/*
 * trust - which lines of a history this account stored, and which directories hold histories.
 *
 * The file `owner` beside a history has a line for each account that stores there, its mark: the
 * file that is the history, its size when the account first stored something in it, the sessions
 * that the account has named since, and an HMAC of these with the account's token, a random text in
 * `${state_home}/chathist/token` (chathist(5), "Trust"). An unpacked archive cannot contain one.
 * The lines of other accounts are kept byte for byte.
 *
 * The register `${state_home}/chathist/histories` lists the directories in which the account has
 * stored something, so that programs can look at all of them. It holds JSON lines
 * `{"path":"/abs/.git/aicoder"}`, appended under a lock. Being listed does not make a directory
 * trusted.
 */
#ifndef CHATHIST_HISTORY_TRUST_H
#define CHATHIST_HISTORY_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/append.h"
#include "chathist/history/owner_mark.h"

/* The name of the file of the marks. */
#define TRUST_OWNER "owner"

#define MARK_INIT                                                                                  \
    {                                                                                              \
        .named = BUF_INIT(BUF_LINE)                                                                \
    }

/* Sets the file of the mark, and nothing else. Returns 0, or -1 with errno set. */
int mark_set_file(struct owner_mark *m, int fd);

enum mark_found {
    MARK_NONE,
    MARK_ELSEWHERE, /* the account has a mark there, of another file: this one is a copy, or new */
    MARK_OLD,       /* the mark of an earlier version: the token itself */
    MARK_FOUND,
};

/* Looks for the account's mark of the file that is set in *m. Sets m->from and m->named if the
 * result is MARK_FOUND, or MARK_OLD, which is a mark from offset 0. `token_path` may be NULL.
 * `owner` and the token must be regular files of the user with one name, which others cannot write:
 * otherwise the result is MARK_NONE. Returns an enum mark_found, or -1 with *e set if the token
 * cannot be read. */
int mark_find(struct owner_mark *m, int dir, const char *owner_path, const char *token_path,
              struct err *e);
/* Makes the token if it is missing. Returns 1; 0 with *e set if none can be made; -1 with *e set if
 * there is one that cannot be used. */
int mark_token(const char *path, struct append_wait *wait, struct err *e);
/* Writes `count` marks in the place of all those of this account; makes the token if it is missing.
 * The caller holds the lock of the history. Returns 1; 0 with *e set if no token can be made; -1
 * with *e set if there is one that cannot be used, or `owner` cannot be written. */
int mark_write(const struct owner_mark *marks, size_t count, int dir, const char *owner_path,
               const char *token_path, struct append_wait *wait, struct err *e);
/* Adds the id of a session, unless it is there. */
void mark_name(struct owner_mark *m, struct str id);
bool mark_has_named(const struct owner_mark *m, struct str id);

/* Lists a directory, unless it is listed. Makes the register, and the directories above it (0700),
 * if they are missing. Returns 0, or -1 with *e set. */
int register_add(const char *register_path, const char *dir, struct append_wait *wait,
                 struct err *e);
/* Calls `found` for each listed directory, in the order in which they were added; not all of them
 * need exist. A missing register lists none. Returns 0, or -1 with *e set. */
int register_each(const char *register_path, void (*found)(void *arg, const char *dir), void *arg,
                  struct err *e);

#endif
