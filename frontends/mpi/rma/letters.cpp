// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/letters.hpp"

#include "base/limits.hpp"
#include "base/result.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace offpath::mpi {
namespace {

// Those of Handshake go before.
constexpr int kLetterTag = 3;
constexpr int kRestTag = 4;
constexpr uint64_t kRestBytes = 64 << 20;  // of one message

size_t parts_of(uint64_t bytes) { return static_cast<size_t>((bytes + kRestBytes - 1) / kRestBytes); }

// Whether it can be; it comes from outside.
bool can_be(const Letter::Head& head) {
  return head.said <= Letter::Said::granted && head.body_bytes <= remote::kMaxBodyBytes &&
         head.data_bytes < base::kBlockLimitBytes && base::is_known_code(head.status);
}

}  // namespace

void Letters::send(int to, const Letter::Head& head, std::vector<uint8_t>&& bytes) {
  if (to == rank_) {
    Arriving& own = arriving_[to].emplace_back();
    own.letter = {to, head, std::move(bytes)};
    return;
  }
  using Rest = std::shared_ptr<std::vector<uint8_t>>;
  auto front = std::make_unique<Short>();
  front->head = head;
  const bool fits = bytes.size() <= sizeof(front->bytes);
  if (fits) std::copy(bytes.begin(), bytes.end(), front->bytes);
  const size_t length = sizeof(head) + (fits ? bytes.size() : 0);
  const Rest rest = std::make_shared<std::vector<uint8_t>>();
  std::vector<std::unique_ptr<Rest>> holders(fits ? 0 : parts_of(bytes.size()));
  for (auto& holder : holders) holder = std::make_unique<Rest>(rest);
  // It has all that it takes.
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = native.Isend(front.get(), static_cast<int>(length), MPI_BYTE, to, kLetterTag, comm_, &request);
  if (code != MPI_SUCCESS) return;
  outbox_.add(request, std::move(front));
  *rest = std::move(bytes);
  uint64_t done = 0;
  for (auto& holder : holders) {
    const auto part = static_cast<int>(std::min<uint64_t>(kRestBytes, rest->size() - done));
    if (native.Isend(rest->data() + done, part, MPI_BYTE, to, kRestTag, comm_, &request) != MPI_SUCCESS) return;
    outbox_.add(request, std::move(holder));
    done += kRestBytes;
  }
}

void Letters::receive() {
  outbox_.tidy();
  for (; front_bytes_ > 0 || fetch(); front_bytes_ = 0) open();
}

bool Letters::fetch() {
  int arrived = 0, bytes = 0;
  MPI_Status status;
  if (native.Iprobe(MPI_ANY_SOURCE, kLetterTag, comm_, &arrived, &status) != MPI_SUCCESS || arrived == 0) return false;
  from_ = status.MPI_SOURCE;
  if (native.Recv(&front_, sizeof(front_), MPI_BYTE, from_, kLetterTag, comm_, &status) != MPI_SUCCESS) return false;
  native.Get_count(&status, MPI_BYTE, &bytes);
  front_bytes_ = static_cast<size_t>(std::max(bytes, 0));
  return true;
}

void Letters::open() {
  const Short& arrived = front_;
  if (front_bytes_ < sizeof(arrived.head) || !can_be(arrived.head)) return;
  const uint64_t length = arrived.head.body_bytes + arrived.head.data_bytes;
  const size_t here = front_bytes_ - sizeof(arrived.head);
  if (here != (length <= sizeof(arrived.bytes) ? length : 0)) return;
  std::vector<MPI_Request> rest(here == length ? 0 : parts_of(length), MPI_REQUEST_NULL);
  Arriving& arriving = arriving_[from_].emplace_back();
  arriving.rest = std::move(rest);
  arriving.letter.from = from_;
  arriving.letter.head = arrived.head;
  bool has_room = true;
  try {
    arriving.letter.bytes.resize(length);
  } catch (const std::exception&) {
    has_room = false;
    arriving.letter.head.status = OFFPATH_ERR_NO_MEMORY;
    arriving.letter.head.body_bytes = arriving.letter.head.data_bytes = 0;
  }
  if (here == length) {
    std::copy_n(arrived.bytes, arriving.letter.bytes.size(), arriving.letter.bytes.begin());
    return;
  }
  uint64_t done = 0;
  for (MPI_Request& request : arriving.rest) {
    const auto part = static_cast<int>(std::min(kRestBytes, length - done));
    // Without room it is cut off, but it has come.
    native.Irecv(has_room ? arriving.letter.bytes.data() + done : nullptr, has_room ? part : 0, MPI_BYTE, from_,
                 kRestTag, comm_, &request);
    done += kRestBytes;
  }
}

bool Letters::is_whole(Arriving& arriving) {
  std::erase_if(arriving.rest, [](MPI_Request& request) {
    int done = 0;
    return native.Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
  });
  return arriving.rest.empty();
}

Letter* Letters::next() {
  for (auto& [from, its] : arriving_) {
    if (!its.empty() && is_whole(its.front())) return &its.front().letter;
  }
  return nullptr;
}

void Letters::drop(const Letter& letter) {
  const auto from = arriving_.find(letter.from);
  from->second.pop_front();
  if (from->second.empty()) arriving_.erase(from);
}

void Letters::close() {
  outbox_.abandon();
  for (auto& [from, its] : arriving_) {
    for (Arriving& arriving : its) {
      // The library may still write there.
      for (MPI_Request& request : arriving.rest) native.Request_free(&request);
      if (!arriving.rest.empty()) static_cast<void>(new std::vector<uint8_t>(std::move(arriving.letter.bytes)));
    }
  }
  arriving_.clear();
}

}  // namespace offpath::mpi
