/*
 * import_place - into which history hist-import --scan puts a conversation with another program.
 *
 * The directory in which its first message was said decides: the history that chat would use there
 * (history/location.h). If the directory is gone, its nearest parent that exists counts; without
 * one of the user's, the user's own history is used. A session that a history of the user holds
 * already continues in that history, until import_places_move moves it.
 */
#ifndef CHATHIST_CLI_IMPORT_PLACE_H
#define CHATHIST_CLI_IMPORT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/cli/choose.h"
#include "chathist/convert/import.h"

struct import_place;

/* Something that was said in a directory: its number, and that of the history that has it. */
struct import_said {
    size_t dir;
    size_t place; /* SIZE_MAX if the directory is excluded */
    bool stored;  /* it is wanted, and was given to the history */
};

/* Zero-initialise. */
struct import_places {
    /* Set by the caller, and borrowed: */
    struct choice *choice; /* opened for this place with CHOOSE_STORE */
    bool all;              /* conversations of all histories are wanted, not only those of here */
    struct import_options options; /* of each import */
    /* Called with each error, which it releases. */
    void (*failed)(void *arg, struct err *e);
    void *arg;
    /* private */
    bool moved; /* import_places_move was called */
    struct import_place **at;
    size_t count, cap;
    struct words excluded; /* by import.exclude */
    size_t here, own;      /* the history of this place, and the user's own */
    struct hash_map cwds;  /* directory -> its number */
    size_t *homes;         /* the history of each; SIZE_MAX if it is excluded */
    size_t homes_cap;
    struct hash_map sessions;   /* session -> its number */
    struct import_said *chosen; /* for each */
    size_t chosen_cap;
    struct import_said *said; /* what the present file has, each once */
    size_t said_count, said_cap;
};

/* Finds the histories of the user. Ends the program if the register or import.exclude cannot be
 * read. */
void import_places_open(struct import_places *p);
/* For import_options: the import of the history that a session belongs to, `arg` being the places.
 * NULL if the session is not wanted. */
struct import *import_places_choose(void *arg, struct str session, struct str cwd);
/* Begins a file: nothing was said in it. */
void import_places_begin(struct import_places *p);
/* Returns whether what was said is wanted. */
bool import_places_wants(const struct import_places *p, const struct import_said *said);
/* Returns the number of a directory in `cwds` and `homes`. */
size_t import_places_dir(struct import_places *p, struct str cwd);
/* Returns how many of the sessions that were seen belong to other histories and are not wanted. */
size_t import_places_elsewhere(const struct import_places *p);
/* The file of a history after a scan. */
struct import_stored {
    struct str path;           /* borrowed */
    int64_t inode, born, size; /* born: system_birth; all are 0 without a file */
};
/* For the cache (cli/import_cache.h): describes the file of a history as it is now, and finds the
 * number of the history whose file this was: SIZE_MAX if no history has it, or if the file was replaced
 * since or became shorter. */
struct import_stored import_places_stored(const struct import_places *p, size_t number);
size_t import_places_find(const struct import_places *p, const struct import_stored *then);
/* Moves the wanted sessions that were imported into another history than their own; those of a
 * directory that is gone only out of the user's own one. The lines are on the disk in their own
 * history before the other one is rewritten, so that a program that is killed leaves them in both,
 * and the next one completes the move. *moved is the number of sessions. Returns 0, or -1 after an
 * error that was reported. */
int import_places_move(struct import_places *p, uint64_t *moved);
/* Stores the lines that wait. Then, unless the program is quiet, names the histories that hold
 * sessions of others. Returns 0, or -1 if lines could not be stored, now or before. */
int import_places_finish(struct import_places *p);
void import_places_release(struct import_places *p);

#endif
