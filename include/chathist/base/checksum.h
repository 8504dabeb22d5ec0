/*
 * checksum - reads and writes little-endian numbers in binary files, and computes checksums and
 * hashes. All of them are the same on every machine.
 */
#ifndef CHATHIST_BASE_CHECKSUM_H
#define CHATHIST_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

/* The address need not be aligned. */
uint64_t le_get(const char *p);
void le_put(char *p, uint64_t n);
/* Reads n numbers. */
void le_get_all(uint64_t *to, const char *p, size_t n);

/* Returns a checksum. Two texts that differ only in eight adjacent bytes never have the same one.
 * It shows that stored bytes were damaged; other texts can well have the same one, so it does not
 * identify a text: see hash64. For several texts, `before` is the checksum of the previous ones,
 * and 0 for the first. */
uint64_t checksum(struct str bytes, uint64_t before);
/* Returns the checksum of n numbers. */
uint64_t checksum_words(const uint64_t *words, size_t n, uint64_t before);

/* Returns the hash XXH64 of a text (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
 * Different texts have different ones, but for one pair in 2^64, or unless they were made on
 * purpose. A long text takes a third of the time of a checksum. For several texts, `seed` is the
 * hash of the previous ones; otherwise different seeds give unrelated hashes. */
uint64_t hash64(struct str bytes, uint64_t seed);
/* Returns the hash from which ids and names of files are made: FNV-1a over the bytes, then
 * mixed. Histories hold such ids, so another hash cannot replace it. */
uint64_t hash_fnv(struct str bytes);

#endif
