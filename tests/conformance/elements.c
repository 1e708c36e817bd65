/* SPDX-License-Identifier: BSD-3-Clause
 * What MPI reduces: all predefined operators on all types they are defined for (MPI 4.0, 6.9.2), a user's operator, and
 * a reference that combines rank after rank. Values are such that every order gives the same bits: integers wrap,
 * floating-point ones are small integers, complex factors stay near the positive real axis, so that no zero has a sign.
 */
#include "conformance.h"

#include <complex.h>
#include <stdio.h>
#include <string.h>

enum Operator { kSum, kProd, kMin, kMax, kBand, kBor, kBxor, kLand, kLor, kLxor, kMinloc, kMaxloc, kUser, kOperators };
static const char* const kOperatorNames[] = {"sum",  "prod", "min",  "max",    "band",   "bor", "bxor",
                                             "land", "lor",  "lxor", "minloc", "maxloc", "user"};

/* Which operators a type has. */
enum {
  kArithmetic = 1 << kSum | 1 << kProd,
  kOrder = 1 << kMin | 1 << kMax,
  kBits = 1 << kBand | 1 << kBor | 1 << kBxor,
  kLogic = 1 << kLand | 1 << kLor | 1 << kLxor,
  kPlaces = 1 << kMinloc | 1 << kMaxloc,
  kInteger = kArithmetic | kOrder | kBits,
  kFloating = kArithmetic | kOrder,
};

typedef struct {
  float value;
  float place;
} FloatFloat;
typedef struct {
  double value;
  double place;
} DoubleDouble;
typedef struct {
  float value;
  int place;
} FloatInt;
typedef struct {
  double value;
  int place;
} DoubleInt;
typedef struct {
  long value;
  int place;
} LongInt;
typedef struct {
  short value;
  int place;
} ShortInt;
typedef struct {
  int value;
  int place;
} IntInt;
typedef struct {
  long double value;
  int place;
} LongDoubleInt;
typedef struct {
  uint32_t factor;
  uint32_t term;
} Affine; /* x -> factor x + term: associative, not commutative */

/* X(kind, C type, how the value is made and combined) */
#define KINDS(X)                               \
  X(Int8, int8_t, integer)                     \
  X(Int16, int16_t, integer)                   \
  X(Int32, int32_t, integer)                   \
  X(Int64, int64_t, integer)                   \
  X(Uint8, uint8_t, integer)                   \
  X(Uint16, uint16_t, integer)                 \
  X(Uint32, uint32_t, integer)                 \
  X(Uint64, uint64_t, integer)                 \
  X(Float, float, floating)                    \
  X(Double, double, floating)                  \
  X(LongDouble, long double, floating)         \
  X(Quad, __float128, floating)                \
  X(ComplexFloat, float complex, complex)      \
  X(ComplexDouble, double complex, complex)    \
  X(ComplexLong, long double complex, complex) \
  X(Truth8, uint8_t, truth)                    \
  X(Truth16, int16_t, truth)                   \
  X(Truth32, int32_t, truth)                   \
  X(Truth64, int64_t, truth)                   \
  X(FloatFloat, FloatFloat, pair)              \
  X(DoubleDouble, DoubleDouble, pair)          \
  X(FloatInt, FloatInt, pair)                  \
  X(DoubleInt, DoubleInt, pair)                \
  X(LongInt, LongInt, pair)                    \
  X(ShortInt, ShortInt, pair) X(IntInt, IntInt, pair) X(LongDoubleInt, LongDoubleInt, pair) X(Affine, Affine, affine)

enum Kind {
#define X(Name, type, way) kOf##Name,
  KINDS(X)
#undef X
};

static bool is_signed(int kind) { return kind <= kOfInt64; }

static int small(uint64_t random) { return (int)(random % 15) - 7; }

