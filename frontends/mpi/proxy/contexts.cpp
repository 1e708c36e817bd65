// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/proxy/contexts.hpp"

#include "mpi/job/job.hpp"
#include "mpi/lanes/communicators.hpp"
#include "mpi/native/handle_table.hpp"
#include "mpi/regions/protocol.hpp"

namespace offpath::mpi::regions {
namespace {

// A duplicate takes a context id of the native library, which has as few as 2048.
constexpr size_t kMaxContexts = 256;

// Handles are pointers or 32-bit integers; a region sends them as it got them.
uint64_t key_of(MPI_Comm comm) {
  if constexpr (std::is_pointer_v<MPI_Comm>)
    return handle_key(comm);
  else
    return static_cast<uint32_t>(handle_key(comm));
}

MPI_Comm duplicate(MPI_Comm comm, bool able) {
  const Meeting inside;
  int mine = able ? 1 : 0;
  int all = 0;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  if (native.Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS || all == 0) return made;
  if (native.Comm_group(comm, &group) != MPI_SUCCESS) return made;
  // Not MPI_Comm_dup: that would run the application's attribute callbacks.
  if (native.Comm_create(comm, group, &made) != MPI_SUCCESS) made = MPI_COMM_NULL;
  native.Group_free(&group);
  if (made != MPI_COMM_NULL) native.Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return made;
}

}  // namespace

Contexts::~Contexts() {
  const Inside inside;
  if (devices != MPI_COMM_NULL) native.Comm_free(&devices);
}

void ContextTable::adopt(MPI_Comm comm) {
  int inter = 0;
  if (comm == MPI_COMM_NULL || Inside::here()) return;
  if (native.Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0) return;
  auto made = std::make_shared<Contexts>();
  bool able = false;
  {
    std::lock_guard lock(mutex_);
    able = entries_.size() < kMaxContexts;
  }
  made->hosts = comm;
  made->devices = duplicate(comm, able);
  if (made->devices == MPI_COMM_NULL) return;
  native.Comm_rank(comm, &made->rank);
  native.Comm_size(comm, &made->size);
  // So collectives of regions are offloaded where the policy wants that.
  adopt_communicator(made->devices);
  std::lock_guard lock(mutex_);
  entries_.insert_or_assign(key_of(comm), std::move(made));
}

void ContextTable::forget(MPI_Comm comm) {
  std::shared_ptr<Contexts> last;  // freed without the lock
  std::lock_guard lock(mutex_);
  const auto entry = entries_.find(key_of(comm));
  if (entry == entries_.end()) return;
  last = std::move(entry->second);
  entries_.erase(entry);
}

void ContextTable::clear() {
  std::unordered_map<uint64_t, std::shared_ptr<Contexts>> all;
  std::lock_guard lock(mutex_);
  all.swap(entries_);
}

std::shared_ptr<Contexts> ContextTable::find(MPI_Comm comm) const {
  std::lock_guard lock(mutex_);
  const auto entry = entries_.find(key_of(comm));
  return entry == entries_.end() ? nullptr : entry->second;
}

std::shared_ptr<Contexts> ContextTable::find(uint64_t name) const {
  using namespace offpath::regions;
  if (name == kCommWorld) return find(MPI_COMM_WORLD);
  if (name == kCommSelf) return find(MPI_COMM_SELF);
  std::lock_guard lock(mutex_);
  const auto entry = entries_.find(name);
  return entry == entries_.end() ? nullptr : entry->second;
}

}  // namespace offpath::mpi::regions
