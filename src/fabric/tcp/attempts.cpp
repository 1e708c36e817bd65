// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/endpoint.hpp"

#include "base/log.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace offpath::fabric::tcp {
namespace {

// In ticks. A connection that stands waits longer: its other side may be stopped for a while.
constexpr int kTicksToNextPlace = 6;
constexpr int kTicksToConnect = 20;
constexpr int kTicksToProve = 60;
constexpr int kTicksForTheOther = 4;  // then it is asked again: it may have died
constexpr int kRounds = 8;
constexpr int kCrossings = 15;

bool is_lack_of_room(int number) {
  return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM;
}

}  // namespace

void Endpoint::Attempt::note_failure(int number) {
  may_help |= is_lack_of_room(number);
  refusals += number == ECONNREFUSED ? 1 : 0;
}

void Endpoint::open_link(Link& link) {
  if (link.stands() || link.attempt != nullptr || link.peer.lost) return;
  link.attempt = std::make_unique<Attempt>(link);
  start_ticks();
  dial(*link.attempt);
}

// The next place that can be tried.
void Endpoint::dial(Attempt& attempt) {
  const std::vector<Place>& places = attempt.link.peer.places;
  attempt.handshake.reset();
  while (attempt.next_place < places.size()) {
    attempt.socket = begin_connect(places[attempt.next_place++], options_.sockets);
    if (!attempt.socket.valid()) {
      attempt.note_failure(errno);
      continue;
    }
    attempt.stage = Attempt::Stage::connecting;
    attempt.ticks = attempt.next_place < places.size() ? kTicksToNextPlace : kTicksToConnect;
    return watch(attempt.socket.get(), attempt, false);
  }
  attempt.socket.reset();
  attempt.stage = Attempt::Stage::resting;
  attempt.ticks = 1;
  // What has cut it off may take a while. Where each of its places says that nobody listens it has ended.
  const bool was_there = attempt.link.peer.life > 0 && attempt.refusals < places.size();
  if ((attempt.may_help || was_there) && ++attempt.rounds < kRounds) {
    if (was_there && attempt.rounds == 1) dial_anew(attempt);  // it may have cut off the first attempt, too
    return;
  }
  doom(attempt.link.peer, attempt.may_help ? "it ends connections before both sides are proven (another job's key?)"
                                           : "it cannot be reached");
}

void Endpoint::on_attempt_events(Attempt& attempt, uint32_t events) {
  if (attempt.link.attempt.get() != &attempt || !attempt.socket.valid()) return;  // buried
  if (attempt.stage == Attempt::Stage::connecting) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
    if (const int error = connect_error(attempt.socket.get()); error != 0) {
      attempt.note_failure(error);
      return dial(attempt);
    }
    attempt.handshake.emplace(options_.secret, Greeting{static_cast<uint8_t>(attempt.link.lane), options_.security,
                                                        own_.id, attempt.link.peer.id, attempt.link.peer.life});
    attempt.stage = Attempt::Stage::proving;
    attempt.ticks = kTicksToProve;
    attempt.got.clear();
    if (!send_words(attempt.socket.get(), attempt.handshake->greet())) return dial(attempt);
  }
  if (attempt.stage == Attempt::Stage::proving) go_on(attempt);
}

void Endpoint::go_on(Attempt& attempt) {
  Initiator& handshake = *attempt.handshake;
  while (handshake.stage() != seal::Stage::done) {
    uint8_t bytes[seal::kGreetingBytes];
    const ssize_t got = recv(attempt.socket.get(), bytes, handshake.wants() - attempt.got.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      attempt.may_help = true;  // who has too many strangers makes room
      return dial(attempt);
    }
    attempt.got.insert(attempt.got.end(), bytes, bytes + got);
    if (attempt.got.size() < handshake.wants()) continue;
    const Words answer = handshake.take(attempt.got);
    attempt.got.clear();
    const bool failed = handshake.stage() == seal::Stage::failed;
    if (failed && handshake.met_another()) {
      base::log_write(base::LogLevel::info, "another service answers where peer service %u was",
                      attempt.link.peer.number);
    }
    if (failed || !send_words(attempt.socket.get(), answer)) return dial(attempt);
  }
  judge(attempt);
}

void Endpoint::judge(Attempt& attempt) {
  Link& link = attempt.link;
  const Initiator& handshake = *attempt.handshake;
  switch (handshake.verdict()) {
    case Verdict::accepted: {
      const seal::Session session = handshake.session();
      return establish(link, std::move(attempt.socket), session);
    }
    case Verdict::crossed:
      attempt.socket.reset();
      attempt.stage = Attempt::Stage::waiting;
      attempt.ticks = kTicksForTheOther;
      if (++attempt.crossings > kCrossings) doom(link.peer, "its connection did not come");
      return;
    case Verdict::security:
      base::log_write(base::LogLevel::warn,
                      "a peer service has the security '%s', this one '%s' (they do not talk to each other). Set "
                      "OFFPATH_FABRIC_SECURITY alike on all nodes",
                      name_of(handshake.other_security()), name_of(options_.security));
      return doom(link.peer, "its security is another one");
    case Verdict::duplicate:
      // One that has broken here, which the other side has not noticed.
      return doom(link.peer, "it has a connection already", Ending::by_break);
    case Verdict::gone:
      return doom(link.peer, "it has given this service up");
  }
}

void Endpoint::tick(Attempt& attempt) {
  if (--attempt.ticks > 0) return;
  const bool anew = attempt.stage == Attempt::Stage::resting || attempt.stage == Attempt::Stage::waiting;
  anew ? dial_anew(attempt) : dial(attempt);
}

void Endpoint::dial_anew(Attempt& attempt) {
  attempt.next_place = attempt.refusals = 0;
  attempt.may_help = false;  // who had no room may be gone by now
  dial(attempt);
}

}  // namespace offpath::fabric::tcp
