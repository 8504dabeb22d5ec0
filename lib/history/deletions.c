#include "chathist/history/deletions.h"

#include <string.h>

#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/path.h"
#include "chathist/history/store.h"

char *deletions_path(const char *history_path)
{
    return path_with_suffix(history_path, HISTORY_DELETED);
}

void deletions_add(struct buf *out, struct str session, struct str id, bool waits)
{
    buf_add_byte(out, '{');
    json_add_member(out, "session_id", session);
    json_add_member(out, "id", id);
    buf_add_c(out, waits ? ",\"waits\":true}\n" : "}\n");
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

bool deletions_next(struct str *rest, struct buf *session, struct buf *id, bool *waits)
{
    const char *end;

    while (rest->n > 0 && (end = memchr(rest->p, '\n', rest->n))) {
        struct str line = {rest->p, (size_t)(end - rest->p)};

        *rest = str_skip(*rest, line.n + 1);
        if (deletion_parse(line, session, id)) {
            *waits = json_is_true(json_get(line, "waits"));
            return true;
        }
    }
    return false;
}
