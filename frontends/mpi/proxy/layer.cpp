// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/proxy/layer.hpp"

#include "mpi/functions/backend.h"
#include "mpi/native/handlers.hpp"
#include "mpi/proxy/layer_windows.hpp"
#include "mpi/proxy/proxy.hpp"
#include "mpi/regions/protocol.hpp"

#include <dlfcn.h>

#include <exception>
#include <tuple>

namespace offpath::mpi::regions {
namespace {

// ---- beginning and end

int init_thread(int* argc, char*** argv, int, int* provided) {
  const int code = handlers::Init_thread(argc, argv, MPI_THREAD_MULTIPLE, provided);
  if (code == MPI_SUCCESS) proxy.start(*provided);
  return code;
}

int init(int* argc, char*** argv) {
  int provided = MPI_THREAD_SINGLE;
  return init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
}

int finalize() {
  if (proxy.active()) {
    const Meeting inside;
    native.Barrier(MPI_COMM_WORLD);  // the proxies of all ranks may be needed until here
  }
  proxy.stop();
  return handlers::Finalize();
}

// ---- communicators

// The handler behind, then the other context for what it made.
template <auto* behind, typename... Arguments>
int make(Arguments... arguments) {
  const int code = (*behind)(arguments...);
  MPI_Comm* const made = std::get<sizeof...(Arguments) - 1>(std::tie(arguments...));
  if (code != MPI_SUCCESS || !proxy.active()) return code;
  try {
    proxy.contexts().adopt(*made);
  } catch (const std::exception&) {
    return code;  // regions cannot use it
  }
  return code;
}

template <auto* behind, typename... Arguments>
auto* maker(int (*)(Arguments...)) {
  return &make<behind, Arguments...>;
}

template <auto* behind>
int end(MPI_Comm* comm) {
  if (comm != nullptr && proxy.active() && !Inside::here()) proxy.contexts().forget(*comm);
  return (*behind)(comm);
}

int comm_set_info(MPI_Comm comm, MPI_Info info) {
  const Crossing word = proxy.active() ? crossing_of(info) : Crossing::unsaid;
  const auto contexts = word == Crossing::unsaid ? nullptr : proxy.contexts().find(comm);
  if (contexts != nullptr) {
    contexts->host_crosses.store(word == Crossing::on);
    proxy.contexts().note_crossing();
  }
  return contexts != nullptr && says_only_crossing(info) ? MPI_SUCCESS : handlers::Comm_set_info(comm, info);
}

// ---- messages

// Where a message of this side goes.
MPI_Comm way(MPI_Comm comm) {
  if (!proxy.contexts().any_crosses() || Inside::here()) return comm;
  const auto contexts = proxy.contexts().find(comm);
  return contexts != nullptr && contexts->host_crosses.load(std::memory_order_relaxed) ? contexts->devices : comm;
}

int raised(MPI_Comm comm, MPI_Comm used, int code) {
  if (code != MPI_SUCCESS && used != comm) native.Comm_call_errhandler(comm, code);
  return code;
}

template <auto member>
int blocking(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  const MPI_Comm used = way(comm);
  return raised(comm, used, (native.*member)(data, count, type, peer, tag, used));
}

template <auto member>
int nonblocking(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                MPI_Request* request) {
  const MPI_Comm used = way(comm);
  return raised(comm, used, (native.*member)(data, count, type, peer, tag, used, request));
}

int sendrecv(const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag, void* in, int in_count,
             MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status* status) {
  const MPI_Comm used = way(comm);
  if (used == comm) {
    return handlers::Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
  }
  MPI_Request received = MPI_REQUEST_NULL;
  int code = handlers::Irecv(in, in_count, in_type, from, in_tag, comm, &received);
  if (code != MPI_SUCCESS) return code;
  code = raised(comm, used, native.Send(out, out_count, out_type, to, out_tag, used));
  const int waited = handlers::Wait(&received, status);
  return code == MPI_SUCCESS ? waited : code;
}

}  // namespace

bool have_targets() {
  for (const char* name : {"libomptarget.rtl.x86_64.so", "libomptarget.rtl.aarch64.so"}) {
    void* const plugin = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (plugin == nullptr) continue;
    dlclose(plugin);
    return true;
  }
  return false;
}

void install(void** table) {
  const auto put = [table](int function, auto* handler) { table[function] = reinterpret_cast<void*>(handler); };
  put(OFFPATH_FUNCTION_Init, &init);
  put(OFFPATH_FUNCTION_Init_thread, &init_thread);
  put(OFFPATH_FUNCTION_Finalize, &finalize);
#define OFFPATH_MAKES(name) put(OFFPATH_FUNCTION_##name, maker<&handlers::name>(&handlers::name));
  OFFPATH_MAKES(Comm_dup)
  OFFPATH_MAKES(Comm_dup_with_info)
  OFFPATH_MAKES(Comm_split)
  OFFPATH_MAKES(Comm_split_type)
  OFFPATH_MAKES(Comm_create)
  OFFPATH_MAKES(Comm_create_group)
  OFFPATH_MAKES(Cart_create)
  OFFPATH_MAKES(Cart_sub)
  OFFPATH_MAKES(Graph_create)
  OFFPATH_MAKES(Dist_graph_create)
  OFFPATH_MAKES(Dist_graph_create_adjacent)
  OFFPATH_MAKES(Intercomm_merge)
#undef OFFPATH_MAKES
  put(OFFPATH_FUNCTION_Comm_free, &end<&handlers::Comm_free>);
  put(OFFPATH_FUNCTION_Comm_disconnect, &end<&handlers::Comm_disconnect>);
  put(OFFPATH_FUNCTION_Comm_set_info, &comm_set_info);
#define OFFPATH_SENDS(name) put(OFFPATH_FUNCTION_##name, &blocking<&Native::name>);
  OFFPATH_SENDS(Send)
  OFFPATH_SENDS(Ssend)
  OFFPATH_SENDS(Rsend)
  OFFPATH_SENDS(Bsend)
#undef OFFPATH_SENDS
#define OFFPATH_SENDS(name) put(OFFPATH_FUNCTION_##name, &nonblocking<&Native::name>);
  OFFPATH_SENDS(Isend)
  OFFPATH_SENDS(Issend)
  OFFPATH_SENDS(Irsend)
  OFFPATH_SENDS(Ibsend)
  OFFPATH_SENDS(Send_init)
  OFFPATH_SENDS(Ssend_init)
  OFFPATH_SENDS(Rsend_init)
  OFFPATH_SENDS(Bsend_init)
#undef OFFPATH_SENDS
  put(OFFPATH_FUNCTION_Sendrecv, &sendrecv);
  install_windows(table);
}

}  // namespace offpath::mpi::regions
