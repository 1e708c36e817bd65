// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/proxy/messages.hpp"

#include "mpi/proxy/native_task.hpp"
#include "mpi/regions/names.hpp"

#include <climits>

namespace offpath::mpi::regions {
namespace {

using offpath::regions::find_type;
using offpath::regions::NamedType;

int highest_tag() {
  int* value = nullptr;
  int found = 0;
  native.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
  return found != 0 ? *value : 32767;
}

int check_peer(const Arguments& arguments, const Contexts& contexts, bool receives) {
  static const int highest = highest_tag();
  const bool any_peer = receives && arguments.peer == MPI_ANY_SOURCE;
  const bool any_tag = receives && arguments.tag == MPI_ANY_TAG;
  if (!any_peer && arguments.peer != MPI_PROC_NULL && (arguments.peer < 0 || arguments.peer >= contexts.size)) {
    return MPI_ERR_RANK;
  }
  return any_tag || (arguments.tag >= 0 && arguments.tag <= highest) ? MPI_SUCCESS : MPI_ERR_TAG;
}

int check_buffer(const Arguments& arguments, uint64_t bytes) {
  const NamedType* const type = find_type(arguments.type);
  if (type == nullptr) return MPI_ERR_TYPE;
  if (arguments.count < 0 || arguments.count > INT_MAX) return MPI_ERR_COUNT;
  return static_cast<uint64_t>(arguments.count) * type->bytes == bytes ? MPI_SUCCESS : MPI_ERR_BUFFER;
}

int iprobe(Upcall& upcall, const Contexts& contexts) {
  const Arguments& arguments = upcall.arguments();
  MPI_Status status{};
  int found = 0;
  const int code = native.Iprobe(arguments.peer, arguments.tag, contexts.devices, &found, &status);
  upcall.result.value = found != 0 ? 1 : 0;
  if (code != MPI_SUCCESS || found == 0) return code;
  int bytes = 0;
  native.Get_count(&status, MPI_BYTE, &bytes);
  upcall.result.source = status.MPI_SOURCE;
  upcall.result.tag = status.MPI_TAG;
  upcall.result.bytes = bytes < 0 ? 0 : static_cast<uint64_t>(bytes);
  return code;
}

int post(NativeTask& task, const Contexts& contexts, MPI_Datatype type) {
  const Upcall& upcall = task.upcall();
  const Arguments& arguments = upcall.arguments();
  const int count = static_cast<int>(arguments.count);
  if (arguments.call == Call::recv) {
    upcall.carry_over();
    return native.Irecv(upcall.output().data(), count, type, arguments.peer, arguments.tag, contexts.devices,
                        task.request());
  }
  const MPI_Comm comm = contexts.region_crosses.load(std::memory_order_relaxed) ? contexts.hosts : contexts.devices;
  const auto send = arguments.flag != 0 ? native.Issend : native.Isend;
  return send(upcall.input().data(), count, type, arguments.peer, arguments.tag, comm, task.request());
}

}  // namespace

std::unique_ptr<Task> start_message(Upcall upcall, const std::shared_ptr<Contexts>& contexts) {
  const Arguments& arguments = upcall.arguments();
  const bool receives = arguments.call != Call::send;
  int code = check_peer(arguments, *contexts, receives);
  if (arguments.call == Call::iprobe) {
    upcall.answer(code == MPI_SUCCESS ? iprobe(upcall, *contexts) : code);
    return nullptr;
  }
  if (code == MPI_SUCCESS) code = check_buffer(arguments, (receives ? upcall.output() : upcall.input()).size());
  if (code != MPI_SUCCESS) {
    upcall.answer(code);
    return nullptr;
  }
  auto task = std::make_unique<NativeTask>(std::move(upcall), contexts);
  code = post(*task, *contexts, find_type(task->upcall().arguments().type)->handle);
  if (code != MPI_SUCCESS) {
    task->upcall().answer(code);
    return nullptr;
  }
  return task;
}

}  // namespace offpath::mpi::regions
