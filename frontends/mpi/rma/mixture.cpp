// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/mixture.hpp"

#include "base/clock.hpp"
#include "mpi/job/job.hpp"
#include "mpi/native/native.hpp"
#include "mpi/recording/decision.hpp"

#include <utility>

namespace offpath::mpi {

namespace {

policy::WindowChooser::Changes changes_of(Ways ways, bool alike) {
  using enum policy::WindowChooser::Changes;
  if (!alike) return never;
  return ways == Ways::measured ? measured : ways == Ways::alternate ? always : never;
}

void record(bool natively, policy::Why why) {
  recording::decision.offloaded = !natively;
  recording::decision.why = why_name(why);
}

}  // namespace

Ways parse_ways(std::string_view word, Ways otherwise) {
  if (word == "dpu") return Ways::dpu;
  if (word == "host") return Ways::host;
  if (word == "alternate") return Ways::alternate;
  return word == "auto" ? Ways::measured : otherwise;
}

Mixture::Mixture(MPI_Win win, std::vector<policy::Place> places, Ways ways, bool alike)
    : win_(win),
      places_(std::move(places)),
      ways_(ways),
      is_pending_(places_.size()),
      whole_(alike && ways == Ways::host ? policy::Path::host : policy::Path::dpu, changes_of(ways, alike),
             base::clock_ns()) {
  pending_.reserve(is_pending_.size());
}

bool Mixture::possible(MPI_Win win) {
  int level = MPI_THREAD_MULTIPLE;
  if (native.Query_thread(&level) != MPI_SUCCESS || job.granted_threads(level) == MPI_THREAD_MULTIPLE) return false;
  int* model = nullptr;
  int found = 0;
  return native.Win_get_attr(win, MPI_WIN_MODEL, &model, &found) == MPI_SUCCESS && found != 0 &&
         *model == MPI_WIN_UNIFIED;
}

bool Mixture::open() {
  if (epoch_ != Epoch::closed) return epoch_ == Epoch::open;
  // A window without locks (info key no_locks) must not end the job.
  MPI_Errhandler saved = MPI_ERRHANDLER_NULL;
  native.Win_get_errhandler(win_, &saved);
  native.Win_set_errhandler(win_, MPI_ERRORS_RETURN);
  // Nobody else locks natively, and the program's own locks are at the services.
  epoch_ = native.Win_lock_all(MPI_MODE_NOCHECK, win_) == MPI_SUCCESS ? Epoch::open : Epoch::refused;
  native.Win_set_errhandler(win_, saved);
  native.Errhandler_free(&saved);
  return epoch_ == Epoch::open;
}

void Mixture::close() {
  if (epoch_ == Epoch::open) native.Win_unlock_all(win_);
  epoch_ = Epoch::refused;
}

bool Mixture::goes_natively(policy::Onesided kind, int target, uint64_t bytes) {
  using policy::Path;
  const uint64_t now_ns = base::clock_ns();
  policy::OnesidedChooser::Choice choice{Path::dpu, policy::Why::forced};
  whole_.post(kind, false, place_of(target), bytes, now_ns);
  if (epoch_ == Epoch::refused) {
    choice.why = policy::Why::policy;
  } else if (ways_ == Ways::measured && whole_.path() == Path::host) {
    choice = {Path::host, whole_.why()};
  } else if (ways_ == Ways::measured) {
    choice = chooser_.choose(kind, place_of(target), bytes, now_ns);
  } else if (ways_ == Ways::host || !last_natively_) {
    choice.path = Path::host;
  }
  const bool natively = choice.path == Path::host && open();
  last_natively_ = natively;
  record(natively, choice.why);
  return natively;
}

bool Mixture::atomic_goes_natively(policy::Onesided kind, int target, uint64_t bytes, bool plain) {
  barred_ |= !plain;
  chooser_.add_other();
  whole_.post(kind, true, place_of(target), bytes, base::clock_ns());
  // Refused is refused to all: by an info key of the window.
  const bool natively = whole_.path() == policy::Path::host && open();
  record(natively, ways_ == Ways::measured ? whole_.why() : policy::Why::forced);
  return natively;
}

void Mixture::add_other(policy::Onesided kind, int target, uint64_t bytes) {
  chooser_.add_other();
  whole_.post(kind, false, place_of(target), bytes, base::clock_ns());
}

void Mixture::posted() {
  const uint64_t now_ns = base::clock_ns();
  chooser_.posted(now_ns);
  whole_.posted(now_ns);
}

policy::WindowChooser::Vote Mixture::vote(bool able) { return whole_.vote(able && open(), barred_, base::clock_ns()); }

void Mixture::count(int target, uint64_t bytes) {
  ++operations_;
  bytes_ += bytes;
  const auto its = static_cast<size_t>(target);
  if (is_pending_[its]) return;
  is_pending_[its] = true;
  pending_.push_back(target);
}

int Mixture::put(const void* from, uint64_t bytes, int target, int64_t displacement) {
  const int elements = static_cast<int>(bytes);
  count(target, bytes);
  return native.Put(from, elements, MPI_BYTE, target, displacement, elements, MPI_BYTE, win_);
}

int Mixture::get(void* to, uint64_t bytes, int target, int64_t displacement) {
  const int elements = static_cast<int>(bytes);
  count(target, bytes);
  return native.Get(to, elements, MPI_BYTE, target, displacement, elements, MPI_BYTE, win_);
}

int Mixture::flush(int target) {
  if (pending_.empty()) return MPI_SUCCESS;
  const Inside inside;
  int code = MPI_SUCCESS;
  std::erase_if(pending_, [&](int its) {
    if (target != kEverybody && target != its) return false;
    const int flushed = native.Win_flush(its, win_);
    if (code == MPI_SUCCESS) code = flushed;
    is_pending_[static_cast<size_t>(its)] = false;
    return true;
  });
  return code;
}

void Mixture::completed(uint64_t entered_ns, bool served) {
  const uint64_t left_ns = base::clock_ns();
  const bool all = served && pending_.empty();
  chooser_.flushed(entered_ns, left_ns, all);
  whole_.flushed(entered_ns, left_ns, all);
}

}  // namespace offpath::mpi
