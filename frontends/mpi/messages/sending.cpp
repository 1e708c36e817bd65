// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking sends. The sender alone decides: a long message to a rank that has granted room is sent as a ticket, its
// payload put into that room. All else is native: blocking sends wait for the receiver anyway, buffered ones are copied by
// the library.
#include "mpi/job/job.hpp"
#include "mpi/messages/office.hpp"
#include "mpi/messages/tracked.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/native/made.hpp"
#include "mpi/recording/decision.hpp"
#include "mpi/types/datatype.hpp"

#include <cstddef>
#include <exception>
#include <memory>
#include <new>

namespace offpath::mpi {
namespace {

struct Outgoing {
  const void* buffer;
  int64_t count;
  MPI_Datatype type;
  int to;
  int tag;
  MPI_Comm comm;
};

// Messages that are short, or wrong in a way that the library will report, leave here at little cost.
bool may_offload(const Outgoing& message) {
  if (!office.on() || message.count <= 0 || Inside::here()) return false;
  if (message.type == MPI_DATATYPE_NULL || message.type == MPI_Datatype{}) return false;
  MPI_Count size = 0;
  if (native.Type_size_x(message.type, &size) != MPI_SUCCESS || size <= 0) return false;
  return static_cast<uint64_t>(message.count) * static_cast<uint64_t>(size) >= office.least_bytes();
}

// So many times longer than others must be what is packed to be worth it: caller and service share a core, by default
// (docs/performance/messages.md).
constexpr uint64_t kPackedTimes = 4;

// The receiver may take elements apart, too, and a ticket is whole ones.
bool is_of_whole_elements(const DataType& type) {
  const DataType* const basic = type.predefined ? &type : type.basic.get();
  return basic != nullptr && basic->size_bytes > 0 && static_cast<int64_t>(kTicketUnit) % basic->size_bytes == 0;
}

// Of what is in too many pieces, or too short ones, for the service. nullptr: there is no room for it, or no memory.
std::unique_ptr<std::byte[]> packed(const Outgoing& message, const TypeRef& type, int to, uint64_t bytes) {
  if (!office.has_room(to, bytes)) return nullptr;
  std::unique_ptr<std::byte[]> copy(new (std::nothrow) std::byte[bytes]);
  if (copy == nullptr) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(message.buffer);
  const int code = pack(HeldType(message.type, type), address, message.count, copy.get(), job.control());
  return code == MPI_SUCCESS ? std::move(copy) : nullptr;
}

// Puts the payload on its way. Nothing: the message goes natively.
std::optional<Office::Sending> start(const Outgoing& message, int to, bool synchronous) {
  if (to < 0 || !good_tag(message.tag)) return std::nullopt;
  const Inside inside;
  const TypeRef type = find_type(message.type, job.control());
  if (type == nullptr) return std::nullopt;
  const uint64_t bytes = static_cast<uint64_t>(message.count) * static_cast<uint64_t>(type->size_bytes);
  recording::decision.why = "policy";
  if (!office.offloads(to, bytes)) return std::nullopt;
  const auto address = reinterpret_cast<uintptr_t>(message.buffer);
  offpath_block_t block{0, 0, message.buffer, bytes, 0};
  offpath_layout_t layout{};
  std::unique_ptr<std::byte[]> copy;
  bool can_go = true;
  if (const auto run = as_run(*type, address, message.count)) {
    block.address = reinterpret_cast<const void*>(run->address);
    if (run->address == 0) return std::nullopt;
  } else if (type->form == Form::layout && !type->ranges.empty()) {
    layout = {static_cast<uint64_t>(type->size_bytes), type->extent_bytes, type->ranges.data(),
              static_cast<uint32_t>(type->ranges.size())};
    block.layout = 1;
  } else {
    recording::decision.why = "form";
    if (!is_of_whole_elements(*type) || !office.offloads(to, bytes / kPackedTimes)) return std::nullopt;
    copy = packed(message, type, to, bytes);
    block.address = copy.get();
    can_go = copy != nullptr;
  }
  std::optional<Office::Sending> started;
  if (can_go) started = office.start(to, synchronous, block, &layout, type->made_of());
  if (started) {
    started->payload = {type, address, message.count, std::move(copy)};
    office.counts.offloaded.fetch_add(1, std::memory_order_relaxed);
    office.counts.offloaded_bytes.fetch_add(bytes, std::memory_order_relaxed);
  } else {
    office.counts.native.fetch_add(1, std::memory_order_relaxed);
    recording::decision.why = "room";
  }
  recording::decision.offloaded = started.has_value();
  return started;
}

// A ticket in place of the message; nullptr: it goes natively.
std::unique_ptr<TicketSend> make_ticket(const Outgoing& message, const RouteRef& route, bool synchronous) {
  if (route == nullptr) return nullptr;
  const int peer = route->world_rank(message.to);
  std::optional<Office::Sending> started = start(message, peer, synchronous);
  if (!started) return nullptr;
  return std::make_unique<TicketSend>(route, std::move(*started), peer);
}

// Count: int or MPI_Count.
template <auto plain, bool synchronous, typename Count>
int send(const void* buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  const Outgoing message{buffer, static_cast<int64_t>(count), type, to, tag, comm};
  if (request == nullptr || !may_offload(message)) {
    return (native.*plain)(buffer, count, type, to, tag, comm, request);
  }
  try {
    auto ticket = make_ticket(message, office.routes.find(comm), synchronous);
    if (ticket == nullptr) return (native.*plain)(buffer, count, type, to, tag, comm, request);
    const int code = ticket->post(to, tag, comm);
    return code == MPI_SUCCESS ? offloader.submit(std::move(ticket), request) : code;
  } catch (const std::bad_alloc&) {  // the program's error handler may throw others
    return raise_error(comm, MPI_ERR_NO_MEM);
  }
}

// Persistent: remembered if its messages may be long.
template <auto prepare, bool synchronous, typename Count>
int prepare_send(const void* buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                 MPI_Request* request) {
  Made<MPI_Request> made(request);
  const int code = (native.*prepare)(buffer, count, type, to, tag, comm, made.place());
  const Outgoing message{buffer, static_cast<int64_t>(count), type, to, tag, comm};
  if (!made.give(code, MPI_REQUEST_NULL) || !may_offload(message)) return code;
  try {
    RouteRef route = office.routes.find(comm);
    if (route == nullptr || route->world_rank(to) < 0) return code;
    std::shared_ptr<HeldType> held;  // the application may free it
    {
      const Inside inside;
      TypeRef found = find_type(type, job.control());
      if (found == nullptr) return code;  // Open MPI's Ssend_init does not mind one that is not committed
      held = std::make_shared<HeldType>(type, std::move(found));
      if (held->hold() != MPI_SUCCESS) return code;
    }
    // The communicator may be freed, which only the route is told. The library's own request still knows it.
    const auto begin = [=](MPI_Request* sent) {
      if (route->comm.load() == MPI_COMM_NULL) return false;
      auto ticket = make_ticket({buffer, message.count, held->handle(), to, tag, comm}, route, synchronous);
      return ticket != nullptr && ticket->post(to, tag, comm) == MPI_SUCCESS &&
             offloader.submit(std::move(ticket), sent) == MPI_SUCCESS;
    };
    standings.add(*request, std::make_unique<PersistentSend>(*request, std::move(route), begin));
  } catch (const std::exception&) {  // it goes natively
  }
  return code;
}

}  // namespace

namespace handlers {

#define OFFPATH_SENDS(suffix, Count)                                                                         \
  int Isend##suffix(const void* buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,      \
                    MPI_Request* request) {                                                                  \
    return send<&Native::Isend##suffix, false>(buffer, count, type, to, tag, comm, request);                 \
  }                                                                                                          \
  int Issend##suffix(const void* buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,     \
                     MPI_Request* request) {                                                                 \
    return send<&Native::Issend##suffix, true>(buffer, count, type, to, tag, comm, request);                 \
  }                                                                                                          \
  int Irsend##suffix(const void* buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,     \
                     MPI_Request* request) {                                                                 \
    return send<&Native::Irsend##suffix, false>(buffer, count, type, to, tag, comm, request);                \
  }                                                                                                          \
  int Send_init##suffix(const void* buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,  \
                        MPI_Request* request) {                                                              \
    return prepare_send<&Native::Send_init##suffix, false>(buffer, count, type, to, tag, comm, request);     \
  }                                                                                                          \
  int Ssend_init##suffix(const void* buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
                         MPI_Request* request) {                                                             \
    return prepare_send<&Native::Ssend_init##suffix, true>(buffer, count, type, to, tag, comm, request);     \
  }
OFFPATH_SENDS(, int)
OFFPATH_SENDS(_c, MPI_Count)
#undef OFFPATH_SENDS

}  // namespace handlers
}  // namespace offpath::mpi
