// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/substitutes.hpp"

#include "mpi/native/elements.hpp"
#include "mpi/native/narrowed.hpp"
#include "mpi/native/native.hpp"
#include "mpi/native/signatures.hpp"

#include <climits>

namespace offpath::mpi {
namespace {

[[gnu::noinline]] int refuse(MPI_Comm comm, int code) {
  native.Comm_call_errhandler(comm, code);
  return code;
}

template <typename Width, typename... Fields>
struct Substituted : Signature<Width, Fields...> {
  // `small`: the function of the library; its arguments are Small's.
  template <typename Small, auto small, Meaning meaning, Until until, typename... Tail>
  static int call(typename Fields::Value... values, MPI_Comm comm, Tail... tail) {
    const Narrowed narrowed(Signature<Width, Fields...>::collect(values...), meaning, until, comm);
    if (narrowed.code() != MPI_SUCCESS) return refuse(comm, narrowed.code());
    return Small::call(native.*small, narrowed.arguments(), comm, tail...);
  }
};

using Wide = Signatures<Substituted, LargeCounts>;
using Plain = Signatures<Signature, SmallCounts>;

// One-sided. The forms differ in whether a request comes last.
struct Remote {
  template <auto small, typename Origin, typename... Request>
  static int move(Origin origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint displacement,
                  MPI_Count count, MPI_Datatype type, MPI_Win win, Request... request) {
    const Elements own(origin_count, origin_type), there(count, type);
    if (const int code = failure(win, {own.code(), there.code()}); code != MPI_SUCCESS) return code;
    return (native.*small)(origin, own.count(), own.type(), target, displacement, there.count(), there.type(), win,
                           request...);
  }

  template <auto small, typename... Request>
  static int accumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                        MPI_Aint displacement, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win,
                        Request... request) {
    const Elements own(origin_count, origin_type), there(count, type);
    if (const int code = failure(win, {own.code(), there.code()}); code != MPI_SUCCESS) return code;
    return (native.*small)(origin, own.count(), own.type(), target, displacement, there.count(), there.type(), op, win,
                           request...);
  }

  template <auto small, typename... Request>
  static int get_accumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, void* result,
                            MPI_Count result_count, MPI_Datatype result_type, int target, MPI_Aint displacement,
                            MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win, Request... request) {
    // With MPI_NO_OP nothing of the origin is looked at.
    const bool sends = op != MPI_NO_OP;
    const Elements own(sends ? origin_count : 0, origin_type), back(result_count, result_type), there(count, type);
    if (const int code = failure(win, {own.code(), back.code(), there.code()}); code != MPI_SUCCESS) return code;
    return (native.*small)(origin, own.count(), own.type(), result, back.count(), back.type(), target, displacement,
                           there.count(), there.type(), op, win, request...);
  }

  static int failure(MPI_Win win, std::initializer_list<int> codes) {
    for (const int code : codes) {
      if (code == MPI_SUCCESS) continue;
      native.Win_call_errhandler(win, code);
      return code;
    }
    return MPI_SUCCESS;
  }
};

// Windows, whose unit of displacements is what is larger.
int create_window(void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  if (unit > INT_MAX) return refuse(comm, MPI_ERR_DISP);
  return native.Win_create(base, size, static_cast<int>(unit), info, comm, win);
}

int allocate_window(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  if (unit > INT_MAX) return refuse(comm, MPI_ERR_DISP);
  return native.Win_allocate(size, static_cast<int>(unit), info, comm, base, win);
}

// Point-to-point.
struct Message {
  template <auto small, typename Buffer, typename... Rest>
  static int move(Buffer* buffer, MPI_Count count, MPI_Datatype type, Rest... rest) {
    const Elements elements(count, type);
    if (elements.code() != MPI_SUCCESS) return refuse(MPI_COMM_WORLD, elements.code());
    return (native.*small)(buffer, elements.count(), elements.type(), rest...);
  }
  template <auto small, typename Last>
  static int both(const void* out, MPI_Count out_count, MPI_Datatype out_type, int to, int out_tag, void* in,
                  MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, Last last) {
    const Elements sent(out_count, out_type), received(count, type);
    for (const int code : {sent.code(), received.code()}) {
      if (code != MPI_SUCCESS) return refuse(comm, code);
    }
    return (native.*small)(out, sent.count(), sent.type(), to, out_tag, in, received.count(), received.type(), from,
                           tag, comm, last);
  }
};

