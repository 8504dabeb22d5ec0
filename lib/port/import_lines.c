#include "port/import_lines.h"

int import_lines(struct source *s, struct import_sink *sink, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct str line;
    int got;

    while ((got = source_line(s, &line, e)) > 0) {
        if (line.p && str_trim(line).n == 0)
            continue;
        if (!line.p)
            sink->bad(sink->arg, s->number, "longer than 64 MiB");
        else if (message_parse(&m, line))
            got = sink->line(sink->arg, m.line, m.id, e) < 0 ? -1 : got;
        else if (s->terminated)
            sink->bad(sink->arg, s->number, message_defect(line));
        if (got < 0)
            break;
    }
    message_release(&m);
    return got;
}
