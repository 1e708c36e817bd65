// SPDX-License-Identifier: BSD-3-Clause
// How processes tell each other plain records, by what the front end has for that. Collective over all of them. False:
// it is not possible, at all alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace offpath::attach {

class Exchange {
 public:
  // `failure`: what the user is told where it is not possible.
  Exchange(int rank, int size, const char* failure) : rank_(rank), size_(size), failure_(failure) {}
  int rank() const { return rank_; }
  int size() const { return size_; }
  const char* failure() const { return failure_; }

  // The first one's goes to everybody.
  template <class Record>
  bool broadcast(Record* record) const {
    return size_ == 1 || broadcast_bytes(record, sizeof(Record));
  }
  // Everybody's goes to everybody, in their order.
  template <class Record>
  bool gather(const Record& own, std::vector<Record>* all) const {
    all->assign(static_cast<size_t>(size_), own);
    return size_ == 1 || gather_bytes(&own, sizeof(Record), all->data());
  }
  // Those that give something, each `bytes`, do so to everybody, in their order. `gives`: by process, the same at all.
  bool gather_some(const void* own, size_t bytes, const std::vector<uint8_t>& gives, void* all) const {
    Parts parts;
    for (const uint8_t each : gives) {
      parts.begins.push_back(parts.begins.empty() ? 0 : parts.begins.back() + parts.bytes.back());
      parts.bytes.push_back(each != 0 ? static_cast<int>(bytes) : 0);
    }
    return gather_parts(own, parts, all);
  }

 protected:
  // What each process gives, and where that lies among all.
  struct Parts {
    std::vector<int> bytes, begins;
  };
  ~Exchange() = default;

 private:
  virtual bool broadcast_bytes(void* record, size_t bytes) const = 0;
  virtual bool gather_bytes(const void* record, size_t bytes, void* all) const = 0;
  virtual bool gather_parts(const void* own, const Parts& parts, void* all) const = 0;

  int rank_;
  int size_;
  const char* failure_;
};

}  // namespace offpath::attach
