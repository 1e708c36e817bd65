// SPDX-License-Identifier: BSD-3-Clause
// Tells callers of offpath_op_notify that their operations have ended, from a thread of its own, which sleeps until the service
// says that something has.
#pragma once

#include <offpath/offpath.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace offpath::client {

class Notifier {
 public:
  explicit Notifier(offpath_session& session) : session_(session) {}
  // Those that have not ended by now are told OFFPATH_ERR_STATE.
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // The operation stays until it is told of.
  offpath_status_t add(offpath_op& op, offpath_op_told_t told, void* context);

 private:
  struct Entry {
    offpath_op* op;
    offpath_op_told_t told;
    void* context;
    uint64_t number;
  };
  bool start();
  void run();
  // With the mutex held, but for the telling. Whether any has ended.
  bool tell_ended(std::unique_lock<std::mutex>& lock);
  void tell(const Entry& entry, offpath_status_t status);

  offpath_session& session_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<Entry> entries_;
  uint64_t next_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace offpath::client
