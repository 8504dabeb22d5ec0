#include "chathist/llm/image.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/base64.h"
#include "chathist/base/mem.h"

const char *image_type(struct str bytes)
{
    if (str_starts(bytes, STR("\x89PNG\r\n\x1a\n")))
        return "image/png";
    if (str_starts(bytes, STR("\xff\xd8\xff")))
        return "image/jpeg";
    if (str_starts(bytes, STR("GIF87a")) || str_starts(bytes, STR("GIF89a")))
        return "image/gif";
    if (bytes.n >= 12 && str_starts(bytes, STR("RIFF")) && memcmp(bytes.p + 8, "WEBP", 4) == 0)
        return "image/webp";
    return NULL;
}

int image_list_add(struct image_list *l, const char *type, struct str bytes, struct err *e)
{
    struct buf base64 = BUF_INIT(SIZE_MAX);

    if (bytes.n > IMAGE_MAX)
        return err_set(e, ERR_USAGE, "the image is over %zu MiB", IMAGE_MAX >> 20);
    if (bytes.n > IMAGES_MAX - l->bytes)
        return err_set(e, ERR_USAGE, "the images are over %zu MiB together", IMAGES_MAX >> 20);
    base64_add(&base64, bytes);
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof *l->at);
    l->at[l->count++] = (struct image){type, buf_detach(&base64)};
    l->bytes += bytes.n;
    return 0;
}

void image_list_release(struct image_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->at[i].base64);
    free(l->at);
    *l = (struct image_list){0};
}
