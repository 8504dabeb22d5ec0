/*
 * banned.h: functions that this project does not call, turned into compile errors.
 *
 * The build includes this file before every source of lib/ and cmd/; no file includes it itself. It
 * declares nothing. The system headers come first because a poisoned name may not occur after this,
 * not even in a declaration.
 */
#ifndef CHATHIST_BASE_BANNED_H
#define CHATHIST_BASE_BANNED_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Some libraries define these as macros too, and poisoning a macro is a warning. */
#undef alloca
#undef isalnum
#undef isalpha
#undef isblank
#undef iscntrl
#undef isdigit
#undef isgraph
#undef islower
#undef isprint
#undef ispunct
#undef isspace
#undef isupper
#undef isxdigit
#undef strcat
#undef strcpy
#undef strncat
#undef strncpy
#undef sprintf
#undef tolower
#undef toupper
#undef vsprintf

/* No bound on what they write, or no terminator when the bound is reached: use struct buf. */
#pragma GCC poison gets sprintf strcat strcpy strncat strncpy vsprintf
#pragma GCC poison alloca

/* No report of overflow or of text that is no number: use strtol and look at its end. */
#pragma GCC poison atof atoi atol atoll

/* One static buffer for the whole process. */
#pragma GCC poison asctime ctime gmtime localtime strtok

/* A name another process can take first. */
#pragma GCC poison mktemp tempnam tmpnam

/* Undefined for a negative char and dependent on the locale: the history is bytes. */
#pragma GCC poison isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct
#pragma GCC poison isspace isupper isxdigit tolower toupper

#endif
