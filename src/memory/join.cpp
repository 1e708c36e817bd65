// SPDX-License-Identifier: BSD-3-Clause
#include "memory/join.hpp"

#include <mutex>

namespace offpath::memory {

using base::Status;

// Keeps itself until the last part has ended.
class Join::Parts : public Sink, public std::enable_shared_from_this<Join::Parts> {
 public:
  explicit Parts(Ticket whole) : whole_(whole) {}

  void begin() {
    std::lock_guard lock(mutex_);
    ++open_;
  }
  // True: that was the last one.
  bool end(const Status& status) {
    std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = status;
    return --open_ == 0;
  }
  void put(uint64_t, const Status& status) override {
    if (!end(status)) return;
    const auto self = std::move(self_);
    whole_.sink->put(whole_.number, status_);
  }
  bool ok() {
    std::lock_guard lock(mutex_);
    return status_.ok();
  }
  // Before the last part can end.
  void keep() { self_ = shared_from_this(); }
  Status let_go() {
    self_.reset();
    return status_;
  }

 private:
  const Ticket whole_;
  std::mutex mutex_;
  size_t open_ = 1;  // who adds parts
  Status status_;
  std::shared_ptr<Parts> self_;
};

Join::Join(Ticket whole) : parts_(std::make_shared<Parts>(whole)) { parts_->keep(); }
Join::~Join() = default;

Ticket Join::next() {
  parts_->begin();
  return {parts_.get(), 0};
}

bool Join::add(const Outcome& outcome) {
  if (!outcome.is_later()) [[maybe_unused]]
    const bool last = parts_->end(outcome.status());
  return parts_->ok();
}

Outcome Join::end() { return parts_->end({}) ? Outcome(parts_->let_go()) : Outcome::later(); }

}  // namespace offpath::memory
