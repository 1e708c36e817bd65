/* SPDX-License-Identifier: BSD-3-Clause
 * Memory with guards at both ends and a pattern in all gaps. What a buffer must hold afterwards is written into a
 * second copy of it, byte by byte from the types' own ranges: no MPI function has a part in it. */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kGuardBytes = 128 };

Block* side_add(Side* side, const Type* type, int count, Data before, Data after) {
  if (side->blocks_count == kMaxBlocks) MPI_Abort(MPI_COMM_WORLD, 3);
  Block* block = &side->blocks[side->blocks_count++];
  *block = (Block){.type = type, .count = count, .before = before, .after = after};
  return block;
}

static MPI_Aint lowest(const Block* block) {
  MPI_Aint low = 0;
  for (int i = 0; i < block->type->ranges_count; ++i)
    if (block->type->ranges[i].offset < low) low = block->type->ranges[i].offset;
  return low;
}

static MPI_Aint highest(const Block* block) {
  MPI_Aint high = 0;
  for (int i = 0; i < block->type->ranges_count; ++i) {
    const Range* range = &block->type->ranges[i];
    if (range->offset + range->bytes > high) high = range->offset + range->bytes;
  }
  return block->count == 0 ? 0 : high + (block->count - 1) * block->type->extent;
}

/* Varying and typed: the blocks lie in reverse order, with room between them. */
void side_place(Side* side, enum Placing placing) {
  int elements = 0;
  MPI_Aint bytes = 0;
  for (int n = 0; n < side->blocks_count; ++n) {
    const int i = placing == kPlaceUniform ? n : side->blocks_count - 1 - n;
    Block* block = &side->blocks[i];
    const MPI_Aint room = (block->count + 1) * block->type->extent + 24;
    block->offset = placing == kPlaceTyped ? bytes - lowest(block) : elements * block->type->extent;
    bytes += room - lowest(block);
    side->counts[i] = block->count;
    side->displacements[i] = placing == kPlaceTyped ? (int)block->offset : elements;
    side->addresses[i] = block->offset;
    side->types[i] = block->type->handle;
    elements += block->count + (placing == kPlaceUniform ? 0 : 1);
  }
}

void side_allocate(Side* side) {
  MPI_Aint low = 0, high = 0;
  for (int i = 0; i < side->blocks_count; ++i) {
    const Block* block = &side->blocks[i];
    if (block->offset + lowest(block) < low) low = block->offset + lowest(block);
    if (block->offset + highest(block) > high) high = block->offset + highest(block);
  }
  low = -((-low + 15) / 16 * 16); /* elements stay aligned */
  side->bytes = (size_t)(high - low) + 2 * kGuardBytes;
  side->memory = malloc(side->bytes);
  side->expected = malloc(side->bytes);
  if (side->memory == NULL || side->expected == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  side->base = side->memory + kGuardBytes - low;
}

static void scatter_bytes(const Block* block, unsigned char* base, const unsigned char* packed) {
  unsigned char* element = base + block->offset;
  for (int n = 0; n < block->count; ++n, element += block->type->extent) {
    for (int i = 0; i < block->type->ranges_count; ++i) {
      const Range* range = &block->type->ranges[i];
      memcpy(element + range->offset, packed, (size_t)range->bytes);
      packed += range->bytes;
    }
  }
}

static void write_blocks(Side* side, const Case* a_case, unsigned char* memory, bool after) {
  unsigned char* base = memory + (side->base - side->memory);
  for (int i = 0; i < side->blocks_count; ++i) {
    const Block* block = &side->blocks[i];
    const Data data = after ? block->after : block->before;
    if (!data.any || block->count == 0) continue;
    unsigned char* packed = malloc((size_t)(block->count * block->type->bytes));
    if (packed == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
    case_data(a_case, block, data, packed);
    scatter_bytes(block, base, packed);
    free(packed);
  }
}

void side_fill(Side* side, const Case* a_case) {
  for (size_t i = 0; i < side->bytes; ++i) side->memory[i] = (unsigned char)(0xa5 ^ (i * 7));
  write_blocks(side, a_case, side->memory, false);
  memcpy(side->expected, side->memory, side->bytes);
  write_blocks(side, a_case, side->expected, true);
}

/* Puts what is expected over what MPI leaves open. */
static void forgive(Side* side) {
  const ptrdiff_t base = side->base - side->memory;
  for (int i = 0; i < side->blocks_count; ++i) {
    const Block* block = &side->blocks[i];
    for (int n = 0; n < block->count; ++n) {
      const ptrdiff_t element = base + block->offset + n * block->type->extent;
      for (int p = 0; p < block->type->paddings_count; ++p) {
        const ptrdiff_t at = element + block->type->paddings[p].offset;
        memcpy(side->memory + at, side->expected + at, (size_t)block->type->paddings[p].bytes);
      }
      if (block->undefined) memcpy(side->memory + element, side->expected + element, (size_t)block->type->extent);
    }
  }
}

bool side_check(Side* side, const char* name, uint64_t* hash) {
  forgive(side);
  uint64_t sum = mix(side->bytes);
  size_t at = 0;
  for (; at + 8 <= side->bytes; at += 8) {
    uint64_t word;
    memcpy(&word, side->memory + at, 8);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 32;
  }
  for (; at < side->bytes; ++at) sum = mix(sum ^ side->memory[at]);
  *hash = mix(*hash ^ sum);
  if (memcmp(side->memory, side->expected, side->bytes) == 0) return true;
  size_t first = 0, different = 0;
  for (size_t i = side->bytes; i-- > 0;)
    if (side->memory[i] != side->expected[i]) first = i, ++different;
  fprintf(stderr, "%s: %zu of %zu bytes are wrong, first at %td: 0x%02x instead of 0x%02x\n", name, different,
          side->bytes, (ptrdiff_t)first - (side->base - side->memory), side->memory[first], side->expected[first]);
  return false;
}

void side_free(Side* side) {
  free(side->memory);
  free(side->expected);
  side->memory = side->expected = NULL;
}
