#include "chathist/base/sha256.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "test.h"

static void check_hash(struct str text, const char *want)
{
    struct buf hash = BUF_INIT(BUF_SMALL);

    sha256_add(&hash, text);
    CHECK_INT(hash.len, SHA256_HEX);
    CHECK_STR(buf_c(&hash), want);
    buf_release(&hash);
}

static void check_hmac(struct str key, struct str text, const char *want)
{
    struct buf hash = BUF_INIT(BUF_SMALL);

    hmac_sha256_add(&hash, key, text);
    CHECK_STR(buf_c(&hash), want);
    buf_release(&hash);
}

static void check_repeated(size_t n, const char *want)
{
    char *text = mem_zalloc(n + 1);

    memset(text, 'a', n);
    check_hash((struct str){text, n}, want);
    free(text);
}

/* The examples of FIPS 180-4, and lengths around the end of a block. */
TEST(hashes)
{
    check_hash(STR(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_hash(STR("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_hash(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_repeated(55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    check_repeated(56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    check_repeated(64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    check_repeated(1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The examples of RFC 4231. */
TEST(keyed_hashes)
{
    char key[131];

    memset(key, 0x0b, 20);
    check_hmac((struct str){key, 20}, STR("Hi There"),
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_hmac(STR("Jefe"), STR("what do ya want for nothing?"),
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    check_hmac((struct str){key, sizeof key},
               STR("Test Using Larger Than Block-Size Key - Hash Key First"),
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}
