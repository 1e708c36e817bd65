/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma.h"

#include <string.h>

typedef struct Pair { /* MPI_2INT */
  int value, place;
} Pair;

enum { kInt8, kInt16, kInt32, kUint32, kInt64, kFloat, kDouble, k2Int };

const Element* element_at(int region) {
  static Element elements[kTypes];
  if (elements[0].name == NULL) {
    elements[kInt8] = (Element){"int8", MPI_INT8_T, 1, true, false};
    elements[kInt16] = (Element){"int16", MPI_INT16_T, 2, true, false};
    elements[kInt32] = (Element){"int32", MPI_INT32_T, 4, true, false};
    elements[kUint32] = (Element){"uint32", MPI_UINT32_T, 4, true, false};
    elements[kInt64] = (Element){"int64", MPI_INT64_T, 8, true, false};
    elements[kFloat] = (Element){"float", MPI_FLOAT, 4, false, false};
    elements[kDouble] = (Element){"double", MPI_DOUBLE, 8, false, false};
    elements[k2Int] = (Element){"2int", MPI_2INT, 8, false, true};
  }
  return &elements[region];
}

const char* operator_name(enum Operator operator) {
  static const char* const kNames[kOperators] = {"sum",  "min",    "max",    "band",    "bor",
                                                 "bxor", "minloc", "maxloc", "replace", "no_op"};
  return kNames[operator];
}

MPI_Op operator_handle(enum Operator operator) {
  const MPI_Op handles[kOperators] = {MPI_SUM,  MPI_MIN,    MPI_MAX,    MPI_BAND,    MPI_BOR,
                                      MPI_BXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
  return handles[operator];
}

bool operator_fits(enum Operator operator, const Element* element) {
  switch (operator) {
    case kSum:
    case kMin:
    case kMax:
      return !element->pair;
    case kBand:
    case kBor:
    case kBxor:
      return element->integer;
    case kMinloc:
    case kMaxloc:
      return element->pair;
    default:
      return true;
  }
}

static int kind_of(const Element* element) { return (int)(element - element_at(0)); }

void element_value(const Element* element, uint64_t seed, void* value) {
  const int small = (int)(mix(seed) % 64);
  switch (kind_of(element)) {
#define STORE(kind, Type)                 \
  case kind: {                            \
    const Type typed = (Type)small;       \
    memcpy(value, &typed, sizeof(typed)); \
    return;                               \
  }
    STORE(kInt8, int8_t)
    STORE(kInt16, int16_t)
    STORE(kInt32, int32_t)
    STORE(kUint32, uint32_t)
    STORE(kInt64, int64_t)
    STORE(kFloat, float)
    STORE(kDouble, double)
#undef STORE
    default: {
      const Pair pair = {small, (int)(mix(seed + 1) % 64)};
      memcpy(value, &pair, sizeof(pair));
    }
  }
}

/* Sums of narrow integers wrap, so they are made without a sign. */
#define COMBINE(Type, Wide)                             \
  {                                                     \
    Type a, b;                                          \
    memcpy(&a, target, sizeof(a));                      \
    memcpy(&b, origin, sizeof(b));                      \
    if (operator== kSum) a = (Type)((Wide)a + (Wide)b); \
    if (operator== kMin) a = a < b ? a : b;             \
    if (operator== kMax) a = a > b ? a : b;             \
    BITWISE(Type)                                       \
    memcpy(target, &a, sizeof(a));                      \
    return;                                             \
  }
void element_combine(const Element* element, enum Operator operator, void * target, const void* origin) {
  if (operator== kNoOp) return;
  if (operator== kReplace) {
    memcpy(target, origin, (size_t)element->bytes);
    return;
  }
  switch (kind_of(element)) {
#define BITWISE(Type)                      \
  if (operator== kBand) a = (Type)(a & b); \
  if (operator== kBor) a = (Type)(a | b);  \
  if (operator== kBxor) a = (Type)(a ^ b);
    case kInt8:
      COMBINE(int8_t, uint64_t)
    case kInt16:
      COMBINE(int16_t, uint64_t)
    case kInt32:
      COMBINE(int32_t, uint64_t)
    case kUint32:
      COMBINE(uint32_t, uint64_t)
    case kInt64:
      COMBINE(int64_t, uint64_t)
#undef BITWISE
#define BITWISE(Type)
    case kFloat:
      COMBINE(float, float)
    case kDouble:
      COMBINE(double, double)
#undef BITWISE
    default: {
      Pair a, b;
      memcpy(&a, target, sizeof(a));
      memcpy(&b, origin, sizeof(b));
      const bool takes = operator== kMinloc ? b.value < a.value : b.value> a.value;
      if (takes) a = b;
      if (!takes && a.value == b.value && b.place < a.place) a.place = b.place;
      memcpy(target, &a, sizeof(a));
    }
  }
}
