/*
 * export_jsonl - the stored lines, byte for byte.
 */
#ifndef CHATHIST_CONVERT_EXPORT_JSONL_H
#define CHATHIST_CONVERT_EXPORT_JSONL_H

#include "chathist/convert/export.h"

extern const struct export_format export_jsonl;

#endif
