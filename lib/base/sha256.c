#include "chathist/base/sha256.h"

#include <sys/types.h>

#include <sha2.h>

_Static_assert(SHA256_TEXT == SHA256_DIGEST_STRING_LENGTH, "a text has room for the hash");

void sha256_text(struct str bytes, char text[static SHA256_TEXT])
{
    SHA256Data((const uint8_t *)bytes.p, bytes.n, text);
}
