/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma.h"

#include <string.h>

/* Blocks of equal length, the last position below kPositions. */
static bool place_vector(Layout* layout, Random* random) {
  int length = 1 + random_below(random, layout->count);
  while (layout->count % length != 0) --length;
  const int blocks = layout->count / length, room = (kPositions - layout->count) / blocks;
  if (blocks < 2 || room < 1) return false;
  const int stride = length + 1 + random_below(random, room);
  for (int i = 0; i < layout->count; ++i) layout->at[i] = (unsigned char)(i / length * stride + i % length);
  return layout->at[layout->count - 1] < kPositions;
}

/* Any positions in any order, each once. */
static void place_indexed(Layout* layout, Random* random) {
  bool taken[kPositions] = {false};
  for (int i = 0; i < layout->count; ++i) {
    int at = random_below(random, kPositions);
    while (taken[at]) at = (at + 1) % kPositions;
    taken[at] = true;
    layout->at[i] = (unsigned char)at;
  }
}

Layout layout_random(Random* random, int count) {
  Layout layout = {.count = count, .type = MPI_DATATYPE_NULL, .kind = kContiguous};
  const int wish = scope.derived ? random_below(random, 4) : 0;
  for (int i = 0; i < count; ++i) layout.at[i] = (unsigned char)(wish == 3 ? 2 * i : i);
  if (wish == 1 && place_vector(&layout, random)) {
    layout.kind = kVector;
  } else if (wish == 2) {
    place_indexed(&layout, random);
    layout.kind = kIndexed;
  } else if (wish == 3) {
    layout.kind = kSpread;
  } else {
    for (int i = 0; i < count; ++i) layout.at[i] = (unsigned char)i;
  }
  return layout;
}

void layout_commit(Layout* layout, const Element* element, int grain) {
  layout->type_count = 1;
  switch (layout->kind) {
    case kContiguous:
      MPI_Type_contiguous(grain, element->handle, &layout->type);
      layout->type_count = layout->count;
      break;
    case kVector: {
      int length = 1;
      while (layout->at[length] == layout->at[length - 1] + 1) ++length;
      MPI_Type_vector(layout->count / length, length * grain, layout->at[length] * grain, element->handle,
                      &layout->type);
      break;
    }
    case kIndexed: {
      MPI_Aint displacements[kMaxCount];
      for (int i = 0; i < layout->count; ++i) displacements[i] = (MPI_Aint)layout->at[i] * grain * element->bytes;
      MPI_Type_create_hindexed_block(layout->count, grain, displacements, element->handle, &layout->type);
      break;
    }
    case kSpread: { /* several of a type whose extent is longer than its data */
      MPI_Datatype dense;
      MPI_Type_contiguous(grain, element->handle, &dense);
      MPI_Type_create_resized(dense, 0, (MPI_Aint)2 * grain * element->bytes, &layout->type);
      MPI_Type_free(&dense);
      layout->type_count = layout->count;
      break;
    }
  }
  MPI_Type_commit(&layout->type);
}

void layout_free(Layout* layout) {
  if (layout->type != MPI_DATATYPE_NULL) MPI_Type_free(&layout->type);
}
