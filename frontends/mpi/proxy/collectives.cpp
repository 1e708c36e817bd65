// SPDX-License-Identifier: BSD-3-Clause
// Collectives of regions, among the DPU sides. Through our own handlers, so they are offloaded where the policy says
// so.
#include "mpi/native/handlers.hpp"
#include "mpi/proxy/messages.hpp"
#include "mpi/proxy/native_task.hpp"
#include "mpi/regions/names.hpp"

#include <climits>

namespace offpath::mpi::regions {
namespace {

using offpath::regions::find_operator;
using offpath::regions::find_type;
using offpath::regions::NamedType;

// How many blocks of `count` elements the two buffers have.
struct Shape {
  int input = 0;
  int output = 0;
};

Shape shape_of(const Arguments& arguments, int size) {
  switch (arguments.call) {
    case Call::bcast:
    case Call::allreduce:
      return {1, 1};
    case Call::alltoall:
      return {size, size};
    case Call::allgather:
      return {arguments.flag != 0 ? size : 1, size};
    default:
      return {0, 0};
  }
}

int check(const Upcall& upcall, const Contexts& contexts) {
  const Arguments& arguments = upcall.arguments();
  if (arguments.call == Call::barrier) return MPI_SUCCESS;
  const NamedType* const type = find_type(arguments.type);
  if (type == nullptr) return MPI_ERR_TYPE;
  if (arguments.count < 0 || arguments.count > INT_MAX) return MPI_ERR_COUNT;
  if (arguments.call == Call::allreduce && find_operator(arguments.operation) == nullptr) return MPI_ERR_OP;
  if (arguments.call == Call::bcast && (arguments.peer < 0 || arguments.peer >= contexts.size)) return MPI_ERR_ROOT;
  const uint64_t block = static_cast<uint64_t>(arguments.count) * type->bytes;
  const Shape shape = shape_of(arguments, contexts.size);
  const bool fits = upcall.input().size() == block * static_cast<uint64_t>(shape.input) &&
                    upcall.output().size() == block * static_cast<uint64_t>(shape.output);
  return fits ? MPI_SUCCESS : MPI_ERR_BUFFER;
}

int post(NativeTask& task, const Contexts& contexts) {
  const Upcall& upcall = task.upcall();
  const Arguments& arguments = upcall.arguments();
  const MPI_Comm comm = contexts.devices;
  if (arguments.call == Call::barrier) return handlers::Ibarrier(comm, task.request());
  const int count = static_cast<int>(arguments.count);
  const MPI_Datatype type = find_type(arguments.type)->handle;
  if (arguments.flag != 0 || arguments.call == Call::bcast) upcall.carry_over();
  const void* const input = arguments.flag != 0 ? MPI_IN_PLACE : upcall.input().data();
  void* const output = upcall.output().data();
  switch (arguments.call) {
    case Call::bcast:
      return handlers::Ibcast(output, count, type, arguments.peer, comm, task.request());
    case Call::allreduce:
      return handlers::Iallreduce(input, output, count, type, *find_operator(arguments.operation), comm,
                                  task.request());
    case Call::alltoall:
      return handlers::Ialltoall(input, count, type, output, count, type, comm, task.request());
    default:
      return handlers::Iallgather(input, count, type, output, count, type, comm, task.request());
  }
}

}  // namespace

std::unique_ptr<Task> start_collective(Upcall upcall, const std::shared_ptr<Contexts>& contexts) {
  int code = check(upcall, *contexts);
  if (code != MPI_SUCCESS) {
    upcall.answer(code);
    return nullptr;
  }
  auto task = std::make_unique<NativeTask>(std::move(upcall), contexts);
  code = post(*task, *contexts);
  if (code != MPI_SUCCESS) {
    task->upcall().answer(code);
    return nullptr;
  }
  return task;
}

}  // namespace offpath::mpi::regions
