// SPDX-License-Identifier: BSD-3-Clause
// MPI_Send, MPI_Recv and their kin.
#include "mpi/device/requests.hpp"

#include <ctime>

namespace offpath::regions {
namespace {

// What a send or a receive asks; *buffer is its memory. An MPI error class.
int prepare(Call kind, const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
            Arguments* arguments, Buffer* buffer) {
  *arguments = arguments_of(kind, comm);
  arguments->count = count;
  arguments->peer = peer;
  arguments->tag = tag;
  buffer->data = const_cast<void*>(data);
  return measure(count, type, &buffer->bytes, &arguments->type);
}

int send(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, bool synchronous = false) {
  Arguments arguments;
  Buffer buffer;
  const int code = prepare(Call::send, data, count, type, peer, tag, comm, &arguments, &buffer);
  arguments.flag = synchronous ? 1 : 0;
  return code == MPI_SUCCESS ? call(arguments, nullptr, buffer) : code;
}

int isend(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request,
          bool synchronous = false) {
  Arguments arguments;
  Buffer buffer;
  const int code = prepare(Call::send, data, count, type, peer, tag, comm, &arguments, &buffer);
  arguments.flag = synchronous ? 1 : 0;
  return code == MPI_SUCCESS ? start(arguments, false, buffer, {}, request) : code;
}

}  // namespace

extern "C" {

int MPI_Send(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  return send(data, count, type, peer, tag, comm);
}

int MPI_Ssend(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  return send(data, count, type, peer, tag, comm, true);
}

int MPI_Issend(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  return isend(data, count, type, peer, tag, comm, request, true);
}

// A native ready send may be an ordinary one.
int MPI_Rsend(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  return send(data, count, type, peer, tag, comm);
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  return isend(data, count, type, peer, tag, comm, request);
}

int MPI_Irsend(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  return isend(data, count, type, peer, tag, comm, request);
}

int MPI_Recv(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* status) {
  Arguments arguments;
  Buffer buffer;
  Result result{};
  int code = prepare(Call::recv, data, count, type, peer, tag, comm, &arguments, &buffer);
  if (code == MPI_SUCCESS) code = call(arguments, &result, buffer, buffer);
  fill_status(result, status);
  return code;
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  Arguments arguments;
  Buffer buffer;
  const int code = prepare(Call::recv, data, count, type, peer, tag, comm, &arguments, &buffer);
  return code == MPI_SUCCESS ? start(arguments, true, buffer, buffer, request) : code;
}

int MPI_Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag, void* in, int in_count,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_Irecv(in, in_count, in_type, from, in_tag, comm, &request);
  if (code != MPI_SUCCESS) return code;
  code = send(out, out_count, out_type, to, out_tag, comm);
  const int received = MPI_Wait(&request, status);
  return code == MPI_SUCCESS ? received : code;
}

int MPI_Iprobe(int peer, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  Arguments arguments = arguments_of(Call::iprobe, comm);
  arguments.peer = peer;
  arguments.tag = tag;
  Result result{};
  const int code = call(arguments, &result);
  *flag = result.value != 0 ? 1 : 0;
  if (*flag != 0) fill_status(result, status);
  return code;
}

int MPI_Probe(int peer, int tag, MPI_Comm comm, MPI_Status* status) {
  constexpr timespec kNap{0, 50'000};
  for (int flag = 0;; nanosleep(&kNap, nullptr)) {
    const int code = MPI_Iprobe(peer, tag, comm, &flag, status);
    if (code != MPI_SUCCESS || flag != 0) return code;
  }
}

}  // extern "C"
}  // namespace offpath::regions