/* Smallest and largest: without the highest bit where the type has no sign (see skips.c). */
#define MAKE_integer(out, operator, random)                                                          \
  do {                                                                                               \
    *(out) = (operator) == kProd ? (random) % 3 + 1 : (operator) >= kLand ? (random) % 3 : (random); \
    if (((operator) == kMin || (operator) == kMax) && !is_signed(r->kind)) *(out) /= 2;              \
  } while (0)
#define MAKE_floating(out, operator, random) \
  (*(out) = (operator) == kProd ? (int)((random) % 4) - 2 + ((random) % 4 > 1) : small(random))
#define MAKE_complex(out, operator, random)                                                      \
  (*(out) = (operator) == kProd ? ((random) % 3 == 0 ? 2 : 4 + ((random) % 3 == 1 ? 1 : -1) * I) \
                                : small(random) + small((random) >> 8) * I)
#define MAKE_truth(out, operator, random) (*(out) = (random) % 2)
#define MAKE_pair(out, operator, random) ((out)->value = (random) % 4, (out)->place = (random) >> 8 & 63)
#define MAKE_affine(out, operator, random) (*(out) = (Affine){(uint32_t)(random) | 1, (uint32_t)((random) >> 32)})

#define CASE(which, result) \
  case which:               \
    *b = result;            \
    break;
#define ARITHMETIC CASE(kSum, *a + *b) CASE(kProd, *a** b)
#define ORDER CASE(kMin, *a < *b ? *a : *b) CASE(kMax, *a > *b ? *a : *b)
#define LOGIC CASE(kLand, *a&&* b) CASE(kLor, *a || *b) CASE(kLxor, !*a != !*b)
#define COMBINE_integer ARITHMETIC ORDER LOGIC CASE(kBand, *a&* b) CASE(kBor, *a | *b) CASE(kBxor, *a ^ *b)
#define COMBINE_floating ARITHMETIC ORDER
#define COMBINE_complex ARITHMETIC
#define COMBINE_truth LOGIC
#define BETTER(sign) (a->value sign b->value || (a->value == b->value && a->place < b->place))
#define COMBINE_pair CASE(kMinloc, BETTER(<) ? *a : *b) CASE(kMaxloc, BETTER(>) ? *a : *b)
#define COMBINE_affine CASE(kUser, ((Affine){a->factor * b->factor, a->term * b->factor + b->term}))

