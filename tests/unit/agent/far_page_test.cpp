// SPDX-License-Identifier: BSD-3-Clause
// What a DPU shows of a worker: asked for once at a time, believed as far as it makes sense.
#include "agent/far_page.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace offpath::agent {
namespace {

using session::ClientRecord;
using session::WorkerPage;
using session::WorkerRecord;

class Page : public ::testing::Test {
 protected:
  // A worker that has sent 70 bytes, and clients 1 to `clients`, which have done so many operations.
  static std::vector<uint8_t> answer(uint32_t clients) {
    const auto page = std::make_unique<WorkerPage>();
    page->worker.generation = 99;
    page->worker.sent_bytes = 70;
    page->worker.updated_ns = 5;
    page->worker.clients = 1000000;
    for (uint32_t i = 0; i < std::min(clients, session::kObservedClients); ++i) {
      page->clients[i].id = i + 1;
      page->clients[i].done = i + 1;
      page->clients[i].process = 1;
    }
    const auto* const bytes = reinterpret_cast<const uint8_t*>(page.get());
    std::vector<uint8_t> out(bytes, bytes + sizeof(WorkerPage));
    out.resize(sizeof(WorkerRecord) + clients * sizeof(ClientRecord));
    return out;
  }
  bool take(const std::vector<uint8_t>& body) {
    return far_.take(body, [](uint32_t client) -> std::optional<FarPage::Local> {
      if (client == 2) return std::nullopt;
      return FarPage::Local{static_cast<pid_t>(400 + client), 50 + client};
    });
  }
  std::unique_ptr<WorkerPage> page_ = std::make_unique<WorkerPage>();
  FarPage far_;
};

TEST_F(Page, HasTheClientsThatAreHere) {
  ASSERT_TRUE(far_.want(3, *page_));
  ASSERT_TRUE(take(answer(3)));
  EXPECT_EQ(page_->worker.generation.load(), 2U);
  EXPECT_EQ(page_->worker.sent_bytes.load(), 70U);
  EXPECT_GT(page_->worker.updated_ns.load(), 5U) << "not by the DPU's clock";
  ASSERT_EQ(page_->worker.clients.load(), 2U);
  for (const uint32_t i : {0U, 1U}) {
    const ClientRecord& client = page_->clients[i];
    const uint32_t number = i == 0 ? 1 : 3;
    EXPECT_EQ(client.id.load(), uint64_t{3} << 32 | number);
    EXPECT_EQ(client.done.load(), number);
    EXPECT_EQ(client.process.load(), 400 + number);
    EXPECT_EQ(client.waited_ns.load(), 50 + number);
  }
}

TEST_F(Page, IsAskedForOnceAtATime) {
  EXPECT_TRUE(far_.want(0, *page_));
  EXPECT_FALSE(far_.want(0, *page_));
  EXPECT_FALSE(far_.want(0, *page_));
  EXPECT_TRUE(take(answer(0)));
  EXPECT_TRUE(far_.ask_again());
  EXPECT_TRUE(far_.is_awaited());
  EXPECT_TRUE(take(answer(0)));
  EXPECT_FALSE(far_.ask_again());
  EXPECT_FALSE(far_.is_awaited());
  EXPECT_TRUE(far_.want(0, *page_));
}

TEST_F(Page, NonsenseIsRefused) {
  EXPECT_FALSE(take(answer(1))) << "nobody asked";
  ASSERT_TRUE(far_.want(0, *page_));
  for (const size_t bytes : {size_t{0}, sizeof(WorkerRecord) - 1, sizeof(WorkerRecord) + 8})
    EXPECT_FALSE(take(std::vector<uint8_t>(bytes))) << bytes;
  EXPECT_FALSE(take(answer(session::kObservedClients + 1)));
  EXPECT_EQ(page_->worker.generation.load(), 0U);
  EXPECT_TRUE(take(answer(session::kObservedClients)));
  EXPECT_FALSE(take(answer(1))) << "twice";
}

TEST_F(Page, OfALostLinkHasNoClients) {
  ASSERT_TRUE(far_.want(0, *page_));
  ASSERT_TRUE(take(answer(1)));
  ASSERT_TRUE(far_.want(0, *page_));
  far_.lose();
  EXPECT_FALSE(far_.is_awaited());
  EXPECT_EQ(page_->worker.clients.load(), 0U);
  EXPECT_EQ(page_->worker.sent_bytes.load(), 70U);
  FarPage unseen;
  unseen.lose();
  const auto page = std::make_unique<WorkerPage>();
  EXPECT_FALSE(unseen.want(0, *page));
  EXPECT_NE(page->worker.updated_ns.load(), 0U) << "nobody is to wait for it";
}

}  // namespace
}  // namespace offpath::agent
