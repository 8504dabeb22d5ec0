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

/* The text is longer than four words, and ends within one. */
TEST(long_sums_are_the_same_for_ever)
{
    CHECK(checksum_long(STR("a history line"), 7) == checksum(STR("a history line"), 7));
    CHECK(checksum_long(STR("thirty-two bytes and then a few more"), 7) ==
          UINT64_C(0x9424e1848d1b00b4));
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

TEST(a_changed_bit_changes_the_sum)
{
    char text[] =
        "twenty-one bytes long, and if all of it is taken, far longer than sixty-four bytes";
    uint64_t words[] = {1, 2, 3}, of_words = checksum_words(words, 3, 0);
    bool all = sees_each_bit(checksum, text, 21) &&
               sees_each_bit(checksum, text, sizeof(text) - 1) &&
               sees_each_bit(checksum_long, text, sizeof(text) - 1);

    for (size_t i = 0; i < 3 * 64; i++) {
        words[i / 64] ^= UINT64_C(1) << i % 64;
        all = all && checksum_words(words, 3, 0) != of_words;
        words[i / 64] ^= UINT64_C(1) << i % 64;
    }
    CHECK(all);
    CHECK(checksum(STR("a"), 0) != checksum(STR("a\0"), 0));
    CHECK(checksum(STR("a"), 0) != checksum(STR("a"), 1));
}
