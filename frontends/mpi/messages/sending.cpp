// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking sends. The sender alone decides: a long message to a rank that has granted room is sent as a ticket, its
// payload put into that room. All else is native: blocking sends wait for the receiver anyway, buffered ones are copied by
// the library.
#include "mpi/messages/completion.hpp"
#include "mpi/messages/counts.hpp"
#include "mpi/messages/office.hpp"
#include "mpi/messages/tracked.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/types/datatype.hpp"

#include <exception>

namespace offpath::mpi {
namespace {

using NativeSend = int(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

struct Outgoing {
  const void* buffer;
  int count;
  MPI_Datatype type;
  int to;
  int tag;
  MPI_Comm comm;
};

bool good_tag(int tag) {
  static const int highest = [] {
    int* value = nullptr;
    int found = 0;
    native.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
    return found != 0 ? *value : 32767;
  }();
  return tag >= 0 && tag <= highest;
}

// What is short or cannot be offloaded for a reason that the library will tell. Costs little for those.
bool may_offload(const Outgoing& message) {
  if (!office.on() || message.count <= 0 || Inside::here() || message.type == MPI_DATATYPE_NULL) return false;
  MPI_Count size = 0;
  if (native.Type_size_x(message.type, &size) != MPI_SUCCESS || size <= 0) return false;
  return static_cast<uint64_t>(message.count) * static_cast<uint64_t>(size) >= office.least_bytes();
}

// Puts the payload on its way. Nothing: the message goes natively.
std::optional<Office::Sending> start(const Outgoing& message, const Route& route) {
  const int to = route.world_rank(message.to);
  if (to < 0 || !good_tag(message.tag)) return std::nullopt;
  const Inside inside;
  const TypeRef type = find_type(message.type, job.control());
  if (type == nullptr) return std::nullopt;
  const uint64_t bytes = static_cast<uint64_t>(message.count) * static_cast<uint64_t>(type->size_bytes);
  if (!office.offloads(to, bytes)) return std::nullopt;
  const auto address = reinterpret_cast<uintptr_t>(message.buffer);
  offpath_block_t block{0, 0, message.buffer, bytes, 0};
  offpath_layout_t layout{};
  if (const auto run = as_run(*type, address, message.count)) {
    block.address = reinterpret_cast<const void*>(run->address);
    if (run->address == 0) return std::nullopt;
  } else if (type->form == Form::layout && !type->ranges.empty()) {
    layout = {static_cast<uint64_t>(type->size_bytes), type->extent_bytes, type->ranges.data(),
              static_cast<uint32_t>(type->ranges.size())};
    block.layout = 1;
  } else {
    counts.native.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  std::optional<Office::Sending> started = office.start(to, block, &layout);
  if (started) {
    counts.offloaded.fetch_add(1, std::memory_order_relaxed);
    counts.offloaded_bytes.fetch_add(bytes, std::memory_order_relaxed);
  } else {
    counts.native.fetch_add(1, std::memory_order_relaxed);
  }
  return started;
}

// A ticket in place of the message; nullptr: it goes natively.
TrackedRef make_ticket(const Outgoing& message) {
  const RouteRef route = routes.find(message.comm);
  if (route == nullptr) return nullptr;
  std::optional<Office::Sending> started = start(message, *route);
  if (!started) return nullptr;
  return std::make_shared<TrackedSend>(route, std::move(*started));
}

const std::byte* ticket_in(const TrackedRef& sent) { return static_cast<const TrackedSend&>(*sent).ticket(); }

template <auto plain, auto as_ticket>
int send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  const Outgoing message{buffer, count, type, to, tag, comm};
  if (!may_offload(message)) return (native.*plain)(buffer, count, type, to, tag, comm, request);
  TrackedRef sent;
  try {
    sent = make_ticket(message);
  } catch (const std::exception&) {
    return raise_error(comm, MPI_ERR_NO_MEM);
  }
  if (sent == nullptr) return (native.*plain)(buffer, count, type, to, tag, comm, request);
  const int code =
      (native.*as_ticket)(ticket_in(sent), static_cast<int>(kTicketBytes), MPI_BYTE, to, tag, comm, request);
  if (code == MPI_SUCCESS) tracked.add(*request, std::move(sent));
  return code;
}

// Persistent: remembered if its messages may be long.
template <auto prepare, auto as_ticket>
int prepare_send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                 MPI_Request* request) {
  const int code = (native.*prepare)(buffer, count, type, to, tag, comm, request);
  const Outgoing message{buffer, count, type, to, tag, comm};
  if (code != MPI_SUCCESS || !may_offload(message)) return code;
  try {
    RouteRef route = routes.find(comm);
    if (route == nullptr || route->world_rank(to) < 0) return code;
    std::shared_ptr<HeldType> held;  // the application may free it
    {
      const Inside inside;
      held = std::make_shared<HeldType>(type, find_type(type, job.control()));
      if (held->hold() != MPI_SUCCESS) return code;
    }
    const auto begin = [=](MPI_Request* sent) {
      TrackedRef ticket = make_ticket({buffer, count, held->handle(), to, tag, comm});
      if (ticket == nullptr) return ticket;
      const int failed =
          (native.*as_ticket)(ticket_in(ticket), static_cast<int>(kTicketBytes), MPI_BYTE, to, tag, comm, sent);
      return failed == MPI_SUCCESS ? ticket : nullptr;
    };
    tracked.add(*request, std::make_shared<PersistentSend>(std::move(route), begin));
  } catch (const std::exception&) {  // it goes natively
  }
  return code;
}

}  // namespace

namespace handlers {

int Send_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  return prepare_send<&Native::Send_init, &Native::Isend>(buffer, count, type, to, tag, comm, request);
}

int Ssend_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  return prepare_send<&Native::Ssend_init, &Native::Issend>(buffer, count, type, to, tag, comm, request);
}

int Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  return send<&Native::Isend, &Native::Isend>(buffer, count, type, to, tag, comm, request);
}

int Issend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  return send<&Native::Issend, &Native::Issend>(buffer, count, type, to, tag, comm, request);
}

int Irsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  return send<&Native::Irsend, &Native::Isend>(buffer, count, type, to, tag, comm, request);
}

}  // namespace handlers
}  // namespace offpath::mpi
