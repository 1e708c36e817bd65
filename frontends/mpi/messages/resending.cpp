// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/resending.hpp"

#include "mpi/job/job.hpp"
#include "mpi/lanes/tags.hpp"
#include "mpi/messages/office.hpp"
#include "mpi/native/native.hpp"

#include <memory>

namespace offpath::mpi {
namespace {

constexpr int kFirstPayloadTag = kWordTag + 1;
constexpr uint64_t kPayloadTags = 16384;  // MPI promises tags up to 32767

}  // namespace

int Resending::open() {
  const int code = native.Comm_dup(MPI_COMM_WORLD, &comm_);
  return code == MPI_SUCCESS ? native.Comm_set_errhandler(comm_, MPI_ERRORS_RETURN) : code;
}

Seat Resending::seat() const { return {comm_, job.rank(), job.size()}; }

void Resending::close() {
  std::lock_guard lock(mutex_);
  // What nobody has received stays with the library until the process ends.
  for (Receiving& one : receiving_) native.Request_free(&one.request);
  receiving_.clear();
  answers_.clear();
  if (comm_ != MPI_COMM_NULL) native.Comm_free(&comm_);
}

bool Resending::receives() {
  std::lock_guard lock(mutex_);
  return !receiving_.empty();
}

void Resending::say(int to, const Word& word) {
  auto bytes = std::make_unique<Word>(word);
  MPI_Request request = MPI_REQUEST_NULL;
  if (native.Isend(bytes.get(), sizeof(Word), MPI_BYTE, to, kWordTag, comm_, &request) != MPI_SUCCESS) return;
  office.outbox.add(request, std::move(bytes));
}

void Resending::listen() {
  std::lock_guard lock(mutex_);
  if (comm_ == MPI_COMM_NULL) return;
  office.outbox.tidy();
  for (;;) {
    int arrived = 0;
    MPI_Status status;
    const int code = native.Iprobe(MPI_ANY_SOURCE, kWordTag, comm_, &arrived, &status);
    if (code != MPI_SUCCESS) acknowledge_loss(comm_);
    if (code != MPI_SUCCESS || arrived == 0) break;
    Word word{};
    const int from = status.MPI_SOURCE;
    if (native.Recv(&word, sizeof(word), MPI_BYTE, from, kWordTag, comm_, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    take(from, word);
  }
  std::erase_if(receiving_, [](Receiving& one) {
    int done = 0;
    if (native.Test(&one.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done == 0) return false;
    Office::note_arrival(one.ticket, one.payload);
    return true;
  });
}

void Resending::take(int from, const Word& word) {
  switch (word.said) {
    case Said::question:
      say(from, answer_to(word.ticket, from));
      break;
    case Said::here:
    case Said::wanted:
    case Said::refused:
      answers_.insert_or_assign(word.ticket.signal, word);
      break;
    case Said::held:
      held_[from] = word.held;
      if (const auto last = office.last_sends(from))
        say(from, {.said = Said::heard, .held = *last, .last = true});
      else
        say(from, {.said = Said::heard});
      break;
    case Said::heard:
      --unheard_[from];
      if (word.last) last_[from] = word.held;
      break;
  }
}

// The service may still write the same bytes to the same place, which does not matter.
Resending::Word Resending::answer_to(const Ticket& ticket, int from) {
  const bool is_own = ticket.sender == static_cast<uint64_t>(from) && ticket.bytes <= Office::kMostBytes;
  if (is_own && office.was_taken(ticket)) return {.said = Said::here, .ticket = ticket};
  std::byte* const payload = is_own ? office.find(ticket, true) : nullptr;
  if (payload == nullptr) return {.said = Said::refused, .ticket = ticket};
  if (Office::arrived(ticket, payload)) return {.said = Said::here, .ticket = ticket};
  const int tag = kFirstPayloadTag + static_cast<int>(wanted_++ % kPayloadTags);
  receiving_.push_back({MPI_REQUEST_NULL, ticket, payload});
  const int code =
      native.Irecv(payload, static_cast<int>(ticket.bytes), MPI_BYTE, from, tag, comm_, &receiving_.back().request);
  if (code == MPI_SUCCESS) return {.said = Said::wanted, .tag = tag, .ticket = ticket};
  receiving_.pop_back();
  return {.said = Said::refused, .ticket = ticket};
}

// ---- as a sender

void Resending::ask(int receiver, const Ticket& ticket) {
  std::lock_guard lock(mutex_);
  say(receiver, {.said = Said::question, .ticket = ticket});
}

std::optional<Resending::Word> Resending::answer(const Ticket& ticket) {
  std::lock_guard lock(mutex_);
  const auto found = answers_.extract(ticket.signal);
  return found.empty() ? std::nullopt : std::optional(found.mapped());
}

int Resending::send(const std::byte* payload, const Word& wanted, int receiver, MPI_Request* sent) const {
  const auto bytes = static_cast<int>(wanted.ticket.bytes);
  return native.Isend(payload, bytes, MPI_BYTE, receiver, wanted.tag, comm_, sent);
}

std::optional<uint64_t> Resending::held(int receiver) {
  std::lock_guard lock(mutex_);
  const auto found = held_.find(receiver);
  return found == held_.end() ? std::nullopt : std::optional(found->second);
}

// What is so now: another thread may have said what was so before.
void Resending::say_held(int sender) {
  const Inside inside;  // what the library calls meanwhile may come here
  std::lock_guard lock(mutex_);
  ++unheard_[sender];
  say(sender, {.said = Said::held, .held = office.held_from(sender)});
}

bool Resending::is_heard(int sender) {
  std::lock_guard lock(mutex_);
  return unheard_[sender] == 0;
}

bool Resending::may_come(int sender, uint64_t held) {
  std::lock_guard lock(mutex_);
  const auto found = last_.find(sender);
  return found == last_.end() || (found->second & held) != 0;
}

Again::Again(int receiver, const Ticket& ticket, const Payload& payload)
    : receiver_(receiver), ticket_(ticket), payload_(payload) {
  office.resending.ask(receiver_, ticket_);
}

std::optional<int> Again::advance() {
  office.resending.listen();
  if (sent_ != MPI_REQUEST_NULL) {
    int sent = 0;
    const int code = native.Test(&sent_, &sent, MPI_STATUS_IGNORE);
    return code != MPI_SUCCESS || sent != 0 ? std::optional(code) : std::nullopt;
  }
  if (!answer_) answer_ = office.resending.answer(ticket_);
  if (!answer_) {
    const bool never = office.has_lost_process(receiver_);
    return never ? std::optional(Office::code_of(OFFPATH_ERR_PEER_LOST)) : std::nullopt;
  }
  if (answer_->said == Resending::Said::here) return MPI_SUCCESS;
  if (answer_->said == Resending::Said::refused) return MPI_ERR_INTERN;
  return send();
}

std::optional<int> Again::send() {
  const std::byte* bytes = nullptr;
  if (payload_.copy != nullptr) {
    bytes = payload_.copy.get();
  } else if (const auto run = as_run(*payload_.type, payload_.address, payload_.count)) {
    bytes = reinterpret_cast<const std::byte*>(run->address);
  } else {
    packed_.resize(ticket_.bytes);
    const HeldType type(MPI_DATATYPE_NULL, payload_.type);  // by its ranges
    const int code = pack(type, payload_.address, payload_.count, packed_.data(), job.control());
    if (code != MPI_SUCCESS) return code;
    bytes = packed_.data();
  }
  const int code = office.resending.send(bytes, *answer_, receiver_, &sent_);
  return code == MPI_SUCCESS ? std::nullopt : std::optional(code);
}

}  // namespace offpath::mpi
