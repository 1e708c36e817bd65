// SPDX-License-Identifier: BSD-3-Clause
// Collectives among the DPU sides of a communicator's ranks.
#include "mpi/device/requests.hpp"

namespace offpath::regions {
namespace {

// Posts what `arguments` say; the blocking forms wait for it.
int run(const Arguments& arguments, Buffer input, Buffer output, MPI_Request* request) {
  return request == nullptr ? call(arguments, nullptr, input, output) : start(arguments, false, input, output, request);
}

int size_of(MPI_Comm comm, uint64_t* size) {
  Result result{};
  const int code = call(arguments_of(Call::comm_size, comm), &result);
  *size = result.value;
  return code;
}

int barrier(MPI_Comm comm, MPI_Request* request) { return run(arguments_of(Call::barrier, comm), {}, {}, request); }

// Everywhere input and output: the proxy knows who is the root.
int bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  Arguments arguments = arguments_of(Call::bcast, comm);
  Buffer buffer{data, 0};
  arguments.count = count;
  arguments.peer = root;
  const int code = measure(count, type, &buffer.bytes, &arguments.type);
  return code == MPI_SUCCESS ? run(arguments, buffer, buffer, request) : code;
}

int allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm,
              MPI_Request* request) {
  Arguments arguments = arguments_of(Call::allreduce, comm);
  Buffer output{out, 0};
  arguments.count = count;
  arguments.operation = operator_name(operation);
  arguments.flag = in == MPI_IN_PLACE ? 1 : 0;
  const int code = measure(count, type, &output.bytes, &arguments.type);
  const Buffer input{arguments.flag != 0 ? out : const_cast<void*>(in), output.bytes};
  return code == MPI_SUCCESS ? run(arguments, input, output, request) : code;
}

// Alltoall and allgather: `blocks` of the input per process, one of the output from each.
int exchange(Call kind, const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
             MPI_Datatype out_type, MPI_Comm comm, MPI_Request* request) {
  Arguments arguments = arguments_of(kind, comm);
  Buffer input{const_cast<void*>(in), 0};
  Buffer output{out, 0};
  uint64_t size = 0;
  uint64_t in_name = 0;
  int code = size_of(comm, &size);
  if (code == MPI_SUCCESS) code = measure(out_count, out_type, &output.bytes, &arguments.type);
  if (code != MPI_SUCCESS) return code;
  arguments.count = out_count;
  arguments.flag = in == MPI_IN_PLACE ? 1 : 0;
  if (arguments.flag != 0) {
    input = {out, output.bytes * size};
  } else {
    code = measure(in_count, in_type, &input.bytes, &in_name);
    if (code != MPI_SUCCESS) return code;
    if (input.bytes != output.bytes) return MPI_ERR_COUNT;
    if (kind == Call::alltoall) input.bytes *= size;
  }
  output.bytes *= size;
  return run(arguments, input, output, request);
}

}  // namespace

extern "C" {

int MPI_Barrier(MPI_Comm comm) { return barrier(comm, nullptr); }
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) { return barrier(comm, request); }

int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return bcast(data, count, type, root, comm, nullptr);
}
int MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return bcast(data, count, type, root, comm, request);
}

int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm) {
  return allreduce(in, out, count, type, operation, comm, nullptr);
}
int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm,
                   MPI_Request* request) {
  return allreduce(in, out, count, type, operation, comm, request);
}

int MPI_Alltoall(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type,
                 MPI_Comm comm) {
  return exchange(Call::alltoall, in, in_count, in_type, out, out_count, out_type, comm, nullptr);
}
int MPI_Ialltoall(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type,
                  MPI_Comm comm, MPI_Request* request) {
  return exchange(Call::alltoall, in, in_count, in_type, out, out_count, out_type, comm, request);
}

int MPI_Allgather(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type,
                  MPI_Comm comm) {
  return exchange(Call::allgather, in, in_count, in_type, out, out_count, out_type, comm, nullptr);
}
int MPI_Iallgather(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type,
                   MPI_Comm comm, MPI_Request* request) {
  return exchange(Call::allgather, in, in_count, in_type, out, out_count, out_type, comm, request);
}

}  // extern "C"
}  // namespace offpath::regions
