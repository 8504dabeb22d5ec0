/*
 * export_txt - a conversation as plain text: as hist-show prints it, with a head for each session.
 */
#ifndef CHATHIST_CONVERT_EXPORT_TXT_H
#define CHATHIST_CONVERT_EXPORT_TXT_H

#include "chathist/convert/export.h"

extern const struct export_format export_txt;

#endif
