/*
 * images - the images of an answer, each in its own file.
 *
 * With `chat -O FILE` that is FILE, and FILE with `-2`, `-3`, … before its suffix for the further
 * images of the same program. Otherwise it is `files/SHA256.SUFFIX` beside the history, whose names
 * do not follow links (chathist(5), `files_modified`).
 */
#ifndef CHATHIST_CHAT_IMAGES_H
#define CHATHIST_CHAT_IMAGES_H

#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* Writes an image, in base64, and syncs it. `out` is FILE, of which it is the nth image, from 1, or
 * NULL; then `history` is the path of the history. Sets *path to where it is and *name to what the
 * line of the history names: FILE, or the path from the directory of the history. Returns 1; 0 if
 * it is no image of a known form; or -1 with *e set. */
int image_write(struct str base64, const char *out, size_t nth, const char *history,
                struct buf *path, struct buf *name, struct err *e);

#endif
