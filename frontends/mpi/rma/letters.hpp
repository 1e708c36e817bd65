// SPDX-License-Identifier: BSD-3-Clause
// What the members of a window tell each other once it has left the services (docs/design/0044-recovery.md, Windows): native
// messages on the window's own communicator. A letter is a head and bytes; what has no room in one short message follows
// in long ones. The letters of one member arrive in the order in which they were sent.
//
// Threads: one at a time. Inside.
#pragma once

#include "mpi/lanes/outbox.hpp"
#include "remote/wanted.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace offpath::mpi {

struct Letter {
  // holds: what its sender has locked at the receiver. Then four questions, and the answers of two kinds: to operations, and
  // to what is about locks.
  enum class Said : uint8_t { holds, operation, lock_shared, lock_exclusive, unlock, done, granted };
  struct Head {
    Said said = Said::holds;
    uint8_t is = 0;           // holds: a Home::Held; operation: it may be done already
    int32_t status = 0;       // answers: an offpath_status_t
    uint64_t id = 0;          // of a question, as its sender counts, and of its answer
    uint64_t body_bytes = 0;  // operation: a remote::Wanted
    uint64_t data_bytes = 0;  // operation: what it sends; done: what it has fetched
  };

  std::span<const uint8_t> body() const { return std::span(bytes).first(head.body_bytes); }
  std::span<const uint8_t> data() const { return std::span(bytes).subspan(head.body_bytes); }

  int from = 0;
  Head head;
  std::vector<uint8_t> bytes;  // body, data
};

class Letters {
 public:
  Letters(MPI_Comm comm, int rank) : comm_(comm), rank_(rank) {}

  // Waits for nobody; also to itself. `bytes`: as the head says. May throw bad_alloc: then nothing is sent, nor are they taken.
  void send(int to, const Letter::Head& head, std::vector<uint8_t>&& bytes = {});
  // Takes in what has come. Never waits. May throw bad_alloc: then the rest comes with a later call.
  void receive();
  // One that is whole, or nullptr; the same until it is dropped. What there was no memory for has that as its status, and no
  // bytes.
  Letter* next();
  void drop(const Letter& letter);
  // Those that were sent need nothing from here any more.
  bool all_sent() { return outbox_.tidy(), outbox_.empty(); }
  // Whoever is lost neither sends nor receives.
  void close();

 private:
  static constexpr size_t kShortBytes = 2048;  // every library sends that at once, whoever listens
  struct Short {
    Letter::Head head;
    uint8_t bytes[kShortBytes - sizeof(Letter::Head)];
  };
  struct Arriving {
    Letter letter;
    std::vector<MPI_Request> rest;
  };

  bool fetch();
  void open();
  bool is_whole(Arriving& arriving);

  const MPI_Comm comm_;
  const int rank_;
  Outbox outbox_;
  // What has come and is not opened.
  int from_ = 0;
  size_t front_bytes_ = 0;
  Short front_;
  std::map<int, std::deque<Arriving>> arriving_;  // by sender
};

}  // namespace offpath::mpi
