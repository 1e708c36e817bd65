// SPDX-License-Identifier: BSD-3-Clause
// The executors of a worker's tasks: processes that are started, told of clients' memory, ended and replaced. They end with
// the thread that has started them.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/silence.hpp"
#include "tasks/board.hpp"

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace offpath::service {

class Executors {
 public:
  struct Options {
    uint32_t count = 1;
    std::string command;        // what runs one, without its options; empty: offpath-executor beside this program
    bool spin = false;          // each has a core
    uint64_t memory_bytes = 0;  // most that functions may allocate in one; 0: no limit
  };
  Executors(const Options& options, const tasks::Board& board, int bell)
      : options_(options), board_(board), bell_(bell), all_(options.count) {}
  ~Executors();

  base::Status start_all();
  // Another one in the place of one that has ended. False: those there have ended too often without having done anything.
  bool replace(uint32_t number);

  uint32_t count() const { return options_.count; }
  uint32_t living() const;
  pid_t process(uint32_t number) const { return all_[number].process; }
  // Readable when it has ended; -1: it does not run.
  int ended_fd(uint32_t number) const;
  void kill(uint32_t number);
  // To be called about every kLookNs while there are tasks: ends those that a signal has stopped, and those that have nothing to
  // do (a bit is set in `idle`) and take nothing, though a task `waits` on the board.
  void end_stopped(uint64_t now_ns, bool waits, uint64_t idle);
  static constexpr uint64_t kStoppedNs = 2000000000;       // who stops a job for a moment may go on with it
  static constexpr uint64_t kTakesNothingNs = 5000000000;  // one may have to be started, on a core that others use
  static constexpr uint64_t kLookNs = kStoppedNs / 8;
  // Precondition: it has ended. Whether by end_stopped(), so that what it did may be begun again.
  bool was_given_up(uint32_t number) const { return all_[number].given_up != nullptr; }
  // Precondition: it has ended. How, for a person; `signal`: that ended it, or 0.
  std::string take_last_words(uint32_t number, int32_t& signal);
  // It has run something, so that it is worth replacing.
  void note_use(uint32_t number) { all_[number].early_ends = 0; }
  // Of all there have been.
  uint64_t processor_ns() const;

  // All may use a client's memory from now on, or may not any more.
  void add_client(uint64_t client, int file, uint64_t bytes);
  void remove_client(uint64_t client);

 private:
  struct Executor {
    pid_t process = -1;
    base::Fd alive, socket;
    uint32_t early_ends = 0;
    base::Silence stillness{kStoppedNs};
    const char* given_up = nullptr;  // why end_stopped() has ended it
  };
  struct Client {
    int file;  // the client's mapping owns it
    uint64_t bytes;
  };
  base::Status start(uint32_t number);
  void tell(uint32_t number, uint64_t client, const Client& memory);

  const Options options_;
  const tasks::Board& board_;
  const int bell_;
  std::vector<Executor> all_;
  std::map<uint64_t, Client> clients_;
  base::Silence taking_{kTakesNothingNs};
  uint32_t taken_ = 0;     // from the board, at the last look
  uint64_t ended_ns_ = 0;  // processor time of those that have ended
};

}  // namespace offpath::service
