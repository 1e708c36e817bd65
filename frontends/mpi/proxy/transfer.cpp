// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/proxy/transfer.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::mpi::regions {

Header header_of(const Message& message) {
  Header header;
  memcpy(&header, message.data(), sizeof(header));
  return header;
}

Outgoing::Outgoing(bool puts, bool to_host, int target, int64_t displacement, std::byte* data, uint64_t bytes,
                   std::function<void(int)> done)
    : target_(target), data_(data), done_(std::move(done)) {
  header_.displacement = displacement;
  header_.bytes = bytes;
  header_.puts = puts ? 1 : 0;
  header_.to_host = to_host ? 1 : 0;
  header_.inlined = puts && bytes <= kInlineBytes ? 1 : 0;
}

void Outgoing::start(MPI_Comm comm, uint64_t epoch, int tag) {
  header_.epoch = epoch;
  header_.reply_tag = tag;
  memcpy(message_.data(), &header_, sizeof(header_));
  const int bytes = static_cast<int>(header_.bytes);
  size_t length = sizeof(header_);
  if (header_.inlined != 0) {
    memcpy(message_.data() + length, data_, header_.bytes);
    length += header_.bytes;
  }
  const Inside inside;
  // What comes back is awaited before it can come.
  if (header_.puts != 0)
    native.Irecv(&answer_, sizeof(answer_), MPI_BYTE, target_, kDataTags + tag, comm, &requests_[2]);
  else
    native.Irecv(data_, bytes, MPI_BYTE, target_, tag, comm, &requests_[2]);
  native.Isend(message_.data(), static_cast<int>(length), MPI_BYTE, target_, kHeaderTag, comm, requests_.data());
  if (header_.puts != 0 && header_.inlined == 0) {
    native.Isend(data_, bytes, MPI_BYTE, target_, tag, comm, &requests_[1]);
  }
}

bool Outgoing::advance() {
  const Inside inside;
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    int done = 0;
    MPI_Status status{};
    const int code = native.Test(&requests_[i], &done, &status);
    if (code != MPI_SUCCESS) {
      answer_ = code;
    } else if (done == 0) {
      return false;
    } else if (i == 2 && header_.puts == 0) {
      int bytes = 0;
      native.Get_count(&status, MPI_BYTE, &bytes);
      if (static_cast<uint64_t>(bytes) != header_.bytes) answer_ = MPI_ERR_RMA_RANGE;
    }
  }
  done_(answer_);
  return true;
}

void Incoming::answer_put() {
  if (place_ == nullptr) answer_ = MPI_ERR_RMA_RANGE;
  native.Isend(&answer_, sizeof(answer_), MPI_BYTE, origin_, kDataTags + header_of(message_).reply_tag, comm_,
               &request_);
}

void Incoming::start(MPI_Comm comm) {
  const Header header = header_of(message_);
  comm_ = comm;
  const Inside inside;
  if (header.puts == 0) {
    const int bytes = place_ == nullptr ? 0 : static_cast<int>(header.bytes);
    native.Isend(place_, bytes, MPI_BYTE, origin_, header.reply_tag, comm, &request_);
  } else if (header.inlined != 0) {
    if (place_ != nullptr) memcpy(place_, message_.data() + sizeof(header), header.bytes);
    answer_put();
  } else {
    receiving_ = true;
    if (place_ == nullptr) discarded_.resize(header.bytes);
    native.Irecv(place_ == nullptr ? discarded_.data() : place_, static_cast<int>(header.bytes), MPI_BYTE, origin_,
                 header.reply_tag, comm, &request_);
  }
}

bool Incoming::advance() {
  const Inside inside;
  int done = 0;
  const int code = native.Test(&request_, &done, MPI_STATUS_IGNORE);
  if (code == MPI_SUCCESS && done == 0) return false;
  if (!receiving_) return true;
  receiving_ = false;
  answer_ = code;
  answer_put();
  return false;
}

}  // namespace offpath::mpi::regions
