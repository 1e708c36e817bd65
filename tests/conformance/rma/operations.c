/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool updates(const Operation* operation) { return operation->call != kGet; }
static bool fetches(const Operation* operation) { return operation->call != kPut && operation->call != kAccumulate; }
static bool is_single(const Operation* operation) { return operation->call >= kFetchAndOp; }
static int grain_of(const Operation* operation) { return is_single(operation) ? 1 : windows[operation->window].grain; }

static bool is_mine(const Operation* operation) { return operation->origin == windows[operation->window].rank; }

static size_t local_bytes(const Operation* operation) {
  return (size_t)kPositions * (size_t)grain_of(operation) * (size_t)element_at(operation->region)->bytes;
}

static unsigned char* local_memory(const Operation* operation, uint64_t garbage) {
  const size_t bytes = local_bytes(operation);
  unsigned char* memory = malloc(bytes);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  for (size_t i = 0; i < bytes; ++i) memory[i] = (unsigned char)(garbage + i);
  return memory;
}

static void origin_value(const Operation* operation, int index, void* value) {
  element_value(element_at(operation->region), mix(operation->seed) + (uint64_t)(2 * index), value);
}

static void make_buffers(Operation* operation) {
  const Element* element = element_at(operation->region);
  const int grain = grain_of(operation);
  operation->origin_memory = local_memory(operation, operation->seed);
  for (int i = 0; i < operation->from.count; ++i)
    for (int g = 0; g < grain; ++g)
      origin_value(operation, i * grain + g,
                   operation->origin_memory + (size_t)(operation->from.at[i] * grain + g) * (size_t)element->bytes);
  operation->origin_before = local_memory(operation, 0);
  memcpy(operation->origin_before, operation->origin_memory, local_bytes(operation));
  operation->result = local_memory(operation, ~operation->seed);
  operation->expected = local_memory(operation, ~operation->seed);
  if (is_single(operation)) return;
  layout_commit(&operation->from, element, grain);
  layout_commit(&operation->to, element, grain);
  layout_commit(&operation->into, element, grain);
}

static void apply(Operation* operation, int index, unsigned char* target) {
  const Element* element = element_at(operation->region);
  unsigned char value[kMaxElementBytes];
  origin_value(operation, index, value);
  if (operation->call == kPut) {
    memcpy(target, value, (size_t)element->bytes);
  } else if (operation->call == kCompareAndSwap) {
    if (memcmp(target, operation->compare, (size_t)element->bytes) == 0) memcpy(target, value, (size_t)element->bytes);
  } else {
    element_combine(element, operation->operator, target, value);
  }
}

void operation_prepare(Operation* operation) {
  const Window* window = &windows[operation->window];
  const Element* element = element_at(operation->region);
  const int grain = grain_of(operation);
  const bool mine = is_mine(operation);
  operation->handle = MPI_REQUEST_NULL;
  if (operation->call == kCompareAndSwap) {
    const unsigned char* now = model_position(window, operation->target, operation->region, operation->to.at[0]);
    element_value(element, operation->seed + 1, operation->compare);
    if (operation->seed % 2 == 0) memcpy(operation->compare, now, (size_t)element->bytes);
  }
  if (mine) make_buffers(operation);
  for (int i = 0; i < operation->to.count; ++i) {
    unsigned char* target = model_position(window, operation->target, operation->region, operation->to.at[i]);
    for (int g = 0; g < grain; ++g, target += element->bytes) {
      if (mine && fetches(operation))
        memcpy(operation->expected + (size_t)(operation->into.at[i] * grain + g) * (size_t)element->bytes, target,
               (size_t)element->bytes);
      if (updates(operation)) apply(operation, i * grain + g, target);
    }
  }
}

void operation_start(Operation* op) {
  const Window* window = &windows[op->window];
  const Element* element = element_at(op->region);
  const unsigned char* target = model_position(window, op->target, op->region, is_single(op) ? op->to.at[0] : 0);
  const MPI_Aint offset = target - window->models[op->target];
  const MPI_Aint at = (window->bases[op->target] + offset) / window->units[op->target];
  const MPI_Op operator= operator_handle(op->operator);
  const bool nothing = op->call == kGetAccumulate && op->operator== kNoOp && op->seed % 2 == 0;
  const void* origin = nothing ? NULL : op->origin_memory;
  const int origin_count = nothing ? 0 : op->from.type_count;
  const MPI_Datatype origin_type = nothing ? MPI_BYTE : op->from.type;
#define TO op->target, at, op->to.type_count, op->to.type
#define INTO op->result, op->into.type_count, op->into.type
  switch (op->call) {
    case kPut:
      if (op->request)
        MPI_Rput(origin, origin_count, origin_type, TO, window->handle, &op->handle);
      else
        MPI_Put(origin, origin_count, origin_type, TO, window->handle);
      break;
    case kGet:
      if (op->request)
        MPI_Rget(INTO, TO, window->handle, &op->handle);
      else
        MPI_Get(INTO, TO, window->handle);
      break;
    case kAccumulate:
      if (op->request)
        MPI_Raccumulate(origin, origin_count, origin_type, TO, operator, window->handle, &op->handle);
      else
        MPI_Accumulate(origin, origin_count, origin_type, TO, operator, window->handle);
      break;
    case kGetAccumulate:
      if (op->request)
        MPI_Rget_accumulate(origin, origin_count, origin_type, INTO, TO, operator, window->handle, &op->handle);
      else
        MPI_Get_accumulate(origin, origin_count, origin_type, INTO, TO, operator, window->handle);
      break;
    case kFetchAndOp:
      MPI_Fetch_and_op(op->origin_memory, op->result, element->handle, op->target, at, operator, window->handle);
      break;
    default:
      MPI_Compare_and_swap(op->origin_memory, op->compare, op->result, element->handle, op->target, at, window->handle);
  }
#undef TO
#undef INTO
}

bool operation_check(const Operation* operation, int episode, int index, uint64_t* hash) {
  static const char* const kNames[kCalls] = {
      "put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap"};
  const size_t bytes = local_bytes(operation);
  const bool origin_good = memcmp(operation->origin_memory, operation->origin_before, bytes) == 0;
  const bool result_good = operation->unchecked || memcmp(operation->result, operation->expected, bytes) == 0;
  if (!operation->unchecked) *hash = hash_bytes(*hash, operation->result, bytes);
  if (origin_good && result_good) return true;
  fprintf(stderr, "episode %d, operation %d: %s %s %s by %d at %d of window %s, region %d: %s\n", episode, index,
          kNames[operation->call], operation->call >= kAccumulate ? operator_name(operation->operator) : "",
          element_at(operation->region)->name, operation->origin, operation->target, windows[operation->window].name,
          operation->region, origin_good ? "wrong result" : "the origin's buffer was changed");
  return false;
}

void operation_free(Operation* operation) {
  layout_free(&operation->from);
  layout_free(&operation->to);
  layout_free(&operation->into);
  free(operation->origin_memory);
  free(operation->origin_before);
  free(operation->result);
  free(operation->expected);
}
