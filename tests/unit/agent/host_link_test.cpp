// SPDX-License-Identifier: BSD-3-Clause
// An agent's clients, and what the service on the DPU hears of them.
#include "agent/host_link.hpp"

#include "../session/client_segment.hpp"
#include "fabric/loopback/loopback.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>

namespace offpath::agent {
namespace {

using session::OpKind;
using session::SlotState;
using wire::EntryKind;

struct Service : LinkOwner {
  Place place_for(const wire::LinkMessage&, size_t) override { return {}; }
  void on_message(const wire::LinkMessage&, fabric::Bytes) override {}
  void on_entry(const wire::LinkEntry& entry) override { heard.push_back(entry.kind); }
  void on_sent(uint64_t) override {}
  void on_lost(const char*) override {}
  std::vector<EntryKind> heard;
};

class ClientsEnd : public ::testing::TestWithParam<bool>, public session::testing::ClientSegment {};
INSTANTIATE_TEST_SUITE_P(SaidOrNot, ClientsEnd, ::testing::Bool());

// It submits something and is gone before the agent has looked.
TEST_P(ClientsEnd, ComesBehindWhatItHasSubmitted) {
  fabric::LoopbackNetwork network(1);
  Service there;
  HostLink host(network.make_endpoint(), [] {});
  Link service(network.make_endpoint(), there);
  ASSERT_TRUE(host.connect(service.fabric().address()).ok());
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  base::Fd client(ends[1]);
  host.attach(HostClient(base::Fd(ends[0]), base::Fd(), getpid(),
                         std::move(session::SegmentView::open(other_mapping()).value()),
                         std::make_shared<memory::Aliases>(), memory::make_direct()),
              0);
  slot(0).kind = static_cast<uint32_t>(OpKind::window_close);
  slot(0).state = static_cast<uint32_t>(SlotState::posted);
  submit(0);
  const bool says_so = GetParam();
  if (says_so) {
    ASSERT_EQ(send(client.get(), &session::kDetach, 1, 0), 1);
  } else {
    client.reset();
  }
  for (int i = 0; i < 50; ++i) host.round(), service.progress();
  const EntryKind end = says_so ? EntryKind::detach : EntryKind::gone;
  EXPECT_EQ(there.heard, (std::vector{EntryKind::hello, EntryKind::attach, EntryKind::submit, end}));
}

struct Answering : Service {
  void on_entry(const wire::LinkEntry& entry) override {
    if (entry.kind == EntryKind::hello) EXPECT_TRUE(link->connect(entry.body).ok());
  }
  Link* link = nullptr;
};

class ServicesEnd : public ::testing::Test, public session::testing::ClientSegment {};

// A client takes its answer, and nothing else that nobody has asked for: the agent would wait for room in its socket.
TEST_F(ServicesEnd, AnswersAClientOnce) {
  fabric::LoopbackNetwork network(1);
  Answering there;
  HostLink host(network.make_endpoint(), [] {});
  Link service(network.make_endpoint(), there);
  there.link = &service;
  ASSERT_TRUE(host.connect(service.fabric().address()).ok());
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const base::Fd client(ends[1]);
  host.attach(HostClient(base::Fd(ends[0]), base::Fd(), getpid(),
                         std::move(session::SegmentView::open(other_mapping()).value()),
                         std::make_shared<memory::Aliases>(), memory::make_direct()),
              0);
  const auto settle = [&] {
    for (int i = 0; i < 50; ++i) host.round(), service.progress();
  };
  settle();
  session::AttachReply reply{};
  for (const bool again : {false, true}) {
    service.add_record(EntryKind::attached, 1, reply);
    settle();
    EXPECT_EQ(host.lost(), again);
  }
  EXPECT_EQ(recv(client.get(), &reply, sizeof(reply), MSG_DONTWAIT), static_cast<ssize_t>(sizeof(reply)));
  EXPECT_EQ(recv(client.get(), &reply, sizeof(reply), MSG_DONTWAIT), 0);
}

}  // namespace
}  // namespace offpath::agent
