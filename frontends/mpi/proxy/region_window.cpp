// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/proxy/region_window.hpp"

#include <climits>
#include <cstring>

namespace offpath::mpi::regions {
namespace {

// True: the request has ended; *code is its error.
bool ended(MPI_Request* request, int* code) {
  const Inside inside;
  int done = 0;
  *code = native.Test(request, &done, MPI_STATUS_IGNORE);
  return *code != MPI_SUCCESS || done != 0;
}

}  // namespace

RegionWindow::RegionWindow(Upcall created, std::shared_ptr<Contexts> contexts, uint64_t name)
    : contexts_(std::move(contexts)), name_(name), channel_(created.channel()), waiting_(std::move(created)) {
  create();
}

void RegionWindow::create() {
  const Arguments& arguments = waiting_.arguments();
  const Inside inside;
  alone_ = arguments.flag == static_cast<int32_t>(Crossing::off);
  crosses_ = arguments.flag == static_cast<int32_t>(Crossing::on);
  bytes_ = arguments.bytes;
  unit_ = arguments.count;
  number_ = alone_ ? 0 : contexts_->region_windows++;
  base_ = bytes_ == 0 ? nullptr : static_cast<std::byte*>(waiting_.view(arguments.address, bytes_));
  shadowed_ = base_ == nullptr && bytes_ != 0;
  if (shadowed_) {
    shadow_.assign(waiting_.input().begin(), waiting_.input().end());
    base_ = shadow_.data();
  }
  // All DPU sides have come here when it is done.
  const int code = native.Comm_idup(contexts_->devices, &comm_, &progress_);
  if (code != MPI_SUCCESS) close(code);
}

// After the duplicate is there: waits for the host's window.
void RegionWindow::finish_creation() {
  int code = MPI_SUCCESS;
  if (progress_ != MPI_REQUEST_NULL) {
    if (!ended(&progress_, &code)) return;
    if (code != MPI_SUCCESS) return close(code);
    native.Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  if (!alone_ && host_ == nullptr) {
    std::lock_guard lock(contexts_->mutex);
    if (contexts_->host_windows.size() <= number_) return;
    host_ = contexts_->host_windows[number_].lock();
    if (host_ == nullptr) return;
  }
  state_ = State::open;
  listen();
  waiting_.result.value = name_;
  waiting_.result.shadowed = shadowed_ ? 1 : 0;
  waiting_.answer(MPI_SUCCESS);
}

void RegionWindow::listen() {
  const Inside inside;
  native.Irecv(message_.data(), kMessageBytes, MPI_BYTE, MPI_ANY_SOURCE, kHeaderTag, comm_, &header_);
}

void RegionWindow::hear() {
  while (header_ != MPI_REQUEST_NULL) {
    const Inside inside;
    int done = 0;
    MPI_Status status{};
    const int code = native.Test(&header_, &done, &status);
    if (code == MPI_SUCCESS && done == 0) return;
    if (code != MPI_SUCCESS) return close(code);
    int length = 0;
    native.Get_count(&status, MPI_BYTE, &length);
    const Header header = header_of(message_);
    const uint64_t expected = sizeof(Header) + (header.inlined != 0 ? header.bytes : 0);
    const bool sound = length >= static_cast<int>(sizeof(Header)) && static_cast<uint64_t>(length) == expected &&
                       header.bytes <= INT_MAX && header.reply_tag > 0 && header.reply_tag <= kDataTags;
    if (sound && header.epoch > epoch_) early_.emplace_back(message_, status.MPI_SOURCE);
    if (sound && header.epoch <= epoch_) admit(message_, status.MPI_SOURCE);
    listen();
  }
}

std::byte* RegionWindow::place_of(const Header& header) {
  const bool to_host = header.to_host != 0;
  if (to_host && host_ == nullptr) return nullptr;
  std::byte* const base = to_host ? host_->base : base_;
  const uint64_t bytes = to_host ? host_->bytes : bytes_;
  const auto unit = static_cast<uint64_t>(to_host ? host_->unit : unit_);
  uint64_t offset = 0;
  if (header.displacement < 0) return nullptr;
  if (__builtin_mul_overflow(static_cast<uint64_t>(header.displacement), unit, &offset)) return nullptr;
  if (offset > bytes || header.bytes > bytes - offset) return nullptr;
  if (!to_host && shadowed_ && header.puts != 0) written_.emplace_back(offset, header.bytes);
  return base + offset;
}

void RegionWindow::admit(const Message& message, int origin) {
  incoming_.emplace_back(message, origin, place_of(header_of(message)));
  incoming_.back().start(comm_);
}

void RegionWindow::start(std::unique_ptr<Outgoing> outgoing) {
  next_tag_ = next_tag_ % kDataTags + 1;
  outgoing->start(comm_, epoch_, next_tag_);
  outgoing_.push_back(std::move(outgoing));
}

void RegionWindow::transfer(Upcall upcall) {
  const Arguments& arguments = upcall.arguments();
  const bool puts = arguments.call == Call::put;
  const std::span<std::byte> data = puts ? upcall.input() : upcall.output();
  if (arguments.peer < 0 || arguments.peer >= contexts_->size) return upcall.answer(MPI_ERR_RANK);
  if (arguments.bytes != data.size()) return upcall.answer(MPI_ERR_BUFFER);
  if (data.size() > INT_MAX) return upcall.answer(MPI_ERR_COUNT);
  if (crosses_ && alone_) return upcall.answer(MPI_ERR_WIN);
  if (data.empty()) return upcall.answer(MPI_SUCCESS);
  const int target = arguments.peer;
  const int64_t displacement = arguments.displacement;
  const auto held = std::make_shared<Upcall>(std::move(upcall));
  start(std::make_unique<Outgoing>(puts, crosses_, target, displacement, data.data(), data.size(),
                                   [held](int code) { held->answer(code); }));
}

void RegionWindow::serve(Upcall upcall) {
  const Call call = upcall.arguments().call;
  if (state_ != State::open || upcall.channel() != channel_) return upcall.answer(MPI_ERR_RMA_SYNC);
  switch (call) {
    case Call::win_set_info: {
      const auto word = static_cast<Crossing>(upcall.arguments().flag);
      if (word != Crossing::unsaid) crosses_ = word == Crossing::on;
      return upcall.answer(MPI_SUCCESS);
    }
    case Call::put:
    case Call::get:
      return transfer(std::move(upcall));
    case Call::win_fence:
      if (shadowed_ && (upcall.input().size() != bytes_ || upcall.output().size() != bytes_)) {
        return upcall.answer(MPI_ERR_BUFFER);
      }
      waiting_ = std::move(upcall);
      state_ = State::fencing;
      return begin_fence();
    default:
      waiting_ = std::move(upcall);
      state_ = State::freeing;
      native.Ibarrier(comm_, &progress_);
  }
}

void RegionWindow::host_fence(std::shared_ptr<HostWindow> host) {
  fencer_ = std::move(host);
  begin_fence();
}

void RegionWindow::begin_fence() {
  if (state_ != State::fencing || (!alone_ && fencer_ == nullptr)) return;
  const Inside inside;
  const int code = native.Ibarrier(comm_, &progress_);
  if (code != MPI_SUCCESS) close(code);
}

void RegionWindow::finish_fence() {
  if (shadowed_) {
    // Both copies become one: what the region stored, but for what others put.
    const std::vector<std::byte> before = shadow_;
    memcpy(shadow_.data(), waiting_.input().data(), bytes_);
    for (const auto& [offset, bytes] : written_) memcpy(shadow_.data() + offset, before.data() + offset, bytes);
    memcpy(waiting_.output().data(), shadow_.data(), bytes_);
    written_.clear();
  }
  ++epoch_;
  state_ = State::open;
  waiting_.answer(MPI_SUCCESS);
  if (fencer_ != nullptr) std::exchange(fencer_, nullptr)->end(MPI_SUCCESS);
  std::list<std::pair<Message, int>> due;
  due.swap(early_);
  for (const auto& [message, origin] : due) admit(message, origin);
}

void RegionWindow::move_transfers() {
  std::erase_if(incoming_, [](Incoming& incoming) { return incoming.advance(); });
  std::erase_if(outgoing_, [](std::unique_ptr<Outgoing>& outgoing) { return outgoing->advance(); });
}

bool RegionWindow::advance() {
  int code = MPI_SUCCESS;
  if (state_ == State::closed) return true;
  if (state_ == State::creating) {
    finish_creation();
    return state_ == State::closed;
  }
  hear();
  move_transfers();
  if (progress_ == MPI_REQUEST_NULL || !ended(&progress_, &code)) return state_ == State::closed;
  if (code != MPI_SUCCESS || state_ == State::freeing)
    close(code);
  else if (state_ == State::fencing)
    finish_fence();
  return state_ == State::closed;
}

void RegionWindow::close(int code) {
  const Inside inside;
  for (const auto& outgoing : outgoing_) outgoing->give_up();
  if (fencer_ != nullptr) std::exchange(fencer_, nullptr)->end(code == MPI_SUCCESS ? MPI_ERR_WIN : code);
  if (header_ != MPI_REQUEST_NULL) {
    native.Cancel(&header_);
    native.Wait(&header_, MPI_STATUS_IGNORE);
  }
  // After a loss others may still send; the communicator then stays.
  if (comm_ != MPI_COMM_NULL && code == MPI_SUCCESS) native.Comm_free(&comm_);
  state_ = State::closed;
  waiting_.answer(code);
}

void RegionWindow::lose(uint64_t channel) {
  if (channel != channel_ || state_ == State::closed) return;
  close(MPI_ERR_OTHER);
}

void RegionWindow::give_up() {
  if (state_ != State::closed) close(MPI_ERR_OTHER);
}

}  // namespace offpath::mpi::regions
