/*
 * import_lines - histories in our own form (chathist(5)), such as hist-export writes.
 *
 * Lines are kept byte for byte, with their ids, sessions, times and what nobody knows of. They
 * stand one on a line, or in a document `{"messages":[…]}` (port/export_json), with white space or
 * without; what that adds to them goes again.
 */
#ifndef CHATHIST_PORT_IMPORT_LINES_H
#define CHATHIST_PORT_IMPORT_LINES_H

#include "port/import_message.h"

/* Where the array of such a document begins; 0: this is none. Its elements are not looked at. */
size_t import_lines_document(struct str head);
int import_lines(struct source *s, struct import_sink *sink, struct err *e);

#endif
