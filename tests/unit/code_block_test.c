#include "chathist/chat/markdown.h"

#include "test.h"

/* NULL: there is none. */
static void check(const char *text, const char *want, int line)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    bool found = code_block_first(str_of(text), &out);

    test_check_str(found ? buf_c(&out) : NULL, want, text, __FILE__, line);
    buf_release(&out);
}

#define BLOCK(text, want) check(text, want, __LINE__)

TEST(none)
{
    BLOCK("", NULL);
    BLOCK("text `code` more\n", NULL);
    BLOCK("``\nno\n``\n", NULL);
    BLOCK("~~\nno\n~~\n", NULL);
    BLOCK("a ``` b\n", NULL);
    BLOCK("``` code in a line ```\n", NULL);
}

TEST(the_first_one)
{
    BLOCK("```\na\n```\n", "a\n");
    BLOCK("Say:\n\n```sh\necho a\n\necho b\n```\n\nor\n\n```sh\necho c\n```\n",
          "echo a\n\necho b\n");
    BLOCK("~~~ {.c #x}\nint `x`;\n~~~", "int `x`;\n");
    BLOCK("``` not `one`\ntext\n```\nin\n```\n", "in\n");
    BLOCK("```a.c\n```\n", "");
    BLOCK("```\n\n```\n", "\n");
}

TEST(fences_of_other_lengths_and_kinds)
{
    BLOCK("````md\n```c\nx\n```\n````\n", "```c\nx\n```\n");
    BLOCK("```\n~~~\n``\n`````  \nrest\n", "~~~\n``\n");
    BLOCK("```\n``` x\n```\n", "``` x\n");
    BLOCK("~~~~\n~~~\n```\n~~~~\n", "~~~\n```\n");
}

TEST(indentation_goes)
{
    BLOCK("1. Do:\n\n   ```sh\n   a\n     b\n  c\n   ```\n", "a\n  b\nc\n");
    BLOCK("\t```\n\ta\n\t```\n", "a\n");
}

TEST(without_an_end)
{
    BLOCK("```sh\na\nb", "a\nb\n");
    BLOCK("```sh\na\nb\n", "a\nb\n");
    BLOCK("```sh\n", "");
    BLOCK("```sh", "");
}

TEST(line_ends)
{
    BLOCK("```sh\r\na\r\n```\r\nrest\r\n", "a\r\n");
}
