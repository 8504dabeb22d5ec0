/*
 * attachment - an image or a PDF that is sent with the prompt of a turn.
 *
 * The history keeps its name and its SHA-256, but not its data, so that a later turn does not send
 * it again.
 */
#ifndef CHATHIST_LLM_ATTACHMENT_H
#define CHATHIST_LLM_ATTACHMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* The largest size of one attachment, and of all those of a turn. Servers have limits of their own
 * (Anthropic: 5 MB an image, 32 MB a request; OpenAI: 50 MB a file). */
#define ATTACHMENT_MAX ((size_t)20 << 20)
#define ATTACHMENTS_MAX ((size_t)64 << 20)

/* The size of a SHA-256 as hexadecimal digits, with its NUL. */
#define ATTACHMENT_SHA256 65

struct attachment {
    const char *type; /* the media type */
    char *base64;     /* owned, and so is the name */
    char *name;       /* the name of the file, without its directory */
    size_t bytes;     /* its size before base64 */
    char sha256[ATTACHMENT_SHA256];
};

struct attachment_list {
    struct attachment *at;
    size_t count, cap;
    size_t bytes; /* the bytes of all of them, before base64 */
};

/* Returns the media type that the first bytes indicate: PNG, JPEG, GIF and WebP, which every
 * provider takes, or PDF. Returns NULL for anything else. */
const char *attachment_type(struct str bytes);

static inline bool attachment_is_image(const struct attachment *a)
{
    return str_starts(str_of(a->type), STR("image/"));
}

/* Returns how many of them are images. */
static inline size_t attachment_images(const struct attachment *at, size_t count)
{
    size_t images = 0;

    for (size_t i = 0; i < count; i++)
        images += attachment_is_image(&at[i]);
    return images;
}

/* Adds an attachment of that type. Returns 0, or -1 (ERR_USAGE) if it is over ATTACHMENT_MAX or all
 * attachments together are over ATTACHMENTS_MAX. */
int attachment_list_add(struct attachment_list *l, const char *type, const char *name,
                        struct str bytes, struct err *e);
/* Adds the bytes that a text in base64 (RFC 4648 section 4) stands for. Returns false if it is not
 * base64, or too large. */
bool attachment_decode(struct str base64, struct buf *out);
void attachment_list_release(struct attachment_list *l);
/* Adds the array that the history keeps: `[{"name","type","bytes","sha256"}, ...]`. */
void attachment_list_json(const struct attachment_list *l, struct buf *out);

#endif
