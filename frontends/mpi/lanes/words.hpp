// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a lane tell each other: small eager messages on its shadow communicator, so saying one never waits for
// anybody.
#pragma once

#include "mpi/native/native.hpp"

#include <mpi.h>

namespace offpath::mpi {

struct Seat {
  MPI_Comm comm;
  int rank;
  int size;
};

// A probe has failed on a communicator of ours, where others may still say something: until then it would say only that one is lost.
inline void acknowledge_loss(MPI_Comm comm) {
  if (native.tells_of_losses()) native.acknowledge(comm);
}

// word_of(peer): stays where it is until that one has it.
template <typename WordOf>
void say_to_each(WordOf word_of, const Seat& seat, int tag) {
  for (int step = 1; step < seat.size; ++step) {
    const int peer = (seat.rank + step) % seat.size;
    const auto& word = word_of(peer);
    MPI_Request request = MPI_REQUEST_NULL;
    if (native.Isend(&word, sizeof(word), MPI_BYTE, peer, tag, seat.comm, &request) != MPI_SUCCESS) continue;
    native.Request_free(&request);  // nobody needs to know when it has left
  }
}

template <typename Word>
void say_to_all(const Word& word, const Seat& seat, int tag) {
  say_to_each([&word](int) -> const Word& { return word; }, seat, tag);
}

// Those that have arrived: take(word, from whom). MPI error code.
template <typename Word, typename Take>
int hear(const Seat& seat, int tag, Take take) {
  for (;;) {
    int arrived = 0;
    MPI_Status status;
    int code = native.Iprobe(MPI_ANY_SOURCE, tag, seat.comm, &arrived, &status);
    if (code != MPI_SUCCESS || arrived == 0) return code;
    Word word;
    const int source = status.MPI_SOURCE;
    code = native.Recv(&word, sizeof(word), MPI_BYTE, source, tag, seat.comm, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
    take(word, source);
  }
}

}  // namespace offpath::mpi
