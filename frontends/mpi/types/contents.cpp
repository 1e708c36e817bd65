// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/types/contents.hpp"

#include "mpi/native/native.hpp"

#include <algorithm>
#include <climits>

namespace offpath::mpi {
namespace {

Envelope read_envelope(MPI_Datatype type) {
  Envelope envelope;
#ifdef OFFPATH_MPI_HAS_LARGE_COUNTS
  MPI_Count integers = 0, addresses = 0, large_counts = 0, types = 0;
  const int code = native.Type_get_envelope_c(type, &integers, &addresses, &large_counts, &types, &envelope.combiner);
  if (code != MPI_SUCCESS || std::max({integers, addresses, large_counts, types}) >= INT_MAX) return {};
  envelope.integers = static_cast<int>(integers);
  envelope.addresses = static_cast<int>(addresses);
  envelope.large_counts = static_cast<int>(large_counts);
  envelope.types = static_cast<int>(types);
#else
  if (native.Type_get_envelope(type, &envelope.integers, &envelope.addresses, &envelope.types, &envelope.combiner) !=
      MPI_SUCCESS) {
    return {};
  }
#endif
  return envelope;
}

void append(auto from, int64_t count, std::vector<int64_t>* to) { to->insert(to->end(), from, from + count); }

}  // namespace

Contents::Contents(MPI_Datatype type) : envelope_(read_envelope(type)) {
  if (envelope_.combiner == MPI_UNDEFINED || envelope_.combiner == MPI_COMBINER_NAMED) return;
  types_.resize(static_cast<size_t>(envelope_.types) + 1, MPI_DATATYPE_NULL);
  if (!read(type)) envelope_ = {};
}

Contents::~Contents() {
  for (const MPI_Datatype type : types_) {
    if (type == MPI_DATATYPE_NULL) continue;
    const int combiner = combiner_of(type);
    MPI_Datatype its = type;
    if (combiner != MPI_COMBINER_NAMED && !is_f90(combiner)) native.Type_free(&its);
  }
}

bool Contents::read(MPI_Datatype type) {
  std::vector<int> integers(static_cast<size_t>(envelope_.integers) + 1);
  std::vector<MPI_Aint> addresses(static_cast<size_t>(envelope_.addresses) + 1);
#ifdef OFFPATH_MPI_HAS_LARGE_COUNTS
  if (envelope_.large_counts > 0) {
    std::vector<MPI_Count> counts(static_cast<size_t>(envelope_.large_counts));
    const int code =
        native.Type_get_contents_c(type, envelope_.integers, envelope_.addresses, envelope_.large_counts,
                                   envelope_.types, integers.data(), addresses.data(), counts.data(), types_.data());
    return code == MPI_SUCCESS && arrange(integers, counts);
  }
#endif
  const int code = native.Type_get_contents(type, envelope_.integers, envelope_.addresses, envelope_.types,
                                            integers.data(), addresses.data(), types_.data());
  if (code != MPI_SUCCESS) return false;
  integers_.assign(integers.begin(), integers.end());
  addresses_.assign(addresses.begin(), addresses.end());
  return true;
}

// A constructor with large counts has its counts, lengths and places apart from what stays an int. False: not so many as the
// standard says.
bool Contents::arrange(const std::vector<int>& integers, const std::vector<MPI_Count>& counts) {
  const auto all = static_cast<int64_t>(counts.size());
  const auto ints = static_cast<int64_t>(envelope_.integers);
  int64_t first = all;  // so many are no addresses
  switch (envelope_.combiner) {
    case MPI_COMBINER_SUBARRAY:
      if (ints != 2 || all != 3 * int64_t{integers[0]}) return false;
      append(integers.begin(), 1, &integers_);
      append(counts.begin(), all, &integers_);
      append(integers.begin() + 1, 1, &integers_);
      return true;
    case MPI_COMBINER_DARRAY:
      if (all != integers[2] || ints != 4 + 3 * all) return false;
      append(integers.begin(), 3, &integers_);
      append(counts.begin(), all, &integers_);
      append(integers.begin() + 3, 3 * all + 1, &integers_);
      return true;
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_HINDEXED_BLOCK:
      first = 2;
      break;
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT:
      first = 1 + counts[0];
      break;
    default:
      break;
  }
  if (first > all) return false;
  append(counts.begin(), first, &integers_);
  append(counts.begin() + first, all - first, &addresses_);
  return true;
}

int combiner_of(MPI_Datatype type) { return read_envelope(type).combiner; }

bool is_f90(int combiner) {
  return combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

}  // namespace offpath::mpi
