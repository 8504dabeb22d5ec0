#include "chathist/llm/context.h"

#include <stdlib.h>

#include "test.h"

TEST(the_first_bytes_tell)
{
    CHECK_STR(image_type(STR("\x89PNG\r\n\x1a\n...")), "image/png");
    CHECK_STR(image_type(STR("\xff\xd8\xff\xe0")), "image/jpeg");
    CHECK_STR(image_type(STR("GIF87a")), "image/gif");
    CHECK_STR(image_type(STR("GIF89a")), "image/gif");
    CHECK_STR(image_type(STR("RIFF\1\2\3\4WEBP")), "image/webp");
    CHECK_STR(image_type(STR("RIFF\1\2\3\4WAVE")), NULL);
    CHECK_STR(image_type(STR("RIFF\1\2\3\4WEB")), NULL);
    CHECK_STR(image_type(STR("\x89PNG\r\n\x1a")), NULL);
    CHECK_STR(image_type(STR("GIF88a")), NULL);
    CHECK_STR(image_type(STR("text")), NULL);
    CHECK_STR(image_type(STR_NONE), NULL);
}

TEST(a_list_of_them)
{
    struct image_list l = {0};
    struct err e = ERR_INIT;
    char *big = calloc(1, IMAGE_MAX + 1);

    CHECK_INT(image_list_add(&l, "image/png", STR("foo"), &e), 0);
    CHECK_INT(image_list_add(&l, "image/gif", STR("fo"), &e), 0);
    CHECK_INT(l.count, 2);
    CHECK_INT(l.bytes, 5);
    CHECK_STR(l.at[0].type, "image/png");
    CHECK_STR(l.at[0].base64, "Zm9v");
    CHECK_STR(l.at[1].base64, "Zm8=");
    CHECK_INT(image_list_add(&l, "image/png", (struct str){big, IMAGE_MAX + 1}, &e), -1);
    CHECK_INT(e.kind, ERR_USAGE);
    CHECK_STR(err_text(&e), "the image is over 20 MiB");
    for (int i = 0; i < 3; i++)
        CHECK_INT(image_list_add(&l, "image/png", (struct str){big, IMAGE_MAX}, NULL), 0);
    CHECK_INT(image_list_add(&l, "image/png", (struct str){big, IMAGE_MAX}, &e), -1);
    CHECK_STR(err_text(&e), "the images are over 64 MiB together");
    CHECK_INT(l.count, 5);
    image_list_release(&l);
    CHECK_INT(l.count, 0);
    err_release(&e);
    free(big);
}
