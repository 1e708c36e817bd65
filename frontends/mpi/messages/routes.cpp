// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/routes.hpp"

#include "mpi/job/job.hpp"
#include "mpi/lanes/errors.hpp"
#include "mpi/messages/office.hpp"
#include "mpi/native/handle_table.hpp"
#include "mpi/native/native.hpp"

#include <numeric>

namespace offpath::mpi {

bool good_tag(int tag) {
  static const int highest = [] {
    int* value = nullptr;
    int found = 0;
    native.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
    return found != 0 ? *value : 32767;
  }();
  return tag >= 0 && tag <= highest;
}

int Route::raise(int code) const {
  const MPI_Comm now = comm.load(std::memory_order_acquire);
  return raise_error(now == MPI_COMM_NULL ? MPI_COMM_WORLD : now, code);
}

namespace {

int leave_behind(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

}  // namespace

int Routes::forget(MPI_Comm comm, int, void*, void*) {
  std::lock_guard lock(office.routes.mutex_);
  const auto found = office.routes.routes_.find(handle_key(comm));
  if (found == office.routes.routes_.end()) return MPI_SUCCESS;
  found->second->comm.store(MPI_COMM_NULL, std::memory_order_release);
  office.routes.routes_.erase(found);
  return MPI_SUCCESS;
}

int Routes::open() { return native.Comm_create_keyval(&leave_behind, &forget, &keyval_, nullptr); }

void Routes::close() {
  std::vector<MPI_Comm> known;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, route] : routes_) known.push_back(route->comm.load());
  }
  for (const MPI_Comm comm : known) native.Comm_delete_attr(comm, keyval_);
  if (keyval_ != MPI_KEYVAL_INVALID) native.Comm_free_keyval(&keyval_);
  keyval_ = MPI_KEYVAL_INVALID;
}

RouteRef Routes::make(MPI_Comm comm) {
  auto route = std::make_shared<Route>();
  route->comm.store(comm, std::memory_order_relaxed);
  int inter = 0, size = 0;
  if (native.Comm_test_inter(comm, &inter) != MPI_SUCCESS) return nullptr;
  if (inter != 0 || native.Comm_size(comm, &size) != MPI_SUCCESS) return route;
  MPI_Group group = MPI_GROUP_NULL;
  if (native.Comm_group(comm, &group) != MPI_SUCCESS) return route;
  std::vector<int> own(static_cast<size_t>(size));
  std::iota(own.begin(), own.end(), 0);
  route->world.assign(own.size(), -1);
  if (native.Group_translate_ranks(group, size, own.data(), job.world_group(), route->world.data()) != MPI_SUCCESS) {
    route->world.clear();
  }
  native.Group_free(&group);
  return route;
}

RouteRef Routes::find_intra(MPI_Comm comm) {
  RouteRef route = find(comm);
  return route == nullptr || route->world.empty() ? nullptr : route;
}

RouteRef Routes::find(MPI_Comm comm) {
  {
    std::lock_guard lock(mutex_);
    const auto found = routes_.find(handle_key(comm));
    if (found != routes_.end()) return found->second;
  }
  if (comm == MPI_COMM_NULL) return nullptr;
  const Inside inside;
  RouteRef made = make(comm);
  // Only the attribute tells us that the communicator ends; after that another one may get its handle.
  if (made == nullptr || native.Comm_set_attr(comm, keyval_, nullptr) != MPI_SUCCESS) return nullptr;
  std::lock_guard lock(mutex_);
  return routes_.try_emplace(handle_key(comm), std::move(made)).first->second;
}

}  // namespace offpath::mpi