/* out = the values of `rank`; or, with combine, what out holds combined with them. */
static void values_of_rank(const Reduction* r, uint64_t seed, int rank, int start, int count, bool combine, void* out) {
  const uint64_t key = mix(seed ^ mix((uint64_t)rank + 1));
  switch (r->kind) {
#define X(Name, type, way)                                               \
  case kOf##Name:                                                        \
    for (int i = 0; i < count; ++i) {                                    \
      type value, *element = (type*)out + i;                             \
      memset(&value, 0, sizeof(value));                                  \
      MAKE_##way(&value, r->operator, mix(key + (uint64_t)(start + i))); \
      if (combine) {                                                     \
        const type* a = element;                                         \
        type* b = &value;                                                \
        switch (r->operator) { COMBINE_##way }                           \
      }                                                                  \
      memcpy(element, &value, sizeof(value));                            \
    }                                                                    \
    break;
    KINDS(X)
#undef X
  }
}

void reduction_values(const Reduction* r, uint64_t seed, int first, int last, int start, int count, void* out) {
  for (int rank = first; rank <= last; ++rank) values_of_rank(r, seed, rank, start, count, rank != first, out);
  for (int i = 0; i < count; ++i) /* copies of a struct may leave anything in its padding */
    for (int p = 0; p < r->type.paddings_count; ++p)
      memset((char*)out + i * r->type.extent + r->type.paddings[p].offset, 0, (size_t)r->type.paddings[p].bytes);
}

static void compose(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  const Affine* a = in;
  Affine* b = inout;
  for (int i = 0; i < *count; ++i, ++a, ++b) *b = (Affine){a->factor * b->factor, a->term * b->factor + b->term};
}

enum { kMaxReductions = 400 };
static Reduction reductions[kMaxReductions];
static int total;
static MPI_Op user_op;
static MPI_Datatype affine;

/* Fortran's optional types are null or without size where the compiler lacks them. */
static bool exists(MPI_Datatype type, size_t bytes) {
  int size = 0;
  return type != MPI_DATATYPE_NULL && MPI_Type_size(type, &size) == MPI_SUCCESS && size > 0 && (size_t)size <= bytes;
}

static void add(const char* name, MPI_Datatype handle, int kind, size_t bytes, int operators, Range p0, Range p1) {
  const MPI_Op ops[] = {MPI_SUM,  MPI_PROD, MPI_MIN,  MPI_MAX,    MPI_BAND,   MPI_BOR, MPI_BXOR,
                        MPI_LAND, MPI_LOR,  MPI_LXOR, MPI_MINLOC, MPI_MAXLOC, user_op};
  if (!exists(handle, bytes)) return;
  for (int o = 0; o < kOperators; ++o) {
    if ((operators >> o & 1) == 0) continue;
    if (total == kMaxReductions) MPI_Abort(MPI_COMM_WORLD, 3);
    Reduction* r = &reductions[total++];
    *r = (Reduction){.op_name = kOperatorNames[o], .op = ops[o], .kind = kind, .operator= o };
    r->type = (Type){.name = name,
                     .handle = handle,
                     .items = 1,
                     .bytes = (MPI_Aint)bytes,
                     .extent = (MPI_Aint)bytes,
                     .ranges_count = 1,
                     .ranges = {{0, (MPI_Aint)bytes}},
                     .paddings = {p0, p1}};
    r->type.paddings_count = (p0.bytes > 0) + (p1.bytes > 0);
  }
}

#define NO_PADDING ((Range){0, 0})
#define ADD(name, kind, type, operators) \
  add(#name, MPI_##name, kOf##kind, sizeof(type), operators, NO_PADDING, NO_PADDING)
#define ADD_PADDED(name, kind, type, operators, ...) \
  add(#name, MPI_##name, kOf##kind, sizeof(type), operators, __VA_ARGS__)

static void add_c_types(void) {
  const int all = kInteger | kLogic;
  ADD(SIGNED_CHAR, Int8, int8_t, all), ADD(SHORT, Int16, short, all), ADD(INT, Int32, int, all);
  ADD(LONG, Int64, long, all), ADD(LONG_LONG, Int64, long long, all);
  ADD(UNSIGNED_CHAR, Uint8, uint8_t, all), ADD(UNSIGNED_SHORT, Uint16, unsigned short, all);
  ADD(UNSIGNED, Uint32, unsigned, all), ADD(UNSIGNED_LONG, Uint64, unsigned long, all);
  ADD(UNSIGNED_LONG_LONG, Uint64, unsigned long long, all);
  ADD(INT8_T, Int8, int8_t, all), ADD(INT16_T, Int16, int16_t, all), ADD(INT32_T, Int32, int32_t, all);
  ADD(INT64_T, Int64, int64_t, all), ADD(UINT8_T, Uint8, uint8_t, all), ADD(UINT16_T, Uint16, uint16_t, all);
  ADD(UINT32_T, Uint32, uint32_t, all), ADD(UINT64_T, Uint64, uint64_t, all);
  ADD(AINT, Int64, MPI_Aint, kInteger), ADD(OFFSET, Int64, MPI_Offset, kInteger),
      ADD(COUNT, Int64, MPI_Count, kInteger);
  ADD(FLOAT, Float, float, kFloating), ADD(DOUBLE, Double, double, kFloating);
  ADD_PADDED(LONG_DOUBLE, LongDouble, long double, kFloating, (Range){10, 6}, NO_PADDING);
  ADD(C_FLOAT_COMPLEX, ComplexFloat, float complex, kArithmetic);
  ADD(C_DOUBLE_COMPLEX, ComplexDouble, double complex, kArithmetic);
  ADD_PADDED(C_LONG_DOUBLE_COMPLEX, ComplexLong, long double complex, kArithmetic, (Range){10, 6}, (Range){26, 6});
  ADD(C_BOOL, Truth8, bool, kLogic), ADD(BYTE, Uint8, uint8_t, kBits);
  ADD(FLOAT_INT, FloatInt, FloatInt, kPlaces), ADD(2INT, IntInt, IntInt, kPlaces);
  ADD_PADDED(DOUBLE_INT, DoubleInt, DoubleInt, kPlaces, (Range){12, 4}, NO_PADDING);
  ADD_PADDED(LONG_INT, LongInt, LongInt, kPlaces, (Range){12, 4}, NO_PADDING);
  ADD_PADDED(SHORT_INT, ShortInt, ShortInt, kPlaces, (Range){2, 2}, NO_PADDING);
  ADD_PADDED(LONG_DOUBLE_INT, LongDoubleInt, LongDoubleInt, kPlaces, (Range){10, 6}, (Range){20, 12});
}

static void add_other_languages(void) {
  ADD(CXX_BOOL, Truth8, bool, kLogic), ADD(CXX_FLOAT_COMPLEX, ComplexFloat, float complex, kArithmetic);
  ADD(CXX_DOUBLE_COMPLEX, ComplexDouble, double complex, kArithmetic);
  ADD_PADDED(CXX_LONG_DOUBLE_COMPLEX, ComplexLong, long double complex, kArithmetic, (Range){10, 6}, (Range){26, 6});
  ADD(INTEGER, Int32, int32_t, kInteger), ADD(INTEGER1, Int8, int8_t, kInteger);
  ADD(INTEGER2, Int16, int16_t, kInteger), ADD(INTEGER4, Int32, int32_t, kInteger);
  ADD(INTEGER8, Int64, int64_t, kInteger);
  ADD(REAL, Float, float, kFloating), ADD(REAL4, Float, float, kFloating), ADD(REAL8, Double, double, kFloating);
  ADD(DOUBLE_PRECISION, Double, double, kFloating), ADD(REAL16, Quad, __float128, kFloating);
  ADD(COMPLEX, ComplexFloat, float complex, kArithmetic), ADD(COMPLEX8, ComplexFloat, float complex, kArithmetic);
  ADD(COMPLEX16, ComplexDouble, double complex, kArithmetic);
  ADD(DOUBLE_COMPLEX, ComplexDouble, double complex, kArithmetic);
  ADD(LOGICAL, Truth32, int32_t, kLogic);
#ifdef OPEN_MPI
  ADD(LOGICAL1, Truth8, int8_t, kLogic), ADD(LOGICAL2, Truth16, int16_t, kLogic);
  ADD(LOGICAL4, Truth32, int32_t, kLogic), ADD(LOGICAL8, Truth64, int64_t, kLogic);
#endif
  ADD(2REAL, FloatFloat, FloatFloat, kPlaces), ADD(2DOUBLE_PRECISION, DoubleDouble, DoubleDouble, kPlaces);
  ADD(2INTEGER, IntInt, IntInt, kPlaces);
}

void reductions_create(void) {
  MPI_Op_create(compose, 0, &user_op);
  MPI_Type_contiguous(2, MPI_UINT32_T, &affine);
  MPI_Type_commit(&affine);
  add_c_types();
  add_other_languages();
  add("affine", affine, kOfAffine, sizeof(Affine), 1 << kUser, NO_PADDING, NO_PADDING);
}

void reductions_free(void) {
  MPI_Op_free(&user_op);
  MPI_Type_free(&affine);
}

int reductions_count(void) { return total; }

const Reduction* reduction_at(int index) { return &reductions[index]; }
