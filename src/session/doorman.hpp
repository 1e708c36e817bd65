// SPDX-License-Identifier: BSD-3-Clause
// Doorman: accepts connections also when no descriptor is left, by one that it keeps for that, so that whoever comes
// can be told instead of waiting.
#pragma once

#include "base/fd.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <ctime>

namespace offpath::session {

class Doorman {
 public:
  struct Guest {
    base::Fd socket;       // invalid: nobody came
    bool no_room = false;  // for more than a word; then closed before the next one is let in
  };

  // Not blocking for more than a moment.
  Guest let_in(int listening) {
    if (!spare_.valid()) spare_ = open_spare();
    base::Fd socket(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
    const bool no_room = !socket.valid() && (errno == EMFILE || errno == ENFILE);
    if (!no_room) return {std::move(socket), false};
    spare_.reset();
    socket = base::Fd(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
    constexpr timespec kNap{0, 10000000};
    if (!socket.valid()) nanosleep(&kNap, nullptr);  // whoever has taken it will give it back
    return {std::move(socket), true};
  }

 private:
  static base::Fd open_spare() { return base::Fd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }
  base::Fd spare_ = open_spare();
};

}  // namespace offpath::session
