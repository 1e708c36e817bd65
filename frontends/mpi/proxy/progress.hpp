// SPDX-License-Identifier: BSD-3-Clause
// Progress: one thread that moves on what regions have asked of native MPI and is not done at once. It sleeps when
// there is nothing; else it polls, with naps in between that grow. It never blocks in MPI.
//
// Threads: add and post from any; everything a task does happens on the progress thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace offpath::mpi::regions {

class Task {
 public:
  virtual ~Task() = default;
  // True: it is over.
  virtual bool advance() = 0;
  // The executor of a channel has gone: end soon if it was for it.
  virtual void lose(uint64_t) {}
  // The program ends: answer whoever waits. It is destroyed next.
  virtual void give_up() {}
};

class Progress {
 public:
  // The thread starts with the first task, so it may use the processors of who adds that.
  void add(std::unique_ptr<Task> task);
  // Runs a function on the thread.
  void post(std::function<void()> function);
  void lose(uint64_t channel);
  // Gives up what is left. Tasks added later are given up at once.
  void stop();
  // Threads that end up here may add tasks directly.
  void adopt(std::unique_ptr<Task> task) { tasks_.push_back(std::move(task)); }

 private:
  void run();
  void take_new(bool idle, std::chrono::microseconds nap);
  bool advance_all();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::function<void()>> posted_;
  std::thread thread_;
  bool stopping_ = false;
  bool stopped_ = false;
  std::vector<std::unique_ptr<Task>> tasks_;  // progress thread only
};

}  // namespace offpath::mpi::regions
