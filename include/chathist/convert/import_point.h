/*
 * import_point - a place in a file of JSON lines, before a prompt, from which it can be read on once it
 * has grown.
 */
#ifndef CHATHIST_CONVERT_IMPORT_POINT_H
#define CHATHIST_CONVERT_IMPORT_POINT_H

#include <stdint.h>

#include "chathist/base/buf.h"

/* Zero-initialise; the caller releases `state`. */
struct import_point {
    int64_t offset;   /* 0: there is none */
    int64_t number;   /* of records before it */
    int64_t sum;      /* of the last bytes before it */
    struct buf state; /* what these records said of the session: a JSON array */
};

#endif
