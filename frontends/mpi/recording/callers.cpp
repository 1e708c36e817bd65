// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/callers.hpp"

#include <link.h>
#include <unwind.h>

#include <string_view>

namespace offpath::mpi::recording {

namespace {

// libmpi_mpifh and libmpi_usempif08 of Open MPI; libmpichfort, libmpifort of MPICH and what comes of it.
bool holds_wrappers(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  return name.rfind("libmpi", 0) == 0 && (has("fort") || has("mpifh") || has("usempi"));
}

int add_if_wrappers(dl_phdr_info* info, size_t, void* found) {
  if (info->dlpi_name == nullptr || !holds_wrappers(info->dlpi_name)) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    static_cast<Callers*>(found)->add(info->dlpi_addr + part.p_vaddr, part.p_memsz);
  }
  return 0;
}

constexpr int kMaxFrames = 24;  // our own and the wrappers'

struct Walk {
  const Callers* callers;
  int frames;
  bool inside;  // has met a wrapper
  const void* found;
};

_Unwind_Reason_Code look(_Unwind_Context* context, void* argument) {
  auto* walk = static_cast<Walk*>(argument);
  const auto* const address = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  if (address == nullptr || ++walk->frames > kMaxFrames) return _URC_END_OF_STACK;
  const bool wrapper = walk->callers->is_wrapper(address);
  if (walk->inside && !wrapper) {
    walk->found = address;
    return _URC_END_OF_STACK;
  }
  walk->inside = walk->inside || wrapper;
  return _URC_NO_REASON;
}

}  // namespace

void Callers::find_wrappers() {
  count_ = 0;
  dl_iterate_phdr(&add_if_wrappers, this);
}

const void* Callers::behind_wrappers(const void* return_address) const {
  Walk walk{this, 0, false, return_address};
  _Unwind_Backtrace(&look, &walk);
  return walk.found;
}

}  // namespace offpath::mpi::recording
