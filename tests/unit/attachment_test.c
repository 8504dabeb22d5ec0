#include "chathist/llm/attachment.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

TEST(the_first_bytes_tell)
{
    CHECK_STR(attachment_type(STR("\x89PNG\r\n\x1a\n...")), "image/png");
    CHECK_STR(attachment_type(STR("\xff\xd8\xff\xe0")), "image/jpeg");
    CHECK_STR(attachment_type(STR("GIF87a")), "image/gif");
    CHECK_STR(attachment_type(STR("GIF89a")), "image/gif");
    CHECK_STR(attachment_type(STR("RIFF\1\2\3\4WEBP")), "image/webp");
    CHECK_STR(attachment_type(STR("%PDF-1.7\n")), "application/pdf");
    CHECK_STR(attachment_type(STR("RIFF\1\2\3\4WAVE")), NULL);
    CHECK_STR(attachment_type(STR("RIFF\1\2\3\4WEB")), NULL);
    CHECK_STR(attachment_type(STR("\x89PNG\r\n\x1a")), NULL);
    CHECK_STR(attachment_type(STR("GIF88a")), NULL);
    CHECK_STR(attachment_type(STR("%PDF")), NULL);
    CHECK_STR(attachment_type(STR("text")), NULL);
    CHECK_STR(attachment_type(STR_NONE), NULL);
}

static void check_decoded(const char *base64, const char *want)
{
    struct buf out = BUF_INIT(BUF_LINE);

    CHECK_INT(attachment_decode(str_of(base64), &out), want != NULL);
    if (want)
        CHECK_STR(buf_c(&out), want);
    CHECK_INT(out.len, want ? strlen(want) : 0);
    buf_release(&out);
}

TEST(base64_needs_no_padding)
{
    check_decoded("YWJj", "abc");
    check_decoded("YWI=", "ab");
    check_decoded("YWI", "ab");
    check_decoded("YQ==", "a");
    check_decoded("YQ", "a");
    check_decoded("YQ==\n", "a");
    check_decoded("YW Jj", NULL);
    check_decoded("Y-_j", NULL);
    check_decoded("====", NULL);
    check_decoded("", NULL);
}

/* The hashes are those of sha256sum(1). */
TEST(a_list_of_them)
{
    struct attachment_list l = {0};
    struct buf json = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    char *big = calloc(1, ATTACHMENT_MAX + 1);

    CHECK_INT(attachment_list_add(&l, "image/png", "a \"b\".png", STR("foo"), &e), 0);
    CHECK_INT(attachment_list_add(&l, "application/pdf", "c.pdf", STR("fo"), &e), 0);
    CHECK_INT(l.count, 2);
    CHECK_INT(l.bytes, 5);
    CHECK_STR(l.at[0].type, "image/png");
    CHECK_STR(l.at[0].base64, "Zm9v");
    CHECK_STR(l.at[1].base64, "Zm8=");
    CHECK_INT(attachment_images(l.at, l.count), 1);
    attachment_list_json(&l, &json);
    CHECK_STR(buf_c(&json),
              "[{\"name\":\"a \\\"b\\\".png\",\"type\":\"image/png\",\"bytes\":3,\"sha256\":"
              "\"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\"},"
              "{\"name\":\"c.pdf\",\"type\":\"application/pdf\",\"bytes\":2,\"sha256\":"
              "\"9c3aee7110b787f0fb5f81633a36392bd277ea945d44c874a9a23601aefe20cf\"}]");
    CHECK_INT(attachment_list_add(&l, "image/png", "x", (struct str){big, ATTACHMENT_MAX + 1}, &e),
              -1);
    CHECK_INT(e.kind, ERR_USAGE);
    CHECK_STR(err_text(&e), "it is over 20 MiB");
    for (int i = 0; i < 3; i++)
        CHECK_INT(
            attachment_list_add(&l, "image/png", "x", (struct str){big, ATTACHMENT_MAX}, NULL), 0);
    CHECK_INT(attachment_list_add(&l, "image/png", "x", (struct str){big, ATTACHMENT_MAX}, &e), -1);
    CHECK_STR(err_text(&e), "the attachments are over 64 MiB together");
    CHECK_INT(l.count, 5);
    attachment_list_release(&l);
    CHECK_INT(l.count, 0);
    buf_release(&json);
    err_release(&e);
    free(big);
}
