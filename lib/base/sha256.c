#include "chathist/base/sha256.h"

#include <stdint.h>
#include <string.h>

#define BLOCK ((size_t)64)
#define SIZE ((size_t)32)

struct state {
    uint32_t h[8];
    unsigned char block[BLOCK];
    uint64_t n; /* bytes so far */
};

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void compress(struct state *s)
{
    uint32_t w[64], v[8];

    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)s->block[i * 4] << 24 | (uint32_t)s->block[i * 4 + 1] << 16 |
               (uint32_t)s->block[i * 4 + 2] << 8 | (uint32_t)s->block[i * 4 + 3];
    for (size_t i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] +
               (rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, s->h, sizeof v);
    for (size_t i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t one = v[7] + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
                       ((e & v[5]) ^ (~e & v[6])) + constants[i] + w[i];
        uint32_t two = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
                       ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (size_t i = 0; i < 8; i++)
        s->h[i] += v[i];
}

static void sha256_begin(struct state *s)
{
    *s = (struct state){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                              0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

static void add(struct state *s, const void *p, size_t n)
{
    const unsigned char *from = p;

    for (size_t i = 0; i < n; i++) {
        s->block[s->n++ % BLOCK] = from[i];
        if (s->n % BLOCK == 0)
            compress(s);
    }
}

static void sha256_end(struct state *s, unsigned char hash[SIZE])
{
    uint64_t bits = s->n * 8;

    add(s, "\x80", 1);
    while (s->n % BLOCK != BLOCK - 8)
        add(s, "", 1);
    for (int shift = 56; shift >= 0; shift -= 8)
        add(s, &(unsigned char){(unsigned char)(bits >> shift)}, 1);
    for (size_t i = 0; i < SIZE; i++)
        hash[i] = (unsigned char)(s->h[i / 4] >> (24 - i % 4 * 8));
}

static void add_hash_hex(struct buf *out, const unsigned char hash[SIZE])
{
    for (size_t i = 0; i < SIZE; i++)
        buf_addf(out, "%02x", hash[i]);
}

static void hash(struct str text, unsigned char to[SIZE])
{
    struct state s;

    sha256_begin(&s);
    add(&s, text.p, text.n);
    sha256_end(&s, to);
}

void sha256_add(struct buf *out, struct str text)
{
    unsigned char to[SIZE];

    hash(text, to);
    add_hash_hex(out, to);
}

void hmac_sha256_add(struct buf *out, struct str key, struct str text)
{
    unsigned char pad[BLOCK] = {0}, inner[SIZE];
    struct state s;

    if (key.n > BLOCK)
        hash(key, pad);
    else if (key.n > 0)
        memcpy(pad, key.p, key.n);
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36;
    sha256_begin(&s);
    add(&s, pad, BLOCK);
    add(&s, text.p, text.n);
    sha256_end(&s, inner);
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    sha256_begin(&s);
    add(&s, pad, BLOCK);
    add(&s, inner, SIZE);
    sha256_end(&s, inner);
    add_hash_hex(out, inner);
}
