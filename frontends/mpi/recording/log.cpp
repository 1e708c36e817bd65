// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/log.hpp"

#include <algorithm>
#include <numeric>

namespace offpath::mpi::recording {

Log log;

// ---- operations -------------------------------------------------------------------------------------------------

Log::Communicator& Log::known(MPI_Comm comm) {
  if (const auto it = communicators_.find(comm); it != communicators_.end()) return it->second;
  int size = 0;
  MPI_Group group, world;
  native.Comm_group(comm, &group);
  native.Comm_group(MPI_COMM_WORLD, &world);
  native.Comm_size(comm, &size);
  std::vector<int> ranks(static_cast<size_t>(size)), members(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  native.Group_translate_ranks(group, size, ranks.data(), world, members.data());
  native.Group_free(&group);
  native.Group_free(&world);
  const std::vector<uint64_t> values(members.begin(), members.end());
  part_.add(Tag::communicator, 0, 0, CommunicatorBody{next_communicator_}, values);
  return communicators_[comm] = {next_communicator_++};
}

Ticket Log::choose_locked(const Communicator& on, uint32_t& count, const void* site) {
  Ticket ticket{kUnrecorded, on.number, count++};
  const bool first = sample_ == 1 || posted_from_[uint64_t{part_.site(site)} << 32 | on.number]++ % sample_ == 0;
  if (first) {
    ticket.operation = next_operation_++;
  } else {
    ++operations_left_out_;
  }
  return ticket;
}

Ticket Log::choose(MPI_Comm comm, const void* site) {
  const std::lock_guard lock(mutex_);
  Communicator& on = known(comm);
  return choose_locked(on, on.count, site);
}

Ticket Log::choose_message(MPI_Comm comm, const void* site) {
  const std::lock_guard lock(mutex_);
  Communicator& on = known(comm);
  return choose_locked(on, on.messages, site);
}

Ticket Log::choose_remote(MPI_Win window, const void* site) {
  const std::lock_guard lock(mutex_);
  const auto it = windows_.find(window);
  return it == windows_.end() ? Ticket() : choose_locked(it->second, it->second.count, site);
}

Ticket Log::choose_persistent(MPI_Request request, const void* site) {
  const std::lock_guard lock(mutex_);
  const auto it = persistent_.find(request);
  if (it == persistent_.end()) return {};
  Communicator& on = known(it->second.comm);
  return choose_locked(on, it->second.posted.message ? on.messages : on.count, site);
}

void Log::write_operation(const Call& call, const Ticket& ticket, const Posted& posted, bool blocking) {
  if (!on_) return;
  uint8_t flags = blocking ? kBlocking : 0;
  OperationBody body{ticket.operation,
                     call.begin_ns,
                     since_start_ns(),
                     posted.bytes,
                     part_.site(call.site),
                     ticket.communicator,
                     posted.root,
                     ticket.nth,
                     part_.text(posted.kind),
                     0,
                     0,
                     static_cast<uint16_t>(thread_number())};
  if (decision.why != nullptr) {
    flags = static_cast<uint8_t>(flags | kDecided | (decision.offloaded ? kOffloaded : 0));
    body.why = part_.text(decision.why);
    body.algorithm = part_.text(decision.algorithm);
  }
  const auto tag = static_cast<uint64_t>(posted.tag);
  const auto values = posted.message ? std::span(&tag, 1) : std::span<const uint64_t>(posted.sent_bytes);
  part_.add(Tag::operation, flags, part_.text(call.name), body, values);
}

void Log::post(const Call& call, const Ticket& ticket, const Posted& posted, bool blocking,
               const MPI_Request* request) {
  const std::lock_guard lock(mutex_);
  if (ticket.recorded()) write_operation(call, ticket, posted, blocking);
  if (request != nullptr) remember(*request, ticket.operation);
}

void Log::post_persistent(const Call& call, const Ticket& ticket, MPI_Request request) {
  const std::lock_guard lock(mutex_);
  const auto it = persistent_.find(request);
  if (it == persistent_.end()) return;
  if (decision.why == nullptr) decision.why = it->second.why;
  if (ticket.recorded()) write_operation(call, ticket, it->second.posted, false);
  remember(request, ticket.operation);
}

void Log::post_remote(const Call& call, const Ticket& ticket, const Posted& posted, MPI_Win window,
                      const MPI_Request* request) {
  const std::lock_guard lock(mutex_);
  if (ticket.recorded()) {
    write_operation(call, ticket, posted, false);
    remote_.push_back({window, posted.root, ticket.operation});
  }
  if (request != nullptr) remember(*request, ticket.operation);
}

void Log::remember_persistent(MPI_Request request, const Posted& posted, MPI_Comm comm) {
  const std::lock_guard lock(mutex_);
  persistent_[request] = {posted, comm, decision.why};
}

void Log::serve(uint64_t operation, const offpath_op_times_t* times, int status) {
  const std::lock_guard lock(mutex_);
  if (!on_) return;
  ServedBody body{};
  body.operation = operation;
  body.seen_ns = since_start_ns();
  body.status = status;
  const bool timed = times != nullptr && times->posted_ns >= start_ns_;
  if (timed) {
    body.posted_ns = times->posted_ns - start_ns_;
    body.started_ns = times->started_ns - start_ns_;
    body.first_byte_ns = times->first_byte_ns == 0 ? 0 : times->first_byte_ns - start_ns_;
    body.done_ns = times->done_ns - start_ns_;
    body.last_peer = times->last_peer;
  }
  part_.add(Tag::served, timed ? kTimesKnown : 0, 0, body);
}

// ---- waiting ----------------------------------------------------------------------------------------------------

void Log::remember(MPI_Request request, uint64_t operation) {
  if (spare_.empty()) {
    requests_[request] = operation;
    return;
  }
  spare_.key() = request;
  spare_.mapped() = operation;
  auto done = requests_.insert(std::move(spare_));
  if (!done.inserted) {
    done.position->second = operation;
    spare_ = std::move(done.node);
  }
}

void Log::take(MPI_Request request, uint32_t& others) {
  auto node = requests_.extract(request);
  if (node.empty()) return;
  if (node.mapped() == kUnrecorded) {
    ++others;
  } else {
    operations_.push_back(node.mapped());
  }
  spare_ = std::move(node);
}

void Log::write_wait(const Call& call, bool complete, uint32_t others) {
  if (!on_) return;
  if (sample_ > 1 && operations_.empty()) {
    ++waits_left_out_;
    return;
  }
  const WaitBody body{call.begin_ns, since_start_ns(), part_.site(call.site), others, thread_number()};
  part_.add(Tag::wait, complete ? kComplete : 0, part_.text(call.name), body, operations_);
}

void Log::wait(const Call& call, std::span<const MPI_Request> done, bool complete) {
  if (!complete && !polls_) return;
  const std::lock_guard lock(mutex_);
  operations_.clear();
  uint32_t others = 0;
  for (const MPI_Request request : done) take(request, others);
  write_wait(call, complete, others);
}

void Log::wait_remote(const Call& call, MPI_Win window, int target) {
  const std::lock_guard lock(mutex_);
  operations_.clear();
  std::erase_if(remote_, [&](const Remote& remote) {
    if (remote.window != window || (target >= 0 && remote.target != target)) return false;
    operations_.push_back(remote.operation);
    return true;
  });
  write_wait(call, true, 0);
}

void Log::mark_region(uint32_t thread, std::string_view name, bool begins) {
  const std::lock_guard lock(mutex_);
  if (!on_) return;
  if (begins) {
    user_regions_.begin(part_, thread, name, since_start_ns());
  } else {
    user_regions_.end(part_, thread, name, since_start_ns());
  }
}

void Log::remember_window(MPI_Win window, MPI_Comm comm) {
  const std::lock_guard lock(mutex_);
  windows_[window] = {known(comm).number};
}

void Log::forget_window(MPI_Win window) {
  const std::lock_guard lock(mutex_);
  windows_.erase(window);
}

void Log::forget_communicator(MPI_Comm comm) {
  const std::lock_guard lock(mutex_);
  communicators_.erase(comm);
}

}  // namespace offpath::mpi::recording
