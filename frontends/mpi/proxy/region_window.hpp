// SPDX-License-Identifier: BSD-3-Clause
// RegionWindow: a window that a region has made, in the proxy of its rank. It has a communicator of its own, on which
// the proxies send each other puts and gets (transfer.hpp) for either side's memory, and pass the barriers of fences.
//
// A window belongs together with the host's window of the same number on the communicator, unless its info said "0".
// Fences of the two are one: it needs both sides of every rank. In an epoch only those of the same epoch are served.
//
// Progress thread only. It exists from MPI_Win_create to MPI_Win_free, or the loss of its executor.
#pragma once

#include "mpi/proxy/contexts.hpp"
#include "mpi/proxy/host_window.hpp"
#include "mpi/proxy/transfer.hpp"
#include "mpi/proxy/upcall.hpp"

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

namespace offpath::mpi::regions {

class RegionWindow {
 public:
  RegionWindow(Upcall created, std::shared_ptr<Contexts> contexts, uint64_t name);

  uint64_t name() const { return name_; }
  const Contexts* contexts() const { return contexts_.get(); }
  // Which of the communicator's windows it is; nothing belongs to one without.
  bool alone() const { return alone_; }
  size_t number() const { return number_; }
  // Puts, gets and fences of this process can start.
  bool reachable() const { return state_ == State::open || state_ == State::fencing; }

  // Calls of its region on it.
  void serve(Upcall upcall);
  // A put or get of this process.
  void start(std::unique_ptr<Outgoing> outgoing);
  // The host side has come to its fence.
  void host_fence(std::shared_ptr<HostWindow> host);

  // True: it is over.
  bool advance();
  void lose(uint64_t channel);
  void give_up();

 private:
  enum class State { creating, open, fencing, freeing, closed };

  void create();
  void finish_creation();
  void listen();
  void hear();
  void admit(const Message& message, int origin);
  std::byte* place_of(const Header& header);
  void move_transfers();
  void transfer(Upcall upcall);
  void begin_fence();
  void finish_fence();
  void close(int code);

  std::shared_ptr<Contexts> contexts_;
  uint64_t name_;
  uint64_t channel_;
  bool alone_ = false;
  bool crosses_ = false;
  State state_ = State::creating;
  size_t number_ = 0;
  std::shared_ptr<HostWindow> host_;  // unless alone

  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;
  int64_t unit_ = 1;
  std::vector<std::byte> shadow_;                       // the memory, where the host does not see it
  std::vector<std::pair<uint64_t, uint64_t>> written_;  // what others put there in this epoch: offset, bytes
  bool shadowed_ = false;

  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Request progress_ = MPI_REQUEST_NULL;  // of the creation, or of a barrier
  MPI_Request header_ = MPI_REQUEST_NULL;
  Message message_{};
  uint64_t epoch_ = 0;
  int next_tag_ = 0;
  Upcall waiting_;                      // creation, fence or free of the region
  std::shared_ptr<HostWindow> fencer_;  // the host side is at its fence
  std::list<std::unique_ptr<Outgoing>> outgoing_;
  std::list<Incoming> incoming_;
  std::list<std::pair<Message, int>> early_;  // of the next epoch
};

}  // namespace offpath::mpi::regions
