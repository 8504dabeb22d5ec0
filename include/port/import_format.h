/*
 * import_format - the formats that can be imported, and which of them a file is in.
 */
#ifndef CHATHIST_PORT_IMPORT_FORMAT_H
#define CHATHIST_PORT_IMPORT_FORMAT_H

#include "port/import_message.h"

struct import_format {
    const char *name;
    /* Does a file that begins like this have this format? */
    bool (*is)(struct str head);
    /* Gives all messages of the source to the sink, the sessions used last at the end: 0, -1. */
    int (*read)(struct source *s, struct import_sink *sink, struct err *e);
};

/* All of them; an entry without a name ends the table. */
extern const struct import_format import_formats[];

/* NULL when there is none of that name. */
const struct import_format *import_format_named(const char *name);
/* NULL when it is none of them. */
const struct import_format *import_format_of(struct str head);
/* Adds the names, separated by commas. */
void import_format_names(struct buf *out);

#endif
