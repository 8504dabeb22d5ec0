#include "chathist/base/checksum.h"

#include "test.h"

TEST(numbers_are_little_endian)
{
    static const char bytes[] = "\x01\x02\x03\x04\x05\x06\x07\x88\xff";
    uint64_t numbers[2] = {UINT64_C(0x8807060504030201), 5}, back[2];
    char out[17];

    CHECK(le_get(bytes) == numbers[0]);
    le_put(out + 1, numbers[0]);
    CHECK_MEM(out + 1, 8, bytes, 8);
    le_put(out + 9, numbers[1]);
    le_get_all(back, out + 1, 2);
    CHECK(back[0] == numbers[0] && back[1] == 5);
}

/* Stored sums have to be understood by every later version. */
TEST(sums_are_the_same_for_ever)
{
    static const uint64_t words[] = {1, 2, 3};

    CHECK(checksum(STR(""), 0) == UINT64_C(0x1efc743a09812f72));
    CHECK(checksum(STR("session"), 0) == UINT64_C(0x090aa610a27f33c5));
    CHECK(checksum(STR("a history line"), 7) == UINT64_C(0x1536076a37db94da));
    CHECK(checksum_words(words, 3, 0) == UINT64_C(0x4341c07119a039c4));
}

/* The values are those of the reference program, version 0.8.4. */
TEST(hashes_are_those_of_xxh64)
{
    static const char text[] =
        "Each of these words is hashed, and so are the last thirteen bytes of the text.";
    static const struct {
        size_t n;
        uint64_t seed, hash;
    } wanted[] = {
        {0, 0, UINT64_C(0xef46db3751d8e999)},  {1, 0, UINT64_C(0x8c664bbc97d7cba9)},
        {3, 0, UINT64_C(0x6812941303b30738)},  {13, 7, UINT64_C(0x40fb2237193cb9eb)},
        {31, 7, UINT64_C(0xab0e6a5948260718)}, {32, 7, UINT64_C(0xdc5e0fec4a1dea06)},
        {33, 7, UINT64_C(0x369718e39a01d8d0)}, {63, 1, UINT64_C(0xa89ee0f2fa0831b2)},
        {78, 2, UINT64_C(0x29bc5abbce93b9e2)},
    };

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        CHECK(hash64((struct str){text, wanted[i].n}, wanted[i].seed) == wanted[i].hash);
}

/* Returns whether each changed bit of the text changes its sum. */
static bool sees_each_bit(uint64_t (*sum_of)(struct str, uint64_t), char *text, size_t n)
{
    uint64_t sum = sum_of((struct str){text, n}, 0);
    bool all = true;

    for (size_t i = 0; i < n * 8; i++) {
        text[i / 8] = (char)(text[i / 8] ^ 1 << i % 8);
        all = all && sum_of((struct str){text, n}, 0) != sum;
        text[i / 8] = (char)(text[i / 8] ^ 1 << i % 8);
    }
    return all;
}

TEST(a_hash_tells_texts_apart_that_a_checksum_does_not)
{
    struct str a = STR("m-00003400120033"), b = STR("m-00003100130032");

    CHECK(checksum(a, 0) == checksum(b, 0));
    CHECK(hash64(a, 0) != hash64(b, 0));
}

TEST(a_changed_bit_changes_the_sum)
{
    char text[] =
        "twenty-one bytes long, and if all of it is taken, far longer than sixty-four bytes";
    uint64_t words[] = {1, 2, 3}, of_words = checksum_words(words, 3, 0);
    bool all = sees_each_bit(checksum, text, 21) &&
               sees_each_bit(checksum, text, sizeof(text) - 1) &&
               sees_each_bit(hash64, text, sizeof(text) - 1);

    for (size_t i = 0; i < 3 * 64; i++) {
        words[i / 64] ^= UINT64_C(1) << i % 64;
        all = all && checksum_words(words, 3, 0) != of_words;
        words[i / 64] ^= UINT64_C(1) << i % 64;
    }
    CHECK(all);
    CHECK(checksum(STR("a"), 0) != checksum(STR("a\0"), 0));
    CHECK(checksum(STR("a"), 0) != checksum(STR("a"), 1));
}
