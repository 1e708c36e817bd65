// SPDX-License-Identifier: BSD-3-Clause
// How the PEs tell each other plain records, by their own OpenSHMEM, in memory borrowed from the symmetric heap.
// Collective over all PEs. False: the heap has no room, at all PEs alike.
#pragma once

#include <cstddef>
#include <vector>

namespace offpath::shmem {

// PE 0's record goes to everybody.
bool broadcast_bytes(void* record, size_t bytes);
// Everybody's record goes to everybody: all, in the order of the PEs.
bool gather_bytes(const void* record, size_t bytes, void* all);

template <class Record>
bool broadcast(Record* record) {
  return broadcast_bytes(record, sizeof(Record));
}

template <class Record>
bool gather(const Record& record, std::vector<Record>* all) {
  static_assert(sizeof(Record) % 8 == 0);
  return gather_bytes(&record, sizeof(Record), all->data());
}

}  // namespace offpath::shmem
