// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/transfer.hpp"

#include "mpi/lanes/offloader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace offpath::mpi {
namespace {

bool accumulates(offpath_remote_kind_t kind) { return kind >= OFFPATH_ACCUMULATE; }

constexpr uint64_t kMostNativeBytes = INT32_MAX;  // one count of a native call

bool begins_at_once(const Elements& elements) {
  const Footprint& footprint = *elements.footprint;
  return !elements.is_cut() && footprint.contiguous(elements.count) && footprint.ranges->front().offset_bytes == 0;
}

// What a call asks for, checked step by step.
class Start {
 public:
  Start(OffloadedWindow& window, const Transfer& transfer, TransferRequest* request)
      : window_(window), transfer_(transfer), request_(request) {
    if (request == nullptr && Submission::is_recorded()) recorded_.emplace();
    if (recorded_) submission_ = &*recorded_;
    if (request != nullptr) submission_ = &request->submission();
  }
  // MPI error class.
  int run();

 private:
  int check();
  int choose_reduction();
  int measure();
  bool goes_natively();
  int post_natively();
  int post_atomic_natively();
  int prepare();
  int post(const Piece& piece);
  void finish();

  OffloadedWindow& window_;
  const Transfer& transfer_;
  TransferRequest* const request_;
  std::optional<Submission> recorded_;  // if it is, and has no request
  Submission* submission_ = nullptr;    // of the request, or recorded_
  Elements there_, sent_, fetched_;
  bool sends_ = false, fetches_ = false;
  offpath_operator_t op_ = OFFPATH_OP_NONE;
  offpath_element_t element_ = OFFPATH_ELEMENT_NONE;
  uint64_t offset_ = 0;
  OriginMemory send_, result_;
  std::array<std::byte, 64> swap_;  // the new value and behind it the one compared with
  uint64_t done_ = 0;
};

int Start::choose_reduction() {
  const DataType* basic = there_.basic();
  if (basic == nullptr) return MPI_ERR_TYPE;
  for (const Elements* other : {&sent_, &fetched_}) {
    if (other->type == nullptr) continue;
    const DataType* its = other->basic();
    if (its == nullptr || !its->is_alike(*basic)) return MPI_ERR_TYPE;
  }
  if (transfer_.kind == OFFPATH_COMPARE_AND_SWAP) {
    element_ = basic->swapped();
    return element_ == OFFPATH_ELEMENT_NONE ? MPI_ERR_TYPE : MPI_SUCCESS;
  }
  if (op_ != OFFPATH_OP_REPLACE && op_ != OFFPATH_OP_NO_OP && !basic->accumulates(op_)) return MPI_ERR_OP;
  // Where nothing is computed any type will do.
  element_ = basic->element == OFFPATH_ELEMENT_NONE ? OFFPATH_ELEMENT_U8 : basic->element;
  return MPI_SUCCESS;
}

int Start::check() {
  const MPI_Comm comm = window_.shadow();
  op_ = accumulates(transfer_.kind) ? find_operator(transfer_.op) : OFFPATH_OP_NONE;
  if (accumulates(transfer_.kind) && transfer_.kind != OFFPATH_COMPARE_AND_SWAP && op_ == OFFPATH_OP_NONE) {
    return MPI_ERR_OP;
  }
  sends_ = transfer_.kind != OFFPATH_GET && op_ != OFFPATH_OP_NO_OP;
  fetches_ = transfer_.kind != OFFPATH_PUT && transfer_.kind != OFFPATH_ACCUMULATE;
  if (int code = there_.find(transfer_.type, transfer_.count, comm); code != MPI_SUCCESS) return code;
  if (sends_) {
    if (int code = sent_.find(transfer_.send.type, transfer_.send.count, comm); code != MPI_SUCCESS) return code;
  }
  if (fetches_) {
    if (int code = fetched_.find(transfer_.result.type, transfer_.result.count, comm); code != MPI_SUCCESS) return code;
  }
  if (transfer_.predefined && !there_.type->predefined) return MPI_ERR_TYPE;
  if (!accumulates(transfer_.kind)) element_ = there_.type->made_of();
  const bool empty = there_.empty() && sent_.empty() && fetched_.empty();
  if (accumulates(transfer_.kind) && !empty) {
    if (const int code = choose_reduction(); code != MPI_SUCCESS) return code;
  }
  if (transfer_.target == MPI_PROC_NULL) return MPI_SUCCESS;
  if (transfer_.target < 0 || transfer_.target >= window_.size()) return MPI_ERR_RANK;
  if (transfer_.displacement < 0 && !window_.dynamic()) return MPI_ERR_DISP;
  return window_.epochs().may_access(transfer_.target) ? MPI_SUCCESS : MPI_ERR_RMA_SYNC;
}

int Start::measure() {
  const bool whole = accumulates(transfer_.kind);
  if (int code = there_.measure(transfer_.type, whole); code != MPI_SUCCESS) return code;
  // As in a message, who receives may have room for more than comes.
  if (sends_) {
    if (int code = sent_.measure(transfer_.send.type, whole); code != MPI_SUCCESS) return code;
    if (fetches_ && sent_.bytes != there_.bytes) return MPI_ERR_TRUNCATE;
    if (int code = there_.cut(sent_.bytes); code != MPI_SUCCESS) return code;
  }
  if (fetches_) {
    if (int code = fetched_.measure(transfer_.result.type, whole); code != MPI_SUCCESS) return code;
    if (int code = fetched_.cut(there_.bytes); code != MPI_SUCCESS) return code;
  }
  if (there_.bytes == 0) return MPI_SUCCESS;
  int64_t low = 0, high = 0;
  if (!there_.footprint->bounds(there_.count, &low, &high)) return MPI_ERR_RMA_RANGE;
  return window_.locate(transfer_.target, transfer_.displacement, low, high, &offset_);
}

// What is contiguous and begins where it says: only that is the same for every library. Puts and gets only in passive
// epochs; what is atomic as all members have agreed.
bool Start::goes_natively() {
  Mixture* const mixture = window_.mixture();
  if (mixture == nullptr) return false;
  const policy::Onesided kind = fetches_ ? policy::Onesided::get : policy::Onesided::put;
  const bool plain =
      begins_at_once(there_) && (!sends_ || begins_at_once(sent_)) && (!fetches_ || begins_at_once(fetched_));
  if (accumulates(transfer_.kind)) {
    return mixture->atomic_goes_natively(kind, transfer_.target, there_.bytes, plain);
  }
  const Local& local = sends_ ? transfer_.send : transfer_.result;
  const bool may = plain && request_ == nullptr && there_.bytes <= kMostNativeBytes &&
                   window_.epochs().may_flush(transfer_.target) && local.address != nullptr;
  if (may) return mixture->goes_natively(kind, transfer_.target, there_.bytes);
  mixture->add_other(kind, transfer_.target, there_.bytes);
  return false;
}

// As the program asked for it, but for elements that get nothing: MPICH combines them with anything.
int Start::post_atomic_natively() {
  const auto& [kind, target, displacement, count, type, send, result, op, compare, predefined] = transfer_;
  const MPI_Win win = window_.handle();
  void* const to = const_cast<void*>(result.address);
  // A part of an element cannot be said natively.
  if (there_.is_cut() || (fetches_ && fetched_.is_cut())) return MPI_ERR_TRUNCATE;
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  window_.mixture()->count(target, there_.bytes);
  if (kind == OFFPATH_COMPARE_AND_SWAP) {
    code = native.Compare_and_swap(send.address, compare, to, type, target, displacement, win);
  } else if (predefined) {
    code = native.Fetch_and_op(send.address, to, type, target, displacement, op, win);
  } else if (kind == OFFPATH_ACCUMULATE) {
    code = request_ == nullptr ? native.Accumulate_c(send.address, send.count, send.type, target, displacement,
                                                     there_.count, type, op, win)
                               : native.Raccumulate_c(send.address, send.count, send.type, target, displacement,
                                                      there_.count, type, op, win, &request);
  } else {
    code = request_ == nullptr
               ? native.Get_accumulate_c(send.address, send.count, send.type, to, fetched_.count, result.type, target,
                                         displacement, there_.count, type, op, win)
               : native.Rget_accumulate_c(send.address, send.count, send.type, to, fetched_.count, result.type, target,
                                          displacement, there_.count, type, op, win, &request);
  }
  if (request_ != nullptr) request_->hand_over(request);
  return code;
}

int Start::post_natively() {
  if (accumulates(transfer_.kind)) return post_atomic_natively();
  Mixture& mixture = *window_.mixture();
  const int target = transfer_.target;
  if (sends_) return mixture.put(transfer_.send.address, there_.bytes, target, transfer_.displacement);
  return mixture.get(const_cast<void*>(transfer_.result.address), there_.bytes, target, transfer_.displacement);
}

int Start::prepare() {
  const bool one_piece = is_one_piece(*there_.footprint, there_.count);
  if (sends_) {
    if (int code = send_.prepare(transfer_.send, sent_, OriginMemory::Way::sent, one_piece); code != MPI_SUCCESS)
      return code;
  }
  if (!fetches_) return MPI_SUCCESS;
  return result_.prepare(transfer_.result, fetched_, OriginMemory::Way::fetched, one_piece);
}

int Start::post(const Piece& piece) {
  const uint64_t bytes = std::min(piece.bytes, there_.bytes - done_);  // the last element may be cut short
  if (bytes == 0) return MPI_SUCCESS;
  std::array<offpath_layout_t, 3> layouts;
  uint32_t layouts_count = 0;
  offpath_remote_t remote{};
  remote.struct_bytes = sizeof(remote);
  remote.kind = transfer_.kind;
  remote.target = static_cast<uint32_t>(transfer_.target);
  remote.op = op_;
  remote.element = element_;
  remote.target_offset = offset_ + static_cast<uint64_t>(piece.offset_bytes);
  remote.target_bytes = bytes;
  if (!piece.ranges.empty()) {
    layouts[layouts_count] = {piece.size_bytes, piece.extent_bytes, piece.ranges.data(),
                              static_cast<uint32_t>(piece.ranges.size())};
    remote.target_layout = ++layouts_count;
  }
  if (sends_) remote.send = send_.block(done_, bytes, layouts.data(), &layouts_count);
  if (fetches_) remote.result = result_.block(done_, bytes, layouts.data(), &layouts_count);
  if (transfer_.kind == OFFPATH_COMPARE_AND_SWAP) {
    memcpy(swap_.data(), transfer_.send.address, bytes);
    memcpy(swap_.data() + bytes, transfer_.compare, bytes);
    remote.send.address = swap_.data();
    remote.send.bytes = 2 * bytes;
  }
  remote.layouts = layouts.data();
  remote.layouts_count = layouts_count;
  if (request_ == nullptr) remote.flags = OFFPATH_REMOTE_FLUSHED;
  offpath_op_t* op = nullptr;
  const int code = window_.post(remote, submission_ == nullptr ? nullptr : &op);
  if (code != MPI_SUCCESS) return code;
  if (submission_ != nullptr) submission_->add(op);
  done_ += bytes;
  return MPI_SUCCESS;
}

void Start::finish() {
  if (send_.staged() != nullptr) window_.keep(send_.staged());
  if (result_.staged() != nullptr) window_.keep(result_.staged());
  if (fetches_ || (send_.staged() == nullptr && send_.stays_in_use(there_.bytes))) window_.mark_unsent();
  if (request_ != nullptr) request_->deliver_to(result_.staged());
  if (recorded_ && !recorded_->empty()) window_.follow(std::move(*recorded_));
  window_.count_bytes(done_);
}

int Start::run() {
  if (const int code = check(); code != MPI_SUCCESS || transfer_.target == MPI_PROC_NULL) return code;
  if (const int code = measure(); code != MPI_SUCCESS || there_.bytes == 0) return code;
  if (!sends_ && !fetches_) return MPI_SUCCESS;  // an accumulate that changes nothing
  if (goes_natively()) return post_natively();
  int code = prepare();
  if (code != MPI_SUCCESS) return code;
  for_each_piece(*there_.footprint, there_.count, [&](const Piece& piece) {
    code = post(piece);
    return code == MPI_SUCCESS;
  });
  finish();
  return code;
}

}  // namespace

TransferRequest::~TransferRequest() {
  if (!finished.load(std::memory_order_relaxed)) window_->count_request(-1);
}

bool TransferRequest::advance() {
  window_->nudge();
  const offpath_status_t status = submission_.test(window_->homecoming());
  if (status == OFFPATH_IN_PROGRESS) return false;
  if (status == OFFPATH_OK && result_ != nullptr) result_->deliver();
  error = window_->code_of(status);
  result_.reset();
  submission_.end(error);
  window_->count_request(-1);
  return true;
}

int start(OffloadedWindow& window, const Transfer& transfer, TransferRequest* request) {
  const int code = Start(window, transfer, request).run();
  if (window.mixture() != nullptr) window.mixture()->posted();
  return code;
}

}  // namespace offpath::mpi
