// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/endpoint.hpp"

#include "base/log.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>

namespace offpath::fabric::tcp {
namespace {
constexpr int kTicksForGuests = 10;
constexpr int kGuestsInARow = 64;
constexpr const char* kLeft = "it left";
}  // namespace

base::Status Endpoint::open_doors() {
  auto places = own_places(options_.devices);
  if (!places.ok()) return places.status();
  base::Status failure;
  for (Place& place : places.value()) {
    auto socket = listen_at(place, options_.sockets);
    if (!socket.ok()) failure = socket.status();  // an address may be there that cannot be used yet
    if (!socket.ok()) continue;
    own_.places.push_back(place);
    listeners_.push_back(std::make_unique<Listener>(*this, std::move(socket.value())));
    watch(listeners_.back()->socket.get(), *listeners_.back(), false);
  }
  return listeners_.empty() ? failure : base::Status();
}

bool Endpoint::let_all_in() {
  bool any = false;
  for (const auto& listener : listeners_) {
    if (!listener->somebody_waits || listener->no_room) continue;
    let_in(*listener);
    any = true;
  }
  return any;
}

void Endpoint::let_in(Listener& listener) {
  for (int i = 0; i < kGuestsInARow; ++i) {
    base::Fd socket = accept_from(listener.socket.get(), options_.sockets);
    if (!socket.valid()) {
      listener.no_room = errno != EAGAIN;  // no descriptor: who waits is let in later
      listener.somebody_waits = listener.no_room;
      if (listener.no_room) start_ticks();
      return;
    }
    if (guests_.size() >= options_.max_strangers) {
      // A guest that has said nothing yet goes first: the others have said what only a member of the job could say.
      const auto is_silent = [](const auto& guest) { return guest->handshake.stage() == seal::Stage::greeting; };
      const auto silent = std::find_if(guests_.begin(), guests_.end(), is_silent);
      dismiss(silent == guests_.end() ? *guests_.front() : **silent, "others wait");
    }
    auto guest = std::make_unique<Guest>(*this, std::move(socket));
    guest->ticks = kTicksForGuests;
    watch(guest->socket.get(), *guest, false);
    guests_.push_back(std::move(guest));
    start_ticks();
    on_guest_events(*guests_.back());  // members of the job have greeted already, and are not sent away for others
  }
}

// It did not get so far as to prove the key.
void Endpoint::dismiss(const Guest& guest, const char* why) {
  const bool left = why == kLeft;  // as members of the job do, whose own connection was not needed
  if (std::has_single_bit(++counters_.strangers)) {
    base::log_write(left ? base::LogLevel::debug : base::LogLevel::warn,
                    "%llu connection(s) refused that did not prove the job's key; the last: %s",
                    static_cast<unsigned long long>(counters_.strangers), why);
  }
  const auto here = std::find_if(guests_.begin(), guests_.end(), [&](const auto& g) { return g.get() == &guest; });
  (*here)->socket.reset();
  bury(std::move(*here));
  guests_.erase(here);
}

void Endpoint::on_guest_events(Guest& guest) {
  while (guest.socket.valid()) {
    Responder& handshake = guest.handshake;
    const ssize_t got =
        recv(guest.socket.get(), guest.bytes.data() + guest.got, handshake.wants() - guest.got, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return dismiss(guest, kLeft);
    guest.got += static_cast<size_t>(got);
    if (guest.got < handshake.wants()) continue;
    const Words answer = handshake.take(Bytes(guest.bytes).first(guest.got));
    guest.got = 0;
    if (handshake.stage() == seal::Stage::failed) return dismiss(guest, "a wrong proof, or another release");
    if (handshake.stage() == seal::Stage::judging) return decide(guest);
    if (!send_words(guest.socket.get(), answer)) return dismiss(guest, "it does not read");
  }
}

// It has proven the key; who may stay is the same on both sides.
void Endpoint::decide(Guest& guest) {
  const Greeting& greeting = guest.handshake.greeting();
  const bool is_for_us = greeting.to == own_.id && greeting.from != own_.id && greeting.wish < kLanes;
  if (!is_for_us) return dismiss(guest, "it wants somebody else");
  const auto lane = static_cast<Lane>(greeting.wish);
  Verdict verdict = Verdict::accepted;
  Peer* peer = nullptr;
  if (greeting.security != options_.security) {
    verdict = Verdict::security;
  } else {
    peer = &peer_with(greeting.from);
    if (greeting.life > peer->life && !peer->given_up) {
      lose(*peer, "it begins anew");
      peer = &add_peer(greeting.from, greeting.life);
    }
    const Link& link = peer->link(lane);
    // Ours goes ahead if it has reached the other side: that one takes it.
    const bool ours_is_ahead = link.attempt != nullptr && link.attempt->stage == Attempt::Stage::proving;
    if (peer->lost || greeting.life != peer->life) {
      verdict = Verdict::gone;
    } else if (link.stands()) {
      verdict = Verdict::duplicate;
    } else if (ours_is_ahead && own_.id < greeting.from) {
      verdict = Verdict::crossed;
    }
  }
  const bool said = send_words(guest.socket.get(), guest.handshake.judge(verdict, options_.security));
  if (!said) return dismiss(guest, kLeft);
  if (verdict == Verdict::accepted) {
    establish(peer->link(lane), std::move(guest.socket), guest.handshake.session());
  }
  guest.socket.reset();
  const auto here = std::find_if(guests_.begin(), guests_.end(), [&](const auto& g) { return g.get() == &guest; });
  bury(std::move(*here));
  guests_.erase(here);
}

bool Endpoint::tick_guests() {
  std::vector<Guest*> late;
  for (const auto& guest : guests_) {
    if (--guest->ticks <= 0) late.push_back(guest.get());
  }
  for (const Guest* guest : late) dismiss(*guest, "it took too long");
  return !guests_.empty();
}

}  // namespace offpath::fabric::tcp
