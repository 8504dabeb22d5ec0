#include "chathist/llm/attachment.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"

_Static_assert(ATTACHMENT_SHA256 == 2 * SHA256_DIGEST_LENGTH + 1, "a text has room for the hash");

const char *attachment_type(struct str bytes)
{
    if (str_starts(bytes, STR("\x89PNG\r\n\x1a\n")))
        return "image/png";
    if (str_starts(bytes, STR("\xff\xd8\xff")))
        return "image/jpeg";
    if (str_starts(bytes, STR("GIF87a")) || str_starts(bytes, STR("GIF89a")))
        return "image/gif";
    if (bytes.n >= 12 && str_starts(bytes, STR("RIFF")) && memcmp(bytes.p + 8, "WEBP", 4) == 0)
        return "image/webp";
    if (str_starts(bytes, STR("%PDF-"))) /* ISO 32000-1, 7.5.2 */
        return "application/pdf";
    return NULL;
}

int attachment_list_add(struct attachment_list *l, const char *type, const char *name,
                        struct str bytes, struct err *e)
{
    struct buf base64 = BUF_INIT(SIZE_MAX);
    unsigned char hash[SHA256_DIGEST_LENGTH];
    struct attachment *a;

    if (bytes.n > ATTACHMENT_MAX)
        return err_set(e, ERR_USAGE, "it is over %zu MiB", ATTACHMENT_MAX >> 20);
    if (bytes.n > ATTACHMENTS_MAX - l->bytes)
        return err_set(e, ERR_USAGE, "the attachments are over %zu MiB together",
                       ATTACHMENTS_MAX >> 20);
    /* A broken openssl.cnf can take it away. */
    if (!SHA256((const unsigned char *)(bytes.n > 0 ? bytes.p : ""), bytes.n, hash))
        return err_set(e, ERR_FAILURE, "libcrypto has no SHA-256");
    buf_add_base64(&base64, bytes);
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof *l->at);
    a = &l->at[l->count++];
    *a = (struct attachment){type, buf_detach(&base64), mem_text(name), bytes.n, ""};
    for (size_t i = 0; i < sizeof hash; i++)
        snprintf(&a->sha256[2 * i], 3, "%02x", hash[i]);
    l->bytes += bytes.n;
    return 0;
}

bool attachment_decode(struct str base64, struct buf *out)
{
    struct buf padded = BUF_INIT(SIZE_MAX);
    char *room = NULL;
    int n = 0;

    /* Some programs leave out the padding. */
    base64 = str_trim(base64);
    while (str_ends(base64, STR("=")))
        base64.n--;
    if (base64.n > 0 && base64.n / 4 * 3 <= ATTACHMENTS_MAX) {
        buf_add_str(&padded, base64);
        while (padded.len % 4 != 0)
            buf_add_byte(&padded, '=');
        room = buf_room(out, padded.len / 4 * 3);
    }
    if (room)
        n = EVP_DecodeBlock((unsigned char *)room, (const unsigned char *)padded.data,
                            (int)padded.len);
    if (n > 0)
        buf_grew(out, base64.n * 3 / 4); /* n counts the padding, too */
    buf_release(&padded);
    return n > 0;
}

void attachment_list_release(struct attachment_list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->at[i].base64);
        free(l->at[i].name);
    }
    free(l->at);
    *l = (struct attachment_list){0};
}

void attachment_list_json(const struct attachment_list *l, struct buf *out)
{
    buf_add_byte(out, '[');
    for (size_t i = 0; i < l->count; i++) {
        const struct attachment *a = &l->at[i];

        buf_add_c(out, i > 0 ? ",{" : "{");
        json_add_member(out, "name", str_of(a->name));
        json_add_member(out, "type", str_of(a->type));
        json_add_member_int(out, "bytes", (long long)a->bytes);
        json_add_member(out, "sha256", str_of(a->sha256));
        buf_add_byte(out, '}');
    }
    buf_add_byte(out, ']');
}
