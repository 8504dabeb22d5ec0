/*
 * import_cache - what a scan remembers of the files that it has read, so that the next one reads
 * only those that have changed.
 *
 * It is a cache (config_scan_cache): without it, a scan reads all files, and
 * the result is the same. A file is not read again if its size, time and inode are those of before, and
 * every conversation in it that is wanted is in the history in which the scan would put it. The
 * text has a line for each history, each directory in which something was said, and each file:
 *
 *     chathist-scan KEY              of the program, its importers and its options
 *     h INODE BORN SIZE PATH         the histories are numbered from 0
 *     c HISTORY DIRECTORY            and so are the directories, with the history that they have
 *     f SIZE TIME INODE SAID PATH    SAID: `-`, or DIRECTORY:HISTORY for each, with a `+` if it is
 *                                    stored there, separated by commas
 *     p OFFSET NUMBER SUM STATE      of the file before it: see import_point
 */
#ifndef CHATHIST_CLI_IMPORT_CACHE_H
#define CHATHIST_CLI_IMPORT_CACHE_H

#include "chathist/cli/import_files.h"
#include "chathist/cli/import_place.h"

struct import_cache;

/* Loads what the last scan with the same key has remembered. Both are borrowed. */
struct import_cache *import_cache_load(struct import_places *p, uint64_t key);
/* Returns whether a file need not be read, and then remembers it for the next scan. If it must be
 * read, sets the point from which: it only grew, and what was before is stored. */
bool import_cache_knows(struct import_cache *c, struct import_file *file);
/* Remembers a file that was just read, once all of its lines are stored. Of one that was changed
 * within the last minute, whose program may be writing it, only the point counts. */
void import_cache_add(struct import_cache *c, const struct import_file *file);
/* Writes what is remembered. A failure is ignored: the next scan reads more. With `all` the time of
 * the file says when all places were scanned. */
void import_cache_store(struct import_cache *c, bool all);
void import_cache_free(struct import_cache *c);

#endif
