// SPDX-License-Identifier: BSD-3-Clause
// What comes after a session whose service is lost: another service of the job is attached to, started if there is none. Tasks
// go on there by themselves (docs/design/0044-recovery.md, Tasks). Teams and windows of the lost session stay as they are; who
// made them makes others in the next one.
//
// It is the same for a service that leaves, as another one is in its place: tasks that are submitted from then on go on there, and
// what the session has at the old one stays and ends there. Once there is nothing, nobody stays (next_session.hpp) and its owner makes nothing there any more, the session leaves it, and is as one whose
// service is lost. If there is no next session, all stays as it is until that service is lost.
//
// Services may be replaced often. Where the program only has tasks, they go to the newest session from then on; one before that ends when
// nothing is there any more.
//
// A task that may have begun is only begun again if that is harmless: not where it may be begun once only, or changes memory.
//
// Threads: its own, which ends once nothing of the session is there, if that has no function that tasks could run. It also lets those who wait in the lost session know what ends in the next one. Calls are made with the
// lost session's mutex held; it is taken before the next one's.
#pragma once

#include <offpath/offpath.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace offpath::client {

class Successor {
 public:
  explicit Successor(offpath_session& lost) : lost_(lost) {}
  ~Successor() { end(); }
  Successor(const Successor&) = delete;
  Successor& operator=(const Successor&) = delete;

  // Without the mutex. What it is at is not ended.
  void end();

  // Whether there is, or may be, another session; the first call sees to it. False: never. Its tasks have ended then.
  bool may_help();
  // As it was when that was asked last: something may still end. Without the mutex, too.
  bool helps() const { return helps_; }
  // Whether tasks of a lost session may go on there. On another machine nobody knows whether one has begun.
  bool tasks_go_on();
  // Whether a new task, or function, goes there; from the first time on. Not if teams may have to wait for it here.
  bool new_tasks_go_on();
  // Takes over an operation, which has not ended: a task. Its `again` is set once it is submitted.
  void add(offpath_op& op);
  // Of a task of a lost session: in progress there, or how it has ended; nothing: it stays here.
  std::optional<offpath_status_t> settle(offpath_op& op);
  // It has ended.
  void forget(offpath_op& op);
  // What was taken over and has not ended.
  const std::set<offpath_op*>& under_way() const { return under_way_; }
  // OFFPATH_OK: *next; OFFPATH_IN_PROGRESS: not yet; else never. Does not wait. Whoever asks makes nothing in the session any more.
  offpath_status_t look(offpath_session_t** next);
  // Waits, with the mutex let go, until functions can be registered. nullptr: they cannot.
  offpath_session_t* await(std::unique_lock<std::mutex>& lock);
  // All functions of the session, where there is a next one. With the mutex, which is let go meanwhile. Whether they are known there.
  bool know_functions(std::unique_lock<std::mutex>& lock);
  void add_function(const offpath_function* ours, offpath_function_t* theirs);
  // Its thread, if that has ended, as nothing can come any more. Without the mutex.
  void join();

 private:
  bool start();
  void run();
  // They return with the mutex held.
  bool attach(std::unique_lock<std::mutex>& lock);
  bool attach_after_loss(std::unique_lock<std::mutex>& lock);
  void leave_old(std::unique_lock<std::mutex>& lock);
  void move_on();
  void end_past(std::unique_lock<std::mutex>& lock);
  void shrink(std::unique_lock<std::mutex>& lock);
  bool is_over() const;
  void sleep(std::unique_lock<std::mutex>& lock, uint32_t seen);
  // All of the session's tasks, whoever looks at them.
  void hand_on();
  void submit_all();
  offpath_status_t submit(offpath_op& op);

  offpath_session& lost_;
  std::condition_variable changed_;
  std::atomic<bool> helps_{false};
  bool tried_ = false, ready_ = false, failed_ = false, stopping_ = false;
  bool tasks_have_moved_ = false;  // to the next one, though the service lives
  bool refused_ = false;           // there is none as long as its service lives
  bool may_leave_ = false;         // nothing is made in the session any more, but by who stays
  int looks_ = 0;                  // since then whether it can, or the session before the next one
  bool has_shrunk_ = false;        // the session
  bool over_ = false;              // the thread has ended, or is about to
  offpath_session_t* next_ = nullptr;
  bool owns_next_ = true;
  std::deque<offpath_session_t*>
      past_;  // that were the next ones; the oldest first, as it may be at something in the others
  std::map<const offpath_function*, offpath_function_t*> functions_;  // in next_
  std::vector<offpath_op*> waiting_;
  std::set<offpath_op*> under_way_;
  std::thread thread_;
};

}  // namespace offpath::client
