// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/adapt/adapter.hpp"

#include "base/clock.hpp"
#include "mpi/job/counters.hpp"
#include "mpi/job/job.hpp"
#include "mpi/native/native.hpp"

#include <bit>

namespace offpath::mpi {

namespace {

// What the policy leaves on the host below that is never tried at the service: it cannot win there.
constexpr uint64_t kLeastBytes = 16384;

policy::Why why_of(const policy::Choice& tabled) {
  return tabled.origin == policy::Origin::remembered ? policy::Why::remembered : policy::Why::policy;
}

}  // namespace

Adapter::Key::Key(policy::Path home, policy::Why why) : adaptation(home, why, job.ledger()) {}

Adapter::Adapter(int rank, uint32_t nodes, CommCell comm, const std::atomic<bool>& broken, Preference preference)
    : rank_(rank),
      nodes_(nodes),
      comm_(std::move(comm)),
      broken_(broken),
      stated_(preference),
      is_stated_(preference != Preference::automatic) {}

Adapter::~Adapter() {
  for (const auto& [name, key] : keys_) {
    if (rank_ == 0) job.learned().add(policy::Collective(name[0]), name[1], nodes_, key->adaptation);
  }
  if (council_ != MPI_COMM_NULL) native.Comm_free(&council_);
}

bool Adapter::adapts(policy::Collective collective, uint64_t bytes, const policy::Choice& tabled) const {
  if (council_ == MPI_COMM_NULL || tabled.origin == policy::Origin::forced) return false;
  if (policy::is_irregular(collective)) return false;
  return tabled.path == policy::Path::dpu || bytes >= kLeastBytes;
}

bool Adapter::adapts(policy::Collective collective, uint64_t bytes) const {
  return adapts(collective, bytes, job.policy().choose(collective, bytes, nodes_));
}

std::optional<Preference> Adapter::stated() const {
  if (!is_stated_.load(std::memory_order_acquire)) return std::nullopt;
  return stated_.load(std::memory_order_relaxed);
}

Ask Adapter::ask(policy::Collective collective, uint64_t bytes) const {
  return {collective, bytes, base::clock_ns(), counters.waits.load(std::memory_order_relaxed), stated()};
}

Answer Adapter::prefer_over(const policy::Choice& tabled, Preference preferred) {
  Answer answer{tabled, why_of(tabled)};
  if (preferred != Preference::host && preferred != Preference::dpu) return answer;
  answer.choice.path = preferred == Preference::host ? policy::Path::host : policy::Path::dpu;
  answer.why = policy::Why::forced;
  return answer;
}

std::optional<Answer> Adapter::decide(const Ask& call) {
  const std::optional<Answer> answer = look_up(call);
  if (answer) {
    counters.why[static_cast<size_t>(answer->why)].fetch_add(1, std::memory_order_relaxed);
    if (answer->choice.path == policy::Path::host) counters.note_native(call.bytes);
  }
  return answer;
}

std::optional<Answer> Adapter::look_up(const Ask& call) {
  const policy::Choice tabled = job.policy().choose(call.collective, call.bytes, nodes_);
  if (!adapts(call.collective, call.bytes, tabled)) {
    return prefer_over(tabled, call.stated.value_or(Preference::automatic));
  }
  const Inside inside;
  std::lock_guard lock(mutex_);
  Answer answer = prefer_over(tabled, preferred(call));
  if (answer.why == policy::Why::forced) return answer;
  Key& key = key_of(call.collective, call.bytes, tabled);
  if (preferred(call) == Preference::freeze) {
    answer.choice.path = key.adaptation.home();
    answer.why = key.adaptation.home_why();
    return answer;
  }
  if (key.adaptation.due()) {
    if (!arrived(key)) return std::nullopt;
    conclude(key);
    // With the agreement a name may have come to count.
    if (answer = prefer_over(tabled, preferred(call)); answer.why == policy::Why::forced) return answer;
  } else if (key.asked && arrived(key)) {
    key.adaptation.answered();
  }
  const policy::Adaptation::Turn turn = key.adaptation.post(call.posted_ns, call.waits);
  if (turn.ends_round) begin_agreement(key);
  answer.choice.path = turn.path;
  answer.why = turn.why;
  return answer;
}

bool Adapter::may_offload(policy::Collective collective, uint64_t bytes) const {
  const policy::Choice tabled = job.policy().choose(collective, bytes, nodes_);
  const Answer answer = prefer_over(tabled, preference());
  if (answer.why == policy::Why::forced) return answer.choice.path == policy::Path::dpu;
  return tabled.path == policy::Path::dpu || adapts(collective, bytes, tabled);
}

Adapter::Key& Adapter::key_of(policy::Collective collective, uint64_t bytes, const policy::Choice& tabled) {
  const Name name{static_cast<uint32_t>(collective), static_cast<uint32_t>(std::bit_width(bytes)),
                  static_cast<uint32_t>(tabled.path), static_cast<uint32_t>(tabled.algorithm)};
  std::unique_ptr<Key>& key = keys_[name];
  if (key == nullptr) key = std::make_unique<Key>(tabled.path, why_of(tabled));
  return *key;
}

bool Adapter::arrived(Key& key) {
  if (key.agreement == MPI_REQUEST_NULL) return true;
  int done = 0;
  const int code = native.Test(&key.agreement, &done, MPI_STATUS_IGNORE);
  return code != MPI_SUCCESS || done != 0;
}

void Adapter::conclude(Key& key) {
  key.asked = false;
  key.adaptation.answered();
  key.adaptation.agree(key.all);
  if (key.all.wish != 0) wished_ = static_cast<Preference>(key.all.wish);
}

void Adapter::begin_agreement(Key& key) {
  key.own = key.adaptation.testify(base::clock_ns());
  key.own.wish = wish();
  key.own.broken = broken_.load(std::memory_order_acquire) ? 1 : 0;
  key.all = key.own;
  key.asked = true;
  native.Iallreduce(MPI_IN_PLACE, &key.all, policy::Testimony::kFields, MPI_UINT64_T, MPI_MAX, council_,
                    &key.agreement);
}

uint64_t Adapter::wish() const {
  const MPI_Comm comm = comm_->load(std::memory_order_acquire);
  if (rank_ != 0 || comm == MPI_COMM_NULL || job.named_preferences().empty()) return 0;
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (native.Comm_get_name(comm, name, &length) != MPI_SUCCESS) return 0;
  return static_cast<uint64_t>(job.named_preferences().find(name).value_or(Preference::automatic));
}

void Adapter::prefer(Preference preference) {
  stated_.store(preference, std::memory_order_relaxed);
  is_stated_.store(true, std::memory_order_release);
}

bool Adapter::idle() {
  // Only who posts holds it for long, and nobody asks about a lane in use.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  for (const auto& [name, key] : keys_) {
    if (!arrived(*key)) return false;
  }
  return true;
}

}  // namespace offpath::mpi
