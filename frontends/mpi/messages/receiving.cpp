// SPDX-License-Identifier: BSD-3-Clause
// Receives. The native one matches; if what it has brought is a ticket, the payload takes its place: before a blocking
// call returns, or in the call that completes the request. What a probe has taken out is looked for first.
#include "mpi/messages/office.hpp"
#include "mpi/messages/tracked.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/native/made.hpp"

#include <exception>

namespace offpath::mpi {
namespace {

// The buffer of a receive, as the call states it. Count: int or MPI_Count.
template <typename Count>
struct Into {
  void* buffer;
  Count count;
  MPI_Datatype type;

  bool holds_a_ticket() const { return ReceivedElements::hold_a_ticket(static_cast<int64_t>(count), type); }
  ReceivedElements elements() const { return {buffer, static_cast<int64_t>(count), type}; }
  int receive(MPI_Message* message, MPI_Status* status) const {
    if constexpr (sizeof(Count) == sizeof(int))
      return native.Mrecv(buffer, count, type, message, status);
    else
      return native.Mrecv_c(buffer, count, type, message, status);
  }
  int start(MPI_Message* message, MPI_Request* request) const {
    if constexpr (sizeof(Count) == sizeof(int))
      return native.Imrecv(buffer, count, type, message, request);
    else
      return native.Imrecv_c(buffer, count, type, message, request);
  }
};

using Posting = KeptMessages::Posting;

// What a probe has kept, if a call of the program's receives it.
std::optional<Matched> take_kept(int from, int tag, MPI_Comm comm, Posting* posting) {
  return office.may_reach(from) ? office.kept_messages.take(from, tag, comm, posting) : std::nullopt;
}

// ---- blocking

// The tail of a receive that has succeeded. MPI error code after the handler was called.
template <typename Count>
int finish(const Into<Count>& into, const Route& route, MPI_Status* status) {
  int code = MPI_SUCCESS;
  try {
    ReceivedElements elements = into.elements();
    code = receive_payload(route, elements, status);
  } catch (const std::exception&) {
    code = MPI_ERR_NO_MEM;
  }
  return code == MPI_SUCCESS ? code : route.raise(code);
}

// By what was matched, as the communicator may have been freed since.
template <typename Count>
int receive_matched(const Into<Count>& into, Matched& matched, MPI_Status* given) {
  MPI_Status own;
  MPI_Status* const status = status_or(given, &own);
  const int code = into.receive(&matched.message, status);
  matched.correct(status);
  if (code != MPI_SUCCESS) return matched.again ? matched.route->raise(code) : code;
  return into.holds_a_ticket() ? finish(into, *matched.route, status) : code;
}

// What was not kept. `receive`: the native call, given a status. The library looks at the arguments first, as what we ask about
// wrong ones would be an error elsewhere.
template <typename Count, typename Receive>
int receive_new(const Into<Count>& into, int from, MPI_Comm comm, MPI_Status* given, Receive&& receive) {
  if (!office.may_reach(from)) return receive(given);
  MPI_Status own;
  MPI_Status* const status = status_or(given, &own);
  const int code = receive(status);
  if (code != MPI_SUCCESS || !into.holds_a_ticket()) return code;
  try {
    const RouteRef route = office.routes.find_intra(comm);
    return route == nullptr ? code : finish(into, *route, status);
  } catch (const std::exception&) {
    return raise_error(comm, MPI_ERR_NO_MEM);
  }
}

template <typename Count, typename Receive>
int receive_now(const Into<Count>& into, int from, int tag, MPI_Comm comm, MPI_Status* given, Receive&& receive) {
  Posting posting;
  if (auto matched = take_kept(from, tag, comm, &posting)) return receive_matched(into, *matched, given);
  return receive_new(into, from, comm, given, receive);
}

// ---- with requests

// Has `keep` keep what a request of ours needs; `keep` may find that it is none. MPI error code after the handler was called.
template <typename Keep>
int remember(MPI_Comm comm, Keep&& keep) {
  int kept = MPI_SUCCESS;
  try {
    kept = keep();
  } catch (const std::exception&) {
    kept = MPI_ERR_NO_MEM;
  }
  return kept == MPI_SUCCESS ? kept : raise_error(comm, kept);
}

// After a native call that has started it. `matched`: nullptr, or what it receives.
template <typename Count>
int track(const Into<Count>& into, MPI_Comm comm, MPI_Request* request, const Matched* matched = nullptr,
          OtherHalf other_half = {}) {
  return remember(comm, [&] {
    RouteRef route = matched != nullptr ? matched->route : office.routes.find_intra(comm);
    if (route == nullptr) return MPI_SUCCESS;
    const Held made(*new TrackedReceive(std::move(route), into.elements()));
    auto& receive = static_cast<TrackedReceive&>(*made);
    if (matched != nullptr) receive.is_of(*matched);
    receive.goes_with(std::move(other_half));
    const int kept = receive.keep(&ReceivedElements::keep);
    if (kept == MPI_SUCCESS) offloader.follow(*request, receive);
    return kept;
  });
}

template <typename Count>
int start_matched(const Into<Count>& into, Matched& matched, MPI_Request* request) {
  const MPI_Comm comm = matched.route->comm.load();
  Made<MPI_Request> made(request);
  const int code = into.start(&matched.message, made.place());
  const bool begun = made.give(code, MPI_REQUEST_NULL);
  if (code != MPI_SUCCESS) return matched.again ? matched.route->raise(code) : code;
  return begun && (matched.again || into.holds_a_ticket()) ? track(into, comm, request, &matched) : code;
}

// Whether the message may be a ticket. Without memory to find that out it may.
template <typename Count>
bool may_be_ticket(const Into<Count>& into, int from, MPI_Comm comm) {
  if (!office.may_reach(from) || !into.holds_a_ticket()) return false;
  try {
    const RouteRef route = office.routes.find_intra(comm);
    return route != nullptr && (from == MPI_ANY_SOURCE || office.may_send_tickets(route->world_rank(from)));
  } catch (const std::exception&) {
    return true;
  }
}

template <typename Count, typename Start>
int start_new(const Into<Count>& into, int from, MPI_Comm comm, MPI_Request* request, Start&& begin) {
  Made<MPI_Request> made(request);
  const int code = begin(made.place());
  const bool begun = made.give(code, MPI_REQUEST_NULL);
  return begun && may_be_ticket(into, from, comm) ? track(into, comm, request) : code;
}

template <typename Count, typename Start>
int start(const Into<Count>& into, int from, int tag, MPI_Comm comm, MPI_Request* request, Start&& begin) {
  Posting posting;
  if (auto matched = take_kept(from, tag, comm, &posting)) return start_matched(into, *matched, request);
  return start_new(into, from, comm, request, begin);
}

// Persistent: what a probe keeps by then, its starts will find.
template <typename Count>
int prepare(const Into<Count>& into, int from, int tag, MPI_Comm comm, MPI_Request* request, auto init) {
  Made<MPI_Request> made(request);
  const int code = init(into.buffer, into.count, into.type, from, tag, comm, made.place());
  if (!made.give(code, MPI_REQUEST_NULL) || !office.may_reach(from)) return code;
  return remember(comm, [&] {
    RouteRef route = office.routes.find_intra(comm);
    if (route == nullptr) return MPI_SUCCESS;
    auto receive = std::make_unique<TrackedReceive>(std::move(route), into.elements());
    const int kept = receive->keep(&ReceivedElements::keep_handle);
    if (kept != MPI_SUCCESS) return kept;
    standings.add(*request, std::make_unique<PersistentReceive>(*request, std::move(receive), from, tag));
    return kept;
  });
}

// ---- what the program has matched itself

template <typename Count, typename Receive>
int receive_message(const Into<Count>& into, MPI_Message* message, MPI_Status* status, Receive&& receive) {
  if (!office.on() || Inside::here() || *message == MPI_MESSAGE_NO_PROC) return receive();
  auto matched = office.kept_messages.take_back(*message);
  if (!matched) return receive();
  const int code = receive_matched(into, *matched, status);
  *message = matched->message;
  return code;
}

template <typename Count, typename Start>
int start_message(const Into<Count>& into, MPI_Message* message, MPI_Request* request, Start&& begin) {
  if (!office.on() || Inside::here() || *message == MPI_MESSAGE_NO_PROC) return begin();
  auto matched = office.kept_messages.take_back(*message);
  if (!matched) return begin();
  const int code = start_matched(into, *matched, request);
  *message = matched->message;
  return code;
}

// ---- both ways

// While one that was kept is received, the other half goes on by itself.
template <typename Count, typename Send>
int receive_beside(const Into<Count>& into, Matched& matched, MPI_Status* status, Send&& send) {
  MPI_Request sent = MPI_REQUEST_NULL;
  int code = send(&sent);
  if (code != MPI_SUCCESS) return code;
  code = receive_matched(into, matched, status);
  const int waited = native.Wait(&sent, MPI_STATUS_IGNORE);
  return code == MPI_SUCCESS ? waited : code;
}

// A copy of what is sent, for a receive that writes over it. MPI error code after the handler was called.
template <typename Count>
int copy_of(const Into<Count>& into, MPI_Comm comm, std::vector<std::byte>* copy) {
  int code = MPI_SUCCESS;
  try {
    const Inside inside;
    code = into.elements().copy(copy);
  } catch (const std::exception&) {
    code = MPI_ERR_NO_MEM;
  }
  return code == MPI_SUCCESS ? code : raise_error(comm, code);
}

// By two calls: the library's one for both (MPICH 4.0) says nothing in its status. The request of the receive stands for
// both.
template <typename Count, typename Send>
int start_both(const Into<Count>& into, int from, int tag, MPI_Comm comm, std::optional<Matched>& matched,
               MPI_Request* request, std::vector<std::byte> copy, Send&& send) {
  Made<MPI_Request> made(request);
  int code = matched ? into.start(&matched->message, made.place())
                     : native.Irecv_c(into.buffer, static_cast<MPI_Count>(into.count), into.type, from, tag, comm,
                                      made.place());
  const bool begun = made.give(code, MPI_REQUEST_NULL);
  if (code != MPI_SUCCESS) return matched ? matched->route->raise(code) : code;
  if (!begun) return code;
  OtherHalf other_half{MPI_REQUEST_NULL, std::move(copy)};
  code = send(other_half.copy, &other_half.request);
  if (code == MPI_SUCCESS) {
    return track(into, comm, request, matched ? &*matched : nullptr, std::move(other_half));
  }
  native.Cancel(request);
  native.Request_free(request);
  return code;
}

template <typename Count>
int sendrecv(const void* out, Count out_count, MPI_Datatype out_type, int to, int out_tag, const Into<Count>& into,
             int from, int tag, MPI_Comm comm, MPI_Status* status, auto call) {
  Posting posting;
  if (auto matched = take_kept(from, tag, comm, &posting)) {
    return receive_beside(into, *matched, status, [&](MPI_Request* sent) {
      return native.Isend_c(out, static_cast<MPI_Count>(out_count), out_type, to, out_tag, comm, sent);
    });
  }
  return receive_new(into, from, comm, status, [&](MPI_Status* used) {
    return call(out, out_count, out_type, to, out_tag, into.buffer, into.count, into.type, from, tag, comm, used);
  });
}

template <typename Count>
int isendrecv(const void* out, Count out_count, MPI_Datatype out_type, int to, int out_tag, const Into<Count>& into,
              int from, int tag, MPI_Comm comm, MPI_Request* request, auto call) {
  Posting posting;
  auto matched = take_kept(from, tag, comm, &posting);
  if (!matched && !may_be_ticket(into, from, comm)) {
    return call(out, out_count, out_type, to, out_tag, into.buffer, into.count, into.type, from, tag, comm, request);
  }
  return start_both(into, from, tag, comm, matched, request, {}, [&](const auto&, MPI_Request* sent) {
    return native.Isend_c(out, static_cast<MPI_Count>(out_count), out_type, to, out_tag, comm, sent);
  });
}

template <typename Count>
int sendrecv_replace(const Into<Count>& into, int to, int out_tag, int from, int tag, MPI_Comm comm, MPI_Status* status,
                     auto call) {
  Posting posting;
  if (auto matched = take_kept(from, tag, comm, &posting)) {
    std::vector<std::byte> copy;
    if (const int code = copy_of(into, comm, &copy); code != MPI_SUCCESS) return code;
    return receive_beside(into, *matched, status, [&](MPI_Request* sent) {
      return native.Isend_c(copy.data(), static_cast<MPI_Count>(copy.size()), MPI_BYTE, to, out_tag, comm, sent);
    });
  }
  return receive_new(into, from, comm, status, [&](MPI_Status* used) {
    return call(into.buffer, into.count, into.type, to, out_tag, from, tag, comm, used);
  });
}

template <typename Count>
int isendrecv_replace(const Into<Count>& into, int to, int out_tag, int from, int tag, MPI_Comm comm,
                      MPI_Request* request, auto call) {
  Posting posting;
  auto matched = take_kept(from, tag, comm, &posting);
  if (!matched && !may_be_ticket(into, from, comm)) {
    return call(into.buffer, into.count, into.type, to, out_tag, from, tag, comm, request);
  }
  std::vector<std::byte> copy;
  if (const int code = copy_of(into, comm, &copy); code != MPI_SUCCESS) return code;
  return start_both(into, from, tag, comm, matched, request, std::move(copy), [&](const auto& kept, MPI_Request* sent) {
    return native.Isend_c(kept.data(), static_cast<MPI_Count>(kept.size()), MPI_BYTE, to, out_tag, comm, sent);
  });
}

}  // namespace

namespace handlers {

#define OFFPATH_RECEIVES(suffix, Count)                                                                                \
  int Recv##suffix(void* buffer, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,                     \
                   MPI_Status* status) {                                                                               \
    return receive_now(Into<Count>{buffer, count, type}, from, tag, comm, status, [&](MPI_Status* used) {              \
      return native.Recv##suffix(buffer, count, type, from, tag, comm, used);                                          \
    });                                                                                                                \
  }                                                                                                                    \
  int Irecv##suffix(void* buffer, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,                    \
                    MPI_Request* request) {                                                                            \
    return start(Into<Count>{buffer, count, type}, from, tag, comm, request,                                           \
                 [&](MPI_Request* made) { return native.Irecv##suffix(buffer, count, type, from, tag, comm, made); }); \
  }                                                                                                                    \
  int Recv_init##suffix(void* buffer, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,                \
                        MPI_Request* request) {                                                                        \
    return prepare(Into<Count>{buffer, count, type}, from, tag, comm, request, native.Recv_init##suffix);              \
  }                                                                                                                    \
  int Mrecv##suffix(void* buffer, Count count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {          \
    return receive_message(Into<Count>{buffer, count, type}, message, status,                                          \
                           [&] { return native.Mrecv##suffix(buffer, count, type, message, status); });                \
  }                                                                                                                    \
  int Imrecv##suffix(void* buffer, Count count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {       \
    return start_message(Into<Count>{buffer, count, type}, message, request,                                           \
                         [&] { return native.Imrecv##suffix(buffer, count, type, message, request); });                \
  }                                                                                                                    \
  int Sendrecv##suffix(const void* out, Count out_count, MPI_Datatype out_type, int to, int out_tag, void* in,         \
                       Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {         \
    return sendrecv(out, out_count, out_type, to, out_tag, Into<Count>{in, count, type}, from, tag, comm, status,      \
                    native.Sendrecv##suffix);                                                                          \
  }                                                                                                                    \
  int Isendrecv##suffix(const void* out, Count out_count, MPI_Datatype out_type, int to, int out_tag, void* in,        \
                        Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {      \
    return isendrecv(out, out_count, out_type, to, out_tag, Into<Count>{in, count, type}, from, tag, comm, request,    \
                     native.Isendrecv##suffix);                                                                        \
  }                                                                                                                    \
  int Sendrecv_replace##suffix(void* buffer, Count count, MPI_Datatype type, int to, int out_tag, int from, int tag,   \
                               MPI_Comm comm, MPI_Status* status) {                                                    \
    return sendrecv_replace(Into<Count>{buffer, count, type}, to, out_tag, from, tag, comm, status,                    \
                            native.Sendrecv_replace##suffix);                                                          \
  }                                                                                                                    \
  int Isendrecv_replace##suffix(void* buffer, Count count, MPI_Datatype type, int to, int out_tag, int from, int tag,  \
                                MPI_Comm comm, MPI_Request* request) {                                                 \
    return isendrecv_replace(Into<Count>{buffer, count, type}, to, out_tag, from, tag, comm, request,                  \
                             native.Isendrecv_replace##suffix);                                                        \
  }
OFFPATH_RECEIVES(, int)
OFFPATH_RECEIVES(_c, MPI_Count)
#undef OFFPATH_RECEIVES

}  // namespace handlers
}  // namespace offpath::mpi
