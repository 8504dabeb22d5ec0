#include "cli/line_keys.h"

#include "base/utf8.h"

#include "test.h"

static void take(struct line_keys *k, struct buf *out)
{
    enum line_key key;
    int32_t cp;

    while ((key = line_keys_next(k, &cp)) != LINE_KEY_NONE) {
        if (key == LINE_KEY_PASTE)
            buf_addf(out, "{%s}", buf_c(&k->pasted));
        else
            buf_addf(out, cp < 0x80 ? "<%d>" : "<U+%04X>", (int)cp);
    }
}

static void check(struct str typed, const char *want, int line)
{
    struct line_keys k = LINE_KEYS_INIT;
    struct buf out = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < typed.n; i++) {
        line_keys_feed(&k, typed.p[i]);
        take(&k, &out);
    }
    test_check_str(buf_c(&out), want, want, __FILE__, line);
    buf_release(&out);
    buf_release(&k.pasted);
}

#define TYPED(text, want) check(STR(text), want, __LINE__)

TEST(characters)
{
    TYPED("a\r\x03", "<97><13><3>");
    TYPED("\xc3\xa9\xe4\xbd\xa0", "<U+00E9><U+4F60>");
    TYPED("\xff\xe4\xbd"
          "b",
          "<-1><-1><98>");
    TYPED("\0", "<0>");
}

TEST(escape_sequences_are_not_pastes)
{
    TYPED("\033[A", "<27><91><65>");
    TYPED("\033[20x", "<27><91><50><48><120>");
    TYPED("\033\033[A", "<27><27><91><65>");
    TYPED("\033\r", "<27><13>");
}

TEST(pastes)
{
    TYPED("\033[200~a\rb\x03\033[201~c", "{a\nb\x03}<99>");
    TYPED("\033[200~\r\na\r\rb\n\r\n\n\033[201~", "{\na\n\nb\n\n\n}");
    TYPED("\033[200~\033[201~", "{}");
    TYPED("\033[200~\033[20\033[201\033\033[201~", "{\033[20\033[201\033}");
    TYPED("\033\033[200~x\033[201~", "<27>{x}");
    TYPED("\033[200~a\033[201~\033[200~b\033[201~", "{a}{b}");
}

TEST(a_key_that_could_begin_a_paste)
{
    struct line_keys k = LINE_KEYS_INIT;
    struct buf out = BUF_INIT(BUF_SMALL);

    CHECK(!line_keys_waits(&k));
    line_keys_feed(&k, '\033');
    take(&k, &out);
    CHECK_STR(buf_c(&out), "");
    CHECK(line_keys_waits(&k));
    line_keys_give_up(&k);
    take(&k, &out);
    CHECK_STR(buf_c(&out), "<27>");
    CHECK(!line_keys_waits(&k));
    line_keys_feed(&k, '\033');
    line_keys_drop(&k);
    CHECK(!line_keys_waits(&k));
    buf_release(&out);
    buf_release(&k.pasted);
}
