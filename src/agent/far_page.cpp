// SPDX-License-Identifier: BSD-3-Clause
#include "agent/far_page.hpp"

#include "base/clock.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>

namespace offpath::agent {

using session::ClientRecord;
using session::WorkerRecord;

namespace {

template <typename T>
void set(std::atomic<T>& field, uint64_t value) {
  field.store(static_cast<T>(value), std::memory_order_relaxed);
}

// Observers may be reading: whole words, of a record from byte `begin` on.
void copy_words(void* record, std::span<const uint8_t> from, size_t begin) {
  auto* const words = static_cast<uint64_t*>(record);
  for (size_t at = begin; at < from.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, from.data() + at, sizeof(word));
    std::atomic_ref<uint64_t>(words[at / sizeof(word)]).store(word, std::memory_order_relaxed);
  }
}

}  // namespace

bool FarPage::want(uint32_t number, session::WorkerPage& page) {
  number_ = number;
  page_ = &page;
  if (lost_) lose();
  if (asked_) again_ = true;
  return !lost_ && !std::exchange(asked_, true);
}

bool FarPage::take(std::span<const uint8_t> body, const Find& find) {
  const size_t records = body.size() < sizeof(WorkerRecord) ? 0 : body.size() - sizeof(WorkerRecord);
  const bool fits = body.size() >= sizeof(WorkerRecord) && records % sizeof(ClientRecord) == 0 &&
                    records / sizeof(ClientRecord) <= session::kObservedClients;
  if (!asked_ || !fits) return false;
  asked_ = false;
  session::rewrite(*page_, [&] {
    WorkerRecord& worker = page_->worker;
    copy_words(&worker, body.first(sizeof(worker)), offsetof(WorkerRecord, updated_ns));
    set(worker.updated_ns, base::clock_ns());  // by this machine's clock
    uint32_t count = 0;
    for (auto rest = body.subspan(sizeof(worker)); !rest.empty(); rest = rest.subspan(sizeof(ClientRecord))) {
      uint64_t client = 0;
      memcpy(&client, rest.data(), sizeof(client));
      const auto local = find(static_cast<uint32_t>(client));
      if (!local) continue;
      ClientRecord& record = page_->clients[count++];
      copy_words(&record, rest.first(sizeof(record)), 0);
      set(record.id, uint64_t{number_} << 32 | client);  // unlike those of other links
      set(record.process, static_cast<uint32_t>(local->process));
      set(record.waited_ns, local->waited_ns);
    }
    set(worker.clients, count);
  });
  return true;
}

bool FarPage::ask_again() {
  if (!std::exchange(again_, false)) return false;
  return asked_ = true;
}

void FarPage::lose() {
  lost_ = true;
  asked_ = again_ = false;
  if (page_ == nullptr) return;
  session::rewrite(*page_, [&] {
    set(page_->worker.updated_ns, base::clock_ns());
    set(page_->worker.clients, 0);
  });
}

}  // namespace offpath::agent
