// SPDX-License-Identifier: BSD-3-Clause
// FarPage: what observers on the host see of one worker of a service on a DPU. The service is asked for it over the link
// (wire::EntryKind::look), and again only when it has answered: an observer never has more than one page under way there,
// and a link that is slow holds nobody up. Nothing is asked while nobody watches.
#pragma once

#include "session/observation.hpp"

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace offpath::agent {

class FarPage {
 public:
  // What this machine knows better of a client than the DPU; nothing: it has gone.
  struct Local {
    pid_t process = 0;
    uint64_t waited_ns = 0;
  };
  using Find = std::function<std::optional<Local>(uint32_t client)>;

  // An observer wants it there, as page `number` of its memory, where it stays. Whether to ask the service now.
  bool want(uint32_t number, session::WorkerPage& page);
  bool is_awaited() const { return asked_; }
  // The service's answer (wire::EntryKind::seen). False: it makes no sense, or was not asked for.
  bool take(std::span<const uint8_t> body, const Find& find);
  // Whether to ask the service once more, as somebody wanted to know since it was asked.
  bool ask_again();
  // Nothing more will be heard: it has no clients.
  void lose();

 private:
  session::WorkerPage* page_ = nullptr;
  uint32_t number_ = 0;
  bool asked_ = false, again_ = false, lost_ = false;
};

}  // namespace offpath::agent
