// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/cut.hpp"

#include "mpi/lanes/tags.hpp"
#include "mpi/native/native.hpp"

namespace offpath::mpi {

void Cut::combine(const Word& word, int source) {
  heard_.resize(static_cast<size_t>(size_));
  told_.resize(static_cast<size_t>(size_));
  told_[static_cast<size_t>(source)] = word.told;
  combined_.told.add(word.told);
  combined_.gave_up |= word.gave_up;
  combined_.own_lost |= word.own_lost;
  if (attach::says_more(word.parting, combined_.parting)) combined_.parting = word.parting;
}

bool Cut::listen() {
  for (;;) {
    int arrived = 0;
    MPI_Status status;
    if (native.Iprobe(MPI_ANY_SOURCE, kWordTag, shadow_, &arrived, &status) != MPI_SUCCESS || arrived == 0) break;
    Word word;
    const int source = status.MPI_SOURCE;
    if (native.Recv(&word, sizeof(word), MPI_BYTE, source, kWordTag, shadow_, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    combine(word, source);
    if (heard_[static_cast<size_t>(source)]) continue;  // a rank's farewell after its word
    heard_[static_cast<size_t>(source)] = true;
    ++heard_count_;
  }
  return heard_count_ > 0;
}

void Cut::send_to_all(const Word& word) {
  for (int step = 1; step < size_; ++step) {
    const int peer = (rank_ + step) % size_;
    MPI_Request request = MPI_REQUEST_NULL;
    if (native.Isend(&word, sizeof(word), MPI_BYTE, peer, kWordTag, shadow_, &request) != MPI_SUCCESS) continue;
    // The word is a member of the lane, which outlives the message; nobody needs to know when it has left.
    native.Request_free(&request);
  }
}

void Cut::say(const Word& own, Clock::time_point now) {
  said_ = true;
  since_ = now;
  own_ = own;
  combine(own_, rank_);
  send_to_all(own_);
}

void Cut::give_up() {
  farewell_ = own_;
  farewell_.gave_up = 1;
  combine(farewell_, rank_);
  send_to_all(farewell_);
}

}  // namespace offpath::mpi
