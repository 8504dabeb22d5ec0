#include "chathist/history/deletions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/file.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/path.h"
#include "chathist/history/store.h"

char *deletions_path(const char *history_path)
{
    return path_with_suffix(history_path, HISTORY_DELETED);
}

static void begin_deletion_line(struct buf *out, struct str session, struct str id)
{
    buf_add_byte(out, '{');
    json_add_member(out, "session_id", session);
    json_add_member(out, "id", id);
}

void deletions_add(struct buf *out, struct str session, struct str id, bool waits)
{
    begin_deletion_line(out, session, id);
    buf_add_c(out, waits ? ",\"waits\":true}\n" : "}\n");
}

bool deletions_add_message(struct buf *out, const struct message *m, bool moved)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str origin = message_text(m, FIELD_ORIGIN, &scratch);

    begin_deletion_line(out, m->session_id, m->id);
    if (origin.p)
        json_add_member(out, "origin", origin);
    buf_add_c(out, moved ? ",\"moved\":true}\n" : "}\n");
    buf_release(&scratch);
    return origin.p != NULL;
}

int deletions_read(const struct history *h, struct buf *text, struct err *e)
{
    char *path = deletions_path(h->path);
    struct err why = ERR_INIT;
    int fd, result = 0, reason = 0;

    fd = file_open_regular_at(h->dir_fd, path, O_RDONLY, 0, NULL, &reason, &why);
    if (fd >= 0 && file_read_all(fd, text) < 0)
        result = err_sys(e, errno, "cannot read '%s'", path);
    else if (fd < 0 && reason != ENOENT)
        result = err_set(e, why.kind, "%s", err_text(&why));
    err_release(&why);
    file_close(fd);
    free(path);
    return result;
}

bool deletion_parse(struct str line, struct buf *session, struct buf *id)
{
    static const char *const keys[] = {"session_id", "id"};
    struct str values[2], object;

    if (!json_check(line, &object, NULL))
        return false;
    json_pick(object, keys, values, 2);
    buf_clear(session);
    buf_clear(id);
    return json_decode(values[0], session) && json_decode(values[1], id) &&
           id_session_valid(buf_str(session)) && store_id_valid(buf_str(id));
}

bool deletions_next(struct str *rest, struct buf *session, struct buf *id, struct str *line)
{
    const char *end;

    while (rest->n > 0 && (end = memchr(rest->p, '\n', rest->n))) {
        *line = (struct str){rest->p, (size_t)(end - rest->p)};
        *rest = str_skip(*rest, line->n + 1);
        if (deletion_parse(*line, session, id))
            return true;
    }
    return false;
}
