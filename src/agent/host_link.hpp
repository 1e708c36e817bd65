// SPDX-License-Identifier: BSD-3-Clause
// HostLink: an agent's link to one worker of a DPU, and the clients that are served there.
#pragma once

#include "agent/far_page.hpp"
#include "agent/host_client.hpp"
#include "agent/link.hpp"
#include "base/starvation.hpp"

#include <functional>
#include <map>
#include <memory>

namespace offpath::agent {

class HostLink : public LinkOwner {
 public:
  // `on_gone`: a client counts no more; before it hears so, if it does.
  HostLink(std::unique_ptr<fabric::Fabric> fabric, std::function<void()> on_gone);

  base::Status connect(const std::vector<uint8_t>& address);
  bool lost() const { return link_.lost(); }
  size_t clients_count() const { return clients_.size(); }

  // Has a client that was found to be one served; it is answered when the service has.
  void attach(HostClient client, uint32_t flags);
  // Its clients are told that another agent is in this one's place.
  void leave();
  // Has that page written of its worker, soon, with its own clients.
  void publish(uint32_t number, session::WorkerPage& page);
  bool owes_page() const { return page_.is_awaited(); }
  // Takes what clients have submitted and what the service has sent, and lets go of clients that have gone. Whether
  // there was anything.
  bool round();
  // A client that has something under way does not wait for it.
  bool any_computes() const;
  // Before sleeping: false if there is something to do.
  bool prepare_sleep();
  void end_sleep();
  // Readable when round() has something to do.
  int event_fd() const { return epoll_.get(); }
  void flush(int timeout_ms) { link_.flush(timeout_ms); }

  // LinkOwner
  Place place_for(const wire::LinkMessage& message, size_t bytes) override;
  void on_message(const wire::LinkMessage& message, fabric::Bytes payload) override;
  void on_entry(const wire::LinkEntry& entry) override;
  void on_sent(uint64_t) override {}
  void on_lost(const char* why) override;

 private:
  bool take_submissions(uint32_t number, HostClient& client);
  bool look();
  void on_readable(uint32_t number, bool process_ended);
  // No more a client; it may be told.
  HostClient take_out(uint32_t number);
  void take_page(fabric::Bytes body);
  void answer(fabric::Bytes question);
  // That it has gone; the service knows nothing of that.
  void drop(uint32_t number);

  const std::function<void()> on_gone_;
  base::Fd epoll_;  // of the fabric, clients' sockets and processes
  uint32_t next_client_ = 1;
  std::map<uint32_t, HostClient> clients_;
  FarPage page_;
  base::OwnWaits own_waits_;
  Link link_;  // last: it may be sending what clients share
};

}  // namespace offpath::agent