// Files. The forms differ in whether an offset comes first.
[[gnu::noinline]] int refuse(MPI_File file, int code) {
  native.File_call_errhandler(file, code);
  return code;
}
template <auto small>
struct OfFile;
template <typename Buffer, typename... Rest, int (*Native::*small)(MPI_File, Buffer*, int, MPI_Datatype, Rest...)>
struct OfFile<small> {
  static int call(MPI_File file, Buffer* buffer, MPI_Count count, MPI_Datatype type, Rest... rest) {
    const Elements elements(count, type);
    if (elements.code() != MPI_SUCCESS) return refuse(file, elements.code());
    return (native.*small)(file, buffer, elements.count(), elements.type(), rest...);
  }
};
template <typename Buffer, typename... Rest,
          int (*Native::*small)(MPI_File, MPI_Offset, Buffer*, int, MPI_Datatype, Rest...)>
struct OfFile<small> {
  static int call(MPI_File file, MPI_Offset offset, Buffer* buffer, MPI_Count count, MPI_Datatype type, Rest... rest) {
    const Elements elements(count, type);
    if (elements.code() != MPI_SUCCESS) return refuse(file, elements.code());
    return (native.*small)(file, offset, buffer, elements.count(), elements.type(), rest...);
  }
};

// An MPI 3 that is looked in for functions of MPI 4.
int no_isendrecv(const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int, MPI_Comm comm,
                 MPI_Request*) {
  return refuse(comm, MPI_ERR_UNSUPPORTED_OPERATION);
}
int no_isendrecv_replace(void*, int, MPI_Datatype, int, int, int, int, MPI_Comm comm, MPI_Request*) {
  return refuse(comm, MPI_ERR_UNSUPPORTED_OPERATION);
}
template <typename... Arguments>
int no_statuses(Arguments...) {
  return refuse(MPI_COMM_SELF, MPI_ERR_UNSUPPORTED_OPERATION);
}

template <auto member, auto small>
void add(Native* functions, auto* substitute) {
  if (functions->*member == nullptr && functions->*small != nullptr) functions->*member = substitute;
}

}  // namespace

void add_substitutes(Native* functions) {
#define OFFPATH_ADD(name, signature, meaning, until, ...)                                                         \
  add<&Native::name##_c, &Native::name>(functions,                                                                \
                                        &Wide::signature::call<Plain::signature, &Native::name, Meaning::meaning, \
                                                               Until::until __VA_OPT__(, ) __VA_ARGS__>);
