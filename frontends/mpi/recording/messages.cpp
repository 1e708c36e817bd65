// SPDX-License-Identifier: BSD-3-Clause
// Messages between two processes: who sends what to whom. Not those of intercommunicators, nor what is two messages
// (MPI_Sendrecv) or none yet (probes).
#include "mpi/recording/described.hpp"
#include "mpi/recording/handlers.hpp"

namespace offpath::mpi::recording {
namespace {

constexpr int kAny = -1;  // whatever the library's number for it is

constexpr Kind k_send{"isend", Shape::vector}, k_recv{"irecv", Shape::vector};

bool leaves_out(int peer, MPI_Comm comm) {
  if (passes() || peer == MPI_PROC_NULL || comm == MPI_COMM_NULL) return true;
  int inter = 0;
  return native.Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0;
}

Posted said_of(const Kind& kind, int count, MPI_Datatype type, int peer, int tag) {
  Posted posted{kind.name, bytes_of(count, type), peer == MPI_ANY_SOURCE ? kAny : peer, {}};
  posted.message = true;
  posted.tag = tag == MPI_ANY_TAG ? kAny : tag;
  return posted;
}

// Without a request: of a call that blocks.
[[gnu::noinline]] void post(const Call& call, const Ticket& ticket, const Kind& kind, int count, MPI_Datatype type,
                            int peer, int tag, const MPI_Request* request) {
  guarded([&] { log.post(call, ticket, said_of(kind, count, type, peer, tag), request == nullptr, request); });
}

template <auto function, const Kind& kind>
struct Message;

template <typename Buffer, int (*Native::*function)(Buffer, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*),
          const Kind& kind>
struct Message<function, kind> {
  static int nonblocking(Buffer buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                         MPI_Request* request) {
    if (leaves_out(peer, comm)) return (next.*function)(buffer, count, type, peer, tag, comm, request);
    OFFPATH_POSTING(called<function>, choose_message, comm);
    const int code = (next.*function)(buffer, count, type, peer, tag, comm, request);
    if (code == MPI_SUCCESS) post(call, ticket, kind, count, type, peer, tag, request);
    return code;
  }

  static int persistent(Buffer buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                        MPI_Request* request) {
    const int code = (next.*function)(buffer, count, type, peer, tag, comm, request);
    if (code == MPI_SUCCESS && !leaves_out(peer, comm))
      guarded([&] { log.remember_persistent(*request, said_of(kind, count, type, peer, tag), comm); });
    return code;
  }
};

// Blocking.
template <auto function>
int blocking_send(const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  if (leaves_out(peer, comm)) return (next.*function)(buffer, count, type, peer, tag, comm);
  OFFPATH_POSTING(called<function>, choose_message, comm);
  const int code = (next.*function)(buffer, count, type, peer, tag, comm);
  post(call, ticket, k_send, count, type, peer, tag, nullptr);
  return code;
}

int Recv(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* status) {
  if (leaves_out(peer, comm)) return next.Recv(buffer, count, type, peer, tag, comm, status);
  OFFPATH_POSTING(called<&Native::Recv>, choose_message, comm);
  const int code = next.Recv(buffer, count, type, peer, tag, comm, status);
  post(call, ticket, k_recv, count, type, peer, tag, nullptr);
  return code;
}

}  // namespace

void set_messages(void** handlers) {
  const auto set = [handlers](int function, auto* handler) { handlers[function] = reinterpret_cast<void*>(handler); };
#define OFFPATH_SET_MESSAGE(name, kind, form) set(OFFPATH_FUNCTION_##name, &Message<&Native::name, kind>::form)
  OFFPATH_SET_MESSAGE(Isend, k_send, nonblocking);
  OFFPATH_SET_MESSAGE(Issend, k_send, nonblocking);
  OFFPATH_SET_MESSAGE(Irsend, k_send, nonblocking);
  OFFPATH_SET_MESSAGE(Ibsend, k_send, nonblocking);
  OFFPATH_SET_MESSAGE(Irecv, k_recv, nonblocking);
  OFFPATH_SET_MESSAGE(Send_init, k_send, persistent);
  OFFPATH_SET_MESSAGE(Ssend_init, k_send, persistent);
  OFFPATH_SET_MESSAGE(Rsend_init, k_send, persistent);
  OFFPATH_SET_MESSAGE(Bsend_init, k_send, persistent);
  OFFPATH_SET_MESSAGE(Recv_init, k_recv, persistent);
#undef OFFPATH_SET_MESSAGE
  set(OFFPATH_FUNCTION_Send, &blocking_send<&Native::Send>);
  set(OFFPATH_FUNCTION_Ssend, &blocking_send<&Native::Ssend>);
  set(OFFPATH_FUNCTION_Rsend, &blocking_send<&Native::Rsend>);
  set(OFFPATH_FUNCTION_Bsend, &blocking_send<&Native::Bsend>);
  set(OFFPATH_FUNCTION_Recv, &Recv);
}

}  // namespace offpath::mpi::recording
