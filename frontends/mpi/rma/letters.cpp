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

// Whether it can be; it comes from outside.
bool can_be(const Letter::Head& head) {
  return head.said <= Letter::Said::granted && head.body_bytes <= remote::kMaxBodyBytes &&
         head.data_bytes < base::kBlockLimitBytes && base::is_known_code(head.status);
}

}  // namespace

void Letters::send(int to, const Letter::Head& head, std::vector<uint8_t> bytes) {
  if (to == rank_) {
    arriving_[to].push_back({{to, head, std::move(bytes)}, {}});
    return;
  }
  auto front = std::make_unique<Short>();
  front->head = head;
  const bool fits = bytes.size() <= sizeof(front->bytes);
  if (fits) std::copy(bytes.begin(), bytes.end(), front->bytes);
  const size_t length = sizeof(head) + (fits ? bytes.size() : 0);
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = native.Isend(front.get(), static_cast<int>(length), MPI_BYTE, to, kLetterTag, comm_, &request);
  if (code != MPI_SUCCESS) return;
  outbox_.add(request, std::move(front));
  if (fits) return;
  const auto rest = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
  for (uint64_t done = 0; done < rest->size(); done += kRestBytes) {
    const auto part = static_cast<int>(std::min<uint64_t>(kRestBytes, rest->size() - done));
    if (native.Isend(rest->data() + done, part, MPI_BYTE, to, kRestTag, comm_, &request) != MPI_SUCCESS) return;
    outbox_.add(request, std::make_unique<std::shared_ptr<const std::vector<uint8_t>>>(rest));
  }
}

void Letters::receive() {
  outbox_.tidy();
  for (;;) {
    int arrived = 0, bytes = 0;
    MPI_Status status;
    if (native.Iprobe(MPI_ANY_SOURCE, kLetterTag, comm_, &arrived, &status) != MPI_SUCCESS || arrived == 0) return;
    Short front;
    const int from = status.MPI_SOURCE;
    if (native.Recv(&front, sizeof(front), MPI_BYTE, from, kLetterTag, comm_, &status) != MPI_SUCCESS) return;
    native.Get_count(&status, MPI_BYTE, &bytes);
    open(from, front, static_cast<size_t>(std::max(bytes, 0)));
  }
}

void Letters::open(int from, const Short& arrived, size_t bytes) {
  if (bytes < sizeof(arrived.head) || !can_be(arrived.head)) return;
  const uint64_t length = arrived.head.body_bytes + arrived.head.data_bytes;
  const size_t here = bytes - sizeof(arrived.head);
  if (here != (length <= sizeof(arrived.bytes) ? length : 0)) return;
  Arriving& arriving = arriving_[from].emplace_back();
  arriving.letter.from = from;
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
  for (uint64_t done = 0; done < length; done += kRestBytes) {
    const auto part = static_cast<int>(std::min(kRestBytes, length - done));
    MPI_Request& request = arriving.rest.emplace_back(MPI_REQUEST_NULL);
    // Without room it is cut off, but it has come.
    native.Irecv(has_room ? arriving.letter.bytes.data() + done : nullptr, has_room ? part : 0, MPI_BYTE, from,
                 kRestTag, comm_, &request);
  }
}

bool Letters::is_whole(Arriving& arriving) {
  std::erase_if(arriving.rest, [](MPI_Request& request) {
    int done = 0;
    return native.Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
  });
  return arriving.rest.empty();
}

std::optional<Letter> Letters::next() {
  for (auto from = arriving_.begin(); from != arriving_.end(); ++from) {
    std::deque<Arriving>& its = from->second;
    if (!is_whole(its.front())) continue;
    std::optional<Letter> letter(std::move(its.front().letter));
    its.pop_front();
    if (its.empty()) arriving_.erase(from);
    return letter;
  }
  return std::nullopt;
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
