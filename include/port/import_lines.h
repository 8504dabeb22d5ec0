/*
 * import_lines - histories in our own form (chathist(5)), such as hist-export writes.
 *
 * Lines are kept byte for byte, with their ids, sessions, times and what nobody knows of.
 */
#ifndef CHATHIST_PORT_IMPORT_LINES_H
#define CHATHIST_PORT_IMPORT_LINES_H

#include "port/import_message.h"

int import_lines(struct source *s, struct import_sink *sink, struct err *e);

#endif
