/*
 * export_jsonl - the stored lines, byte for byte.
 */
#ifndef CHATHIST_PORT_EXPORT_JSONL_H
#define CHATHIST_PORT_EXPORT_JSONL_H

#include "port/export.h"

extern const struct export_format export_jsonl;

#endif
