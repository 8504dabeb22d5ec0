/*
 * image - images that go with the prompt of a turn. They are sent and not stored.
 */
#ifndef CHATHIST_LLM_IMAGE_H
#define CHATHIST_LLM_IMAGE_H

#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* The most that one of them, and all of a turn, may be. Servers have bounds of their own, most of
 * them lower (Anthropic: 5 MB each). */
#define IMAGE_MAX ((size_t)20 << 20)
#define IMAGES_MAX ((size_t)64 << 20)

struct image {
    const char *type; /* media type */
    char *base64;     /* owned */
};

struct image_list {
    struct image *at;
    size_t count, cap;
    size_t bytes; /* of all of them, before base64 */
};

/* The media type that the first bytes tell, of those that every provider takes: PNG, JPEG, GIF,
 * WebP (their specifications); NULL: none of them. */
const char *image_type(struct str bytes);
/* Adds one of that type. -1 (ERR_USAGE): over IMAGE_MAX, or all together over IMAGES_MAX. */
int image_list_add(struct image_list *l, const char *type, struct str bytes, struct err *e);
void image_list_release(struct image_list *l);

#endif
