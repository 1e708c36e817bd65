// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/lending.hpp"

#include "mpi/job/job.hpp"
#include "mpi/native/handlers.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace offpath::mpi {
namespace {

constexpr MPI_Aint kLeastBytes = 4096;  // a page

// What the info asks for, if it is no more than we can give.
std::optional<uint64_t> read_alignment(MPI_Info info) {
  if (info == MPI_INFO_NULL) return 1;
  const Inside inside;
  char value[32] = "";
  int keys = 0, known = 0, given = 0;
  uint64_t alignment = 1;
  if (native.Info_get_nkeys(info, &keys) != MPI_SUCCESS) return std::nullopt;
  if (keys > 0 && native.Info_get(info, "offpath", sizeof(value) - 1, value, &given) == MPI_SUCCESS && given != 0) {
    if (strcmp(value, "host") == 0) return std::nullopt;
    ++known;
  }
  constexpr const char* kAlignment = "mpi_minimum_memory_alignment";
  if (keys > known && native.Info_get(info, kAlignment, sizeof(value) - 1, value, &given) == MPI_SUCCESS &&
      given != 0) {
    char* end = nullptr;
    alignment = strtoull(value, &end, 10);
    if (*end != '\0' || alignment == 0) return std::nullopt;
    ++known;
  }
  // Others are of the library: memory of a kind, hints where it should come from.
  return keys == known ? std::optional(alignment) : std::nullopt;
}

void say_once(offpath_status_t status) {
  static std::atomic<bool> said{false};
  if (status != OFFPATH_ERR_NO_MEMORY || said.exchange(true)) return;
  say(job.settings(), LogLevel::info,
      "rank %d: memory that MPI is asked for comes from the MPI library, as there is no more to share with the service "
      "(it is copied there). See OFFPATH_SHARED_MEMORY_BYTES, and vm.max_map_count of the system",
      job.rank());
}

}  // namespace

void* lend(MPI_Aint bytes, MPI_Info info) {
  if (bytes < kLeastBytes || !job.active()) return nullptr;
  const std::optional<uint64_t> alignment = read_alignment(info);
  if (!alignment) return nullptr;
  void* memory = nullptr;
  say_once(offpath_memory_lend(job.session(), static_cast<uint64_t>(bytes), *alignment, &memory));
  return memory;
}

bool take_back(void* memory) { return offpath_memory_take_back(memory) != 0; }

namespace handlers {

int Alloc_mem(MPI_Aint bytes, MPI_Info info, void* base) {
  void* const lent = base == nullptr || Inside::here() ? nullptr : lend(bytes, info);
  if (lent == nullptr) return native.Alloc_mem(bytes, info, base);
  *static_cast<void**>(base) = lent;
  return MPI_SUCCESS;
}

int Free_mem(void* base) { return take_back(base) ? MPI_SUCCESS : native.Free_mem(base); }

}  // namespace handlers
}  // namespace offpath::mpi