#define OFFPATH_COLLECTIVE(name, small, signature, meaning, ...)    \
  OFFPATH_ADD(name, signature, meaning, returned)                   \
  OFFPATH_ADD(I##small, signature, meaning, for_ever, MPI_Request*) \
  OFFPATH_ADD(name##_init, signature, meaning, for_ever, MPI_Info, MPI_Request*)
#include "mpi/native/collectives.def"

  if (functions->Isendrecv == nullptr) functions->Isendrecv = &no_isendrecv;
  if (functions->Isendrecv_replace == nullptr) functions->Isendrecv_replace = &no_isendrecv_replace;
  if (functions->Request_get_status_all == nullptr) functions->Request_get_status_all = &no_statuses;
  if (functions->Request_get_status_any == nullptr) functions->Request_get_status_any = &no_statuses;
  if (functions->Request_get_status_some == nullptr) functions->Request_get_status_some = &no_statuses;
#define OFFPATH_ADD_MESSAGE(name, ...) add<&Native::name##_c, &Native::name>(functions, &Message::__VA_ARGS__);
  OFFPATH_ADD_MESSAGE(Send, move<&Native::Send, const void, int, int, MPI_Comm>)
  OFFPATH_ADD_MESSAGE(Ssend, move<&Native::Ssend, const void, int, int, MPI_Comm>)
  OFFPATH_ADD_MESSAGE(Rsend, move<&Native::Rsend, const void, int, int, MPI_Comm>)
  OFFPATH_ADD_MESSAGE(Isend, move<&Native::Isend, const void, int, int, MPI_Comm, MPI_Request*>)
  OFFPATH_ADD_MESSAGE(Issend, move<&Native::Issend, const void, int, int, MPI_Comm, MPI_Request*>)
  OFFPATH_ADD_MESSAGE(Irsend, move<&Native::Irsend, const void, int, int, MPI_Comm, MPI_Request*>)
  OFFPATH_ADD_MESSAGE(Send_init, move<&Native::Send_init, const void, int, int, MPI_Comm, MPI_Request*>)
  OFFPATH_ADD_MESSAGE(Ssend_init, move<&Native::Ssend_init, const void, int, int, MPI_Comm, MPI_Request*>)
  OFFPATH_ADD_MESSAGE(Recv, move<&Native::Recv, void, int, int, MPI_Comm, MPI_Status*>)
  OFFPATH_ADD_MESSAGE(Irecv, move<&Native::Irecv, void, int, int, MPI_Comm, MPI_Request*>)
  OFFPATH_ADD_MESSAGE(Recv_init, move<&Native::Recv_init, void, int, int, MPI_Comm, MPI_Request*>)
  OFFPATH_ADD_MESSAGE(Mrecv, move<&Native::Mrecv, void, MPI_Message*, MPI_Status*>)
  OFFPATH_ADD_MESSAGE(Imrecv, move<&Native::Imrecv, void, MPI_Message*, MPI_Request*>)
  OFFPATH_ADD_MESSAGE(Sendrecv_replace,
                      move<&Native::Sendrecv_replace, void, int, int, int, int, MPI_Comm, MPI_Status*>)
  OFFPATH_ADD_MESSAGE(Isendrecv_replace,
                      move<&Native::Isendrecv_replace, void, int, int, int, int, MPI_Comm, MPI_Request*>)
  OFFPATH_ADD_MESSAGE(Sendrecv, both<&Native::Sendrecv, MPI_Status*>)
  OFFPATH_ADD_MESSAGE(Isendrecv, both<&Native::Isendrecv, MPI_Request*>)

#define OFFPATH_ADD_FILE(name) add<&Native::name##_c, &Native::name>(functions, &OfFile<&Native::name>::call);
#define OFFPATH_ADD_FILES(way)        \
  OFFPATH_ADD_FILE(File_i##way)       \
  OFFPATH_ADD_FILE(File_i##way##_all) \
  OFFPATH_ADD_FILE(File_##way##_all_begin)
  OFFPATH_ADD_FILES(read)
  OFFPATH_ADD_FILES(read_at)
  OFFPATH_ADD_FILES(write)
  OFFPATH_ADD_FILES(write_at)
  OFFPATH_ADD_FILE(File_read)
  OFFPATH_ADD_FILE(File_read_all)
  OFFPATH_ADD_FILE(File_write)
  OFFPATH_ADD_FILE(File_write_at)
  OFFPATH_ADD_FILE(File_write_all)
  OFFPATH_ADD_FILE(File_write_at_all)
  OFFPATH_ADD_FILE(File_write_shared)
  OFFPATH_ADD_FILE(File_write_ordered)
  OFFPATH_ADD_FILE(File_write_ordered_begin)
  OFFPATH_ADD_FILE(File_iwrite_shared)

#define OFFPATH_ADD_REMOTE(name, ...) add<&Native::name##_c, &Native::name>(functions, &Remote::__VA_ARGS__);
  add<&Native::Win_create_c, &Native::Win_create>(functions, &create_window);
  add<&Native::Win_allocate_c, &Native::Win_allocate>(functions, &allocate_window);
  OFFPATH_ADD_REMOTE(Put, move<&Native::Put, const void*>)
  OFFPATH_ADD_REMOTE(Get, move<&Native::Get, void*>)
  OFFPATH_ADD_REMOTE(Accumulate, accumulate<&Native::Accumulate>)
  OFFPATH_ADD_REMOTE(Get_accumulate, get_accumulate<&Native::Get_accumulate>)
  OFFPATH_ADD_REMOTE(Rput, move<&Native::Rput, const void*, MPI_Request*>)
  OFFPATH_ADD_REMOTE(Rget, move<&Native::Rget, void*, MPI_Request*>)
  OFFPATH_ADD_REMOTE(Raccumulate, accumulate<&Native::Raccumulate, MPI_Request*>)
  OFFPATH_ADD_REMOTE(Rget_accumulate, get_accumulate<&Native::Rget_accumulate, MPI_Request*>)
}

}  // namespace offpath::mpi
