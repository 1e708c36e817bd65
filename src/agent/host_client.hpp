// SPDX-License-Identifier: BSD-3-Clause
// HostClient: one client as its agent sees it. What the service has written is put into its segment here, where times are
// moved to this machine's clock.
#pragma once

#include "agent/open_memory.hpp"
#include "agent/patch.hpp"
#include "base/fd.hpp"
#include "memory/aliases.hpp"
#include "memory/port.hpp"
#include "session/link.hpp"
#include "session/segment_view.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace offpath::agent {

class HostClient {
 public:
  HostClient(base::Fd socket, base::Fd alive, pid_t process, session::SegmentView view,
             std::shared_ptr<memory::Aliases> aliases, std::shared_ptr<memory::Port> memory);

  int socket() const { return socket_.get(); }
  int alive() const { return alive_.get(); }  // -1: none
  pid_t process() const { return process_; }
  // What it has given to Offpath; the rest of its process is refused.
  const std::shared_ptr<memory::Port>& memory() const { return memory_; }
  session::SegmentHeader& header() const { return view_.header(); }
  bool broken() const { return view_.corrupt(); }
  void leave();
  bool has_submission() const;
  uint64_t waited_ns() const;  // the program, in calls that waited for operations
  // Something of it is under way, and it does not wait.
  bool computes() const;

  // The body of `submit` for the next submission, if any. From here on the operation counts as begun: what becomes of it
  // cannot be known if the link is lost.
  std::optional<std::vector<uint8_t>> take_submission();
  // The client wants a sign of life, and has not been passed on yet.
  std::optional<uint32_t> take_question();

  // The body of `words`. False: it makes no sense.
  bool take_words(std::span<const uint8_t> body);
  // To its attaching. Whether it could be said.
  bool answer(session::AttachReply reply);
  bool is_answered() const { return is_answered_; }
  bool say(uint8_t word);

 private:
  uint64_t here(uint64_t service_ns, uint32_t slot) const;

  base::Fd socket_, alive_;
  pid_t process_;
  session::SegmentView view_;
  std::shared_ptr<memory::Aliases> aliases_;
  std::shared_ptr<OpenMemory> open_;
  std::shared_ptr<memory::Port> memory_;
  bool is_answered_ = false;
  uint32_t asked_ = 0;
  int64_t ahead_ns_ = INT64_MIN;    // the service's clock, as it was seen at its most
  std::vector<uint64_t> taken_ns_;  // by slot: when it was taken; 0: nothing is under way there
  uint32_t under_way_ = 0;
};

}  // namespace offpath::agent
