/*
 * folder - a folder of hist-sync for the fuzz targets that read what another machine wrote there.
 * `good` has a line; the target writes the files of `evil`.
 */
#ifndef CHATHIST_FUZZ_FOLDER_H
#define CHATHIST_FUZZ_FOLDER_H

#include <ftw.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "chathist/base/checksum.h"
#include "chathist/sync/sync.h"
#include "scratch.h"

#define GOOD_LINE                                                                                  \
    "{\"id\":\"good\",\"session_id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000000+00:00\","    \
    "\"role\":\"user\",\"content\":\"good\"}\n"

static char *folder_path; /* of the folder; NULL: not made yet */

static int folder_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static inline void folder_remove(void)
{
    nftw(scratch_dir, folder_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Returns the checksum by which hist-sync names a segment with these lines. */
static inline uint64_t folder_digest(enum fact_kind kind, struct str text)
{
    const char *end;
    uint64_t all = 0;

    for (; text.n > 0 && (end = memchr(text.p, '\n', text.n));
         text.n -= (size_t)(end + 1 - text.p), text.p = end + 1) {
        uint64_t digest = merge_digest_of(kind, (struct str){text.p, (size_t)(end - text.p)});

        all = checksum_words(&digest, 1, all);
    }
    return all;
}

/* Writes a file of a machine. */
static inline void folder_write(const char *machine, const char *name, struct str text)
{
    struct buf path = BUF_INIT(BUF_SMALL);

    buf_addf(&path, "%s/%s/n/%s", folder_path, machine, name);
    scratch_write(buf_c(&path), text);
    buf_release(&path);
}

/* Writes a segment, and an index with it alone. */
static inline void folder_write_segment(const char *machine, enum fact_kind kind, struct str text)
{
    struct buf name = BUF_INIT(BUF_SMALL), index = BUF_INIT(BUF_SMALL);

    buf_addf(&name, "%s-%016" PRIx64 ".jsonl", kind == FACT_LINE ? "lines" : "deleted",
             folder_digest(kind, text));
    buf_addf(&index, "hist-sync 2 n 0123456789abcdef\n%s %zu\n", buf_c(&name), text.n);
    folder_write(machine, buf_c(&name), text);
    folder_write(machine, "index", buf_str(&index));
    buf_release(&name);
    buf_release(&index);
}

/* Makes the folder, or makes it anew. */
static inline void folder_make(void)
{
    static const char *const dirs[] = {"", "/good", "/good/n", "/evil", "/evil/n"};

    if (folder_path) {
        nftw(folder_path, folder_remove_one, 8, FTW_DEPTH | FTW_PHYS);
    } else {
        folder_path = scratch_path("folder");
        atexit(folder_remove);
    }
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        struct buf path = BUF_INIT(BUF_SMALL);

        buf_addf(&path, "%s%s", folder_path, dirs[i]);
        demand(mkdir(buf_c(&path), 0700) == 0);
        buf_release(&path);
    }
    folder_write_segment("good", FACT_LINE, STR(GOOD_LINE));
}

/* Opens the history `h` of the scratch directory, and begins a job for it. */
static inline void folder_open(struct history *h, struct sync_job *job, const char *place)
{
    char *path = scratch_path("h");
    struct locate_from from = {
        .explicit_file = path, .cwd = scratch_dir, .state_home = scratch_dir};

    demand(locate(h, &from, NULL) == 0);
    h->sync = false;
    *job = (struct sync_job){
        .history = h, .name = "n", .place = place, .options = {.accept_deletions = true}};
    free(path);
}

/* Ends it with this result. */
static inline void folder_close(struct history *h, int result, struct err *e)
{
    demand(result == 0 || err_text(e)[0] != '\0');
    err_release(e);
    history_release(h);
}

/* Synchronises that history with the folder. Returns what sync_dir returns. */
static inline int folder_sync(bool dry_run, struct merge_count *count)
{
    struct err e = ERR_INIT;
    struct history h;
    struct sync_job job;
    int result;

    folder_open(&h, &job, folder_path);
    job.options.dry_run = dry_run;
    result = sync_dir(&job, &e);
    *count = job.count;
    folder_close(&h, result, &e);
    return result;
}

#endif
