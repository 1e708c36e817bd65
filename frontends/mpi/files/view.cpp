// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/files/view.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::mpi {

std::optional<View> view_of(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                            const char* representation, MPI_Comm comm) {
  if (displacement < 0 || representation == nullptr || strcmp(representation, "native") != 0) return std::nullopt;
  const TypeRef unit = find_type(etype, comm), type = find_type(filetype, comm);
  if (unit == nullptr || type == nullptr || unit->size_bytes <= 0 || type->size_bytes <= 0) return std::nullopt;
  View view{static_cast<uint64_t>(displacement), static_cast<uint64_t>(unit->size_bytes), nullptr};
  const auto& ranges = type->ranges;
  const bool begins_at_once = !ranges.empty() && ranges.front().offset_bytes == 0;
  if (type->form == Form::contiguous && begins_at_once) return view;
  const bool is_layout = !ranges.empty() && type->extent_bytes > 0;
  if (!is_layout || static_cast<uint64_t>(type->size_bytes) / ranges.size() < kShortestStretch) return std::nullopt;
  view.filetype = type;
  return view;
}

}  // namespace offpath::mpi
