/*
 * A line as any writer could have made it: what is read must be inside the line, a line that is
 * refused must have a reason, and one that is accepted must keep its meaning when it is written.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/history/message.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_text(struct str a, struct str b)
{
    struct buf x = BUF_INIT(BUF_LINE), y = BUF_INIT(BUF_LINE);

    demand(str_eq(json_text(a, &x), json_text(b, &y)));
    buf_release(&x);
    buf_release(&y);
}

/* Writes what was read and reads that again. */
static void rewrite(const struct message *m)
{
    struct draft d;
    struct buf line = BUF_INIT(BUF_LINE * 2);
    struct buf once = BUF_INIT(BUF_LINE), twice = BUF_INIT(BUF_LINE);
    struct message again = MESSAGE_INIT;

    draft_init(&d);
    if (draft_from_json(&d, m->line, NULL) == 0 && draft_format(&d, &line, NULL) == 0) {
        demand(line.len > 0 && line.data[line.len - 1] == '\n');
        demand(memchr(line.data, '\n', line.len - 1) == NULL);
        demand(message_parse(&again, (struct str){line.data, line.len - 1}));
        demand(str_eq(m->id, again.id) && str_eq(m->session_id, again.session_id));
        demand(str_eq(m->timestamp, again.timestamp) && m->role == again.role);
        demand(str_eq(message_content(m, &once), message_content(&again, &twice)));
        same_text(m->field[FIELD_MODEL], again.field[FIELD_MODEL]);
        same_text(m->field[FIELD_REPLY_TO], again.field[FIELD_REPLY_TO]);
    }
    message_release(&again);
    draft_release(&d);
    buf_release(&line);
    buf_release(&once);
    buf_release(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of its exact size: the sanitizer sees a read beyond it. */
    char *bytes = malloc(size ? size : 1);
    struct str line = {bytes, size};
    struct message m = MESSAGE_INIT;

    if (!bytes)
        return 0;
    if (size)
        memcpy(bytes, data, size);

    bool valid = message_parse(&m, line);

    demand(valid == (message_defect(line) == NULL));
    if (valid) {
        demand(m.line.p >= line.p && m.line.p + m.line.n <= line.p + line.n);
        message_is_reset(&m);
        rewrite(&m);
    }
    message_release(&m);
    free(bytes);
    return 0;
}
