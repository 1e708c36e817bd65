// SPDX-License-Identifier: BSD-3-Clause
// Lobby: who has connected to a listening socket, and has not said yet who he is and what he wants. Each has a time for
// that, and while he is silent the others are let in and heard. One descriptor is kept so that whoever comes when none
// is left can be told instead of waiting. One thread.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <utility>

namespace offpath::session {

// `Who`: what is known of a guest so far. Its has_greeted(): he has said something that not everybody can say.
template <class Who>
class Lobby {
 public:
  struct Guest {
    base::Fd socket;
    Who who;
    bool no_room;  // no descriptor is left for more than a word to him
    uint64_t until_ns;
  };
  struct Options {
    uint64_t patience_ns;                              // so long a guest may take
    size_t most = std::numeric_limits<size_t>::max();  // of more guests a silent one goes, or the first
    std::function<Who()> make = [] { return Who(); };
  };

  explicit Lobby(Options options) : options_(std::move(options)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

  void open(int listening) {
    listening_ = listening;
    watch(listening, EPOLLIN);
  }
  // Readable when look() has something to do.
  int event_fd() const { return epoll_.get(); }
  bool any() const { return !guests_.empty(); }
  // Until a guest is late, but no longer than `most_ms`; -1: for ever. They came one after the other.
  int wait_ms(int most_ms) const {
    if (guests_.empty()) return most_ms;
    const uint64_t now_ns = base::clock_ns(), until_ns = guests_.front().until_ns;
    const uint64_t left_ms = until_ns <= now_ns ? 0 : (until_ns - now_ns) / 1000000 + 1;
    const auto most = static_cast<uint64_t>(most_ms < 0 ? std::numeric_limits<int>::max() : most_ms);
    return static_cast<int>(std::min(left_ms, most));
  }

  // For `hear`: from now on the guest is somebody else's.
  base::Fd take(Guest& guest) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, guest.socket.get(), nullptr);  // a child may have it, too
    return std::move(guest.socket);
  }
  // Hears all guests, lets go of those that are late, and lets one in, if one comes: whether one has. `hear`, called with
  // a Guest& that may have said something: whether he is done with.
  template <class Hear>
  bool look(const Hear& hear) {
    epoll_event events[16];
    const int count = epoll_wait(epoll_.get(), events, 16, 0);
    for (auto guest = guests_.begin(); guest != guests_.end();) guest = look_at(guest, hear);
    const bool comes = std::any_of(events, events + std::max(count, 0),
                                   [this](const epoll_event& event) { return event.data.fd == listening_; });
    if (!comes || !let_in()) return false;
    look_at(std::prev(guests_.end()), hear);  // who has greeted is not sent away for others
    return true;
  }

 private:
  using Place = typename std::list<Guest>::iterator;

  template <class Hear>
  Place look_at(Place guest, const Hear& hear) {
    bool goes = hear(*guest);
    if (!goes && guest->until_ns <= base::clock_ns()) {
      base::log_write(base::LogLevel::warn, "refused a connection that has not said in time who it is");
      goes = true;
    }
    return goes ? let_go(guest) : std::next(guest);
  }

  bool let_in() {
    if (!spare_.valid()) spare_ = open_spare();
    base::Fd socket(accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC));
    const bool no_room = !socket.valid() && (errno == EMFILE || errno == ENFILE);
    if (no_room) {
      spare_.reset();
      socket = base::Fd(accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC));
      constexpr timespec kNap{0, 10000000};
      if (!socket.valid()) nanosleep(&kNap, nullptr);  // whoever has taken it will give it back
    }
    if (!socket.valid()) return false;
    if (guests_.size() >= options_.most) {
      const auto silent =
          std::find_if(guests_.begin(), guests_.end(), [](const Guest& g) { return !g.who.has_greeted(); });
      let_go(silent == guests_.end() ? guests_.begin() : silent);
    }
    watch(socket.get(), EPOLLIN | EPOLLET);
    if (no_room) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listening_, nullptr);  // until he has gone
    guests_.push_back({std::move(socket), options_.make(), no_room, base::clock_ns() + options_.patience_ns});
    return true;
  }

  Place let_go(Place guest) {
    const bool no_room = guest->no_room;
    take(*guest);
    const Place next = guests_.erase(guest);
    if (no_room) watch(listening_, EPOLLIN);
    return next;
  }

  static base::Fd open_spare() { return base::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }
  void watch(int fd, uint32_t what) {
    epoll_event event{};
    event.events = what;
    event.data.fd = fd;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }

  const Options options_;
  int listening_ = -1;
  base::Fd spare_ = open_spare(), epoll_;
  std::list<Guest> guests_;
};

}  // namespace offpath::session
