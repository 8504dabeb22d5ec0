/*
 * The other side of hist-sync over ssh, of any bytes: the client of a server if the first byte is
 * odd, else the server of a client. Whatever it sends, the history has messages only, and those
 * that it had, unless they were deleted.
 */
#include <stdint.h>

#include "chathist/base/process.h"
#include "chathist/history/message.h"
#include "folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Talks to a peer that says `input`, which a pipe need not have room for. */
static void talk(bool serve, struct str input)
{
    char *said = scratch_path("state");
    struct err e = ERR_INIT;
    struct history h;
    struct sync_job job;
    int out[2], in, result;

    folder_open(&h, &job, "ssh://there");
    job.silence_most = 100;
    scratch_write(said, input);
    in = open(said, O_RDONLY | O_CLOEXEC);
    demand(in >= 0 && pipe_open(out) == 0);
    result = serve ? sync_serve(&job, in, out[1], &e) : sync_connected(&job, in, out[1], &e);
    close(in);
    close(out[0]);
    close(out[1]);
    folder_close(&h, result, &e);
    free(said);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"h.deleted", "h.session"};
    struct message m = MESSAGE_INIT;
    struct buf history, deleted;
    struct str rest;
    char *path;

    if (size == 0)
        return 0;
    if (scratch_dir[0] == '\0')
        atexit(folder_remove);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        path = scratch_path(names[i]);
        unlink(path);
        free(path);
    }
    path = scratch_path("h");
    scratch_write(path, STR(GOOD_LINE));
    talk(data[0] % 2 == 1, (struct str){(const char *)data + 1, size - 1});
    history = scratch_read(path);
    free(path);
    path = scratch_path("h.deleted");
    deleted = scratch_read(path);
    demand(deleted.len > 0 || str_starts(buf_str(&history), STR(GOOD_LINE)));
    for (rest = buf_str(&history); rest.n > 0;)
        demand(message_parse(&m, str_cut(&rest, '\n')));
    message_release(&m);
    buf_release(&history);
    buf_release(&deleted);
    free(path);
    return 0;
}
