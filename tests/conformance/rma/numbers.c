/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma.h"

/* The finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

uint64_t random_next(Random* random) { return mix(random->state++); }

int random_below(Random* random, int bound) { return (int)(random_next(random) % (uint64_t)bound); }

uint64_t hash_bytes(uint64_t hash, const void* data, size_t bytes) {
  const unsigned char* byte = data;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ byte[i]) * 0x100000001b3u; /* FNV-1a */
  return mix(hash);
}
