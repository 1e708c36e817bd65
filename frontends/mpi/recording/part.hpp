// SPDX-License-Identifier: BSD-3-Clause
// The file that one rank writes while it records: a line of JSON, the header, then records, little endian: a RecordHead
// and `words` words of 8 bytes, of which the first are a struct below and the rest values or text (padded with zeros).
// python/offpath/trace/parts.py makes lines of them: formatting costs more than recording does.
//
// Names of calls, kinds and reasons are written once and then go by number, as call sites do. The header is written at
// once. Records are collected, and written when there are many or the first has waited for kMostUnwrittenNs: a process may
// be killed at any time. Not safe for threads. Where writing fails ok() becomes false, the rest is left out, and the
// header says why ("errno").
//
// A rank that cannot open its file, because it is on another node and sees another file system, writes to a nameless
// one of its own node; read() then gives what is in it, for a rank that can.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace offpath::mpi::recording {

enum class Tag : uint8_t {
  text = 1,
  site = 2,
  communicator = 3,
  operation = 4,
  served = 5,
  wait = 6,
  end = 7,
  region = 8
};

struct RecordHead {
  uint8_t tag;
  uint8_t flags;
  uint16_t name;  // number of a text: of itself, or of the MPI function
  uint32_t words;
};
static_assert(sizeof(RecordHead) == 8);

struct SiteBody {   // then the file that holds it
  uint64_t number;  // from 1; 0 is unknown
  uint64_t offset;
};

struct CommunicatorBody {  // then the ranks of its members in the job
  uint64_t number;
};

inline constexpr uint8_t kBlocking = 1, kDecided = 2, kOffloaded = 4;  // flags
struct OperationBody {                                                 // then sent_bytes, or the tag
  uint64_t operation;
  uint64_t begin_ns;
  uint64_t end_ns;
  uint64_t bytes;
  uint32_t site;
  uint32_t communicator;
  int32_t root;
  uint32_t nth;   // collective of its communicator, or message of this rank on it, recorded ones or not
  uint16_t kind;  // texts
  uint16_t why;
  uint16_t algorithm;
  uint16_t thread;  // from 0, in the order of their first records
};
static_assert(sizeof(OperationBody) == 56);

inline constexpr uint8_t kTimesKnown = 1;
struct ServedBody {
  uint64_t operation;
  uint64_t seen_ns;
  uint64_t posted_ns;
  uint64_t started_ns;
  uint64_t first_byte_ns;  // 0: there was none
  uint64_t done_ns;
  int32_t status;
  uint32_t last_peer;
};
static_assert(sizeof(ServedBody) == 56);

inline constexpr uint8_t kComplete = 1;
struct WaitBody {  // then the operations
  uint64_t begin_ns;
  uint64_t end_ns;
  uint32_t site;
  uint32_t others;  // operations that are not recorded
  uint64_t thread;
};
static_assert(sizeof(WaitBody) == 32);

struct EndBody {
  uint64_t end_ns;
  uint64_t operations_left_out;
  uint64_t waits_left_out;
};

inline constexpr uint8_t kLeftOpen = 1;  // the program's part ended in it
struct RegionBody {                      // one that the program has named; written when it ends
  uint64_t begin_ns;
  uint64_t end_ns;
  uint64_t thread;
};

// Numbers for pointers. Those used last are found at once.
class Numbers {
 public:
  // 0: it has none yet.
  uint32_t find(const void* pointer) {
    Entry& entry = recent_[(reinterpret_cast<uintptr_t>(pointer) >> 3) % recent_.size()];
    if (entry.pointer != pointer) {
      const auto it = all_.find(pointer);
      if (it == all_.end()) return 0;
      entry = {pointer, it->second};
    }
    return entry.number;
  }
  // From 1 on.
  uint32_t add(const void* pointer) { return add(pointer, static_cast<uint32_t>(all_.size() + 1)); }
  uint32_t add(const void* pointer, uint32_t number) { return all_[pointer] = number; }

 private:
  struct Entry {
    const void* pointer = nullptr;
    uint32_t number = 0;
  };
  std::array<Entry, 64> recent_{};
  std::unordered_map<const void*, uint32_t> all_;
};

// Writes all of it, where the file is. False: an error, which the header at the file's begin says from then on.
bool write_to_part(int file, std::span<const std::byte> bytes);

class Part {
 public:
  void open(const std::string& path);
  // A JSON object.
  void write_header(const std::string& object);
  bool ok() const { return file_ >= 0 && !failed_; }
  // Its file is the one that was asked for.
  bool in_place() const { return in_place_; }
  // Writes what is left; from then on it can be read. drop: no more.
  void finish();
  size_t read(std::span<std::byte> room);
  void drop();

  // The numbers of a text that stays where it is, of any text, and of a return address in the program.
  uint16_t text(const char* literal);
  uint16_t text(std::string_view any);
  uint32_t site(const void* address);
  template <typename Body>
  void add(Tag tag, uint8_t flags, uint16_t name, const Body& body, std::span<const uint64_t> values = {}) {
    const RecordHead head{static_cast<uint8_t>(tag), flags, name,
                          static_cast<uint32_t>(sizeof(body) / sizeof(uint64_t) + values.size())};
    append(&head, sizeof(head));
    append(&body, sizeof(body));
    if (!values.empty()) append(values.data(), values.size_bytes());
    if (buffer_.size() >= kWriteBytes) flush();
    if constexpr (requires { body.end_ns; }) flush_if_due(body.end_ns);
  }

 private:
  static constexpr size_t kWriteBytes = size_t{1} << 20;
  static constexpr uint64_t kMostUnwrittenNs = 10'000'000;

  void append(const void* from, size_t bytes) {
    const auto* begin = static_cast<const uint8_t*>(from);
    buffer_.insert(buffer_.end(), begin, begin + bytes);
  }
  void append_text(const char* text, size_t length);
  void flush();
  void flush_if_due(uint64_t now_ns) {
    if (now_ns < due_ns_) return;
    due_ns_ = now_ns + kMostUnwrittenNs;
    flush();
  }

  int file_ = -1;
  bool in_place_ = false;
  bool failed_ = false;
  int64_t read_bytes_ = 0;
  uint64_t due_ns_ = 0;
  std::vector<uint8_t> buffer_;
  Numbers literals_, sites_;
  std::unordered_map<std::string, uint16_t> texts_;
};

}  // namespace offpath::mpi::recording
