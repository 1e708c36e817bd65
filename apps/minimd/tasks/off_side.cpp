// SPDX-License-Identifier: BSD-3-Clause
// The other side as tasks of Offpath's C API: lists, positions and forces lie in memory that the service shares, so a task
// works where they lie. Where the service is on another machine lists are sent ahead, once, and positions once a step. Halos and migration stay with the host: a task is a function of its ranges.
#include <algorithm>
#include <vector>

#include <offpath/offpath.h>

#include "../../task_session/session.hpp"
#include "forces.hpp"
#include "../migrate.hpp"
#include "../off_side.hpp"
#include "../replay.hpp"

namespace minimd {
namespace {

using task_session::Session;
using task_session::Shared;

class TaskSide : public OffSide {
 public:
  TaskSide(const Domain& domain, const Cells& cells, const Options& options, Session session)
      : domain_(domain), cells_(cells), options_(options), session_(std::move(session)) {}

  void accept(const Structure& s) override {
    const double start = MPI_Wtime();
    session_.wait();
    structure_ = &s;
    const std::size_t pairs = std::size_t(s.first.back());
    session_.reserve(first_, s.first.size());
    session_.reserve(neighbours_, pairs + 1);
    session_.reserve(x_, 3 * std::size_t(s.all()));
    forces_.resize(std::size_t(options_.threads));
    for (Shared<double>& each : forces_) session_.reserve(each, 3 * std::size_t(s.all()));
    session_.reserve(sums_, 3 * (forces_.size() + 1));
    std::copy(s.first.begin(), s.first.end(), first_.at);
    std::copy(s.neighbours.begin(), s.neighbours.begin() + std::ptrdiff_t(pairs), neighbours_.at);
    ++lists_;
    if (session_.copies()) submit_part(0, 0, 0, false, forces_.size());
    times_.ship += MPI_Wtime() - start;
    times_.bytes += double(s.bytes());
    ++times_.ships;
  }
  bool arrived() override { return session_.idle(); }
  void settle() override { session_.wait(); }

  void begin_all(const std::vector<double>& x, int local, bool with_sums) override {
    const double start = MPI_Wtime();
    const Structure& s = *structure_;
    old_x_.assign(x.begin(), x.begin() + 3 * std::ptrdiff_t(local));
    std::copy(old_x_.begin(), old_x_.end(), x_.at);
    forward(s.swaps, kSwaps, s.send.data(), x_.at, domain_.rank, buffer_);
    submit(0, with_sums);
    times_.in += MPI_Wtime() - start;
    ++times_.alls;
  }
  Sums finish_all(std::vector<double>& f) override {
    const Structure& s = *structure_;
    f.assign(3 * std::size_t(s.all()), 0.0);
    double longest = 0;
    const Sums sums = wait(f, longest);
    times_.force += longest;
    const double start = MPI_Wtime();
    reverse(s.swaps, s.send.data(), f.data(), domain_.rank, buffer_);
    f.resize(3 * std::size_t(s.local));
    replay(old_x_, f, s.local, domain_, cells_);
    times_.replay += MPI_Wtime() - start;
    return sums;
  }

  void begin_share(const std::vector<double>& x, int begin, bool with_sums) override {
    std::copy(x.begin() + 3 * std::ptrdiff_t(begin), x.begin() + 3 * std::ptrdiff_t(structure_->all()),
              x_.at + 3 * std::ptrdiff_t(begin));
    submit(begin, with_sums);
    ++times_.shares;
  }
  Sums finish_share(std::vector<double>& f) override {
    double longest = 0;
    const Sums sums = wait(f, longest);
    times_.share += longest;
    return sums;
  }

  OffTimes times() const override { return times_; }
  void clear_times() override { times_ = {}; }

 private:
  // Atoms from `begin` on, as one task for each thread: both atoms of a pair get a force, so each has a field of its own.
  void submit(int begin, bool with_sums) {
    const Structure& s = *structure_;
    const std::int64_t mine = s.local - begin, parts = options_.threads;
    begin_ = begin;
    ++steps_;
    for (std::int64_t t = 0; t < parts; ++t)
      submit_part(begin + int(mine * t / parts), begin + int(mine * (t + 1) / parts), s.all(), with_sums,
                  std::size_t(t));
  }
  // Of no atoms: then the lists are brought there, and nothing else. Its sums come last.
  void submit_part(int from, int to, int all_atoms, bool with_sums, std::size_t part) {
    const Structure& s = *structure_;
    const ForcesArgument argument{from, to, all_atoms, with_sums, options_.repeats, Options::kCutoff};
    const auto bytes = [](std::size_t count, std::size_t size) { return std::uint64_t(count) * size; };
    const std::size_t all = 3 * std::size_t(all_atoms);
    const offpath_task_range_t ranges[kForcesRanges] = {
        {x_.at, bytes(all, sizeof(double)), OFFPATH_TASK_IN, all > 0 ? steps_ : 0},
        {first_.at, bytes(s.first.size(), sizeof(int)), OFFPATH_TASK_IN, lists_},
        {neighbours_.at, bytes(std::size_t(s.first.back()), sizeof(int)), OFFPATH_TASK_IN, lists_},
        {forces_[part % forces_.size()].at, bytes(all, sizeof(double)), OFFPATH_TASK_OUT, 0},
        {sums_.at + 3 * part, 3 * sizeof(double), OFFPATH_TASK_OUT, 0}};
    session_.submit(argument, ranges);
  }
  // Adds what they have computed. Without its forces a rank cannot go on.
  Sums wait(std::vector<double>& f, double& longest) {
    session_.wait();
    Sums sums;
    const int local = structure_->local, all = structure_->all();
    const std::int64_t mine = local - begin_, parts = options_.threads;
    for (std::int64_t t = 0; t < parts; ++t) {
      const int from = begin_ + int(mine * t / parts);  // a list names only atoms behind its own
      const double* const field = forces_[std::size_t(t)].at;
      for (std::size_t i = 3 * std::size_t(from); i < 3 * std::size_t(all); ++i) f[i] += field[i];
      sums.energy += sums_.at[3 * t], sums.virial += sums_.at[3 * t + 1];
      longest = std::max(longest, sums_.at[3 * t + 2]);
    }
    return sums;
  }

  const Domain& domain_;
  const Cells& cells_;
  const Options& options_;
  Session session_;
  const Structure* structure_ = nullptr;
  Shared<int> first_, neighbours_;
  Shared<double> x_, sums_;
  std::vector<Shared<double>> forces_;
  std::vector<double> old_x_, buffer_;
  int begin_ = 0;
  std::uint32_t lists_ = 0, steps_ = 0;  // versions of what tasks read
  OffTimes times_;
};

}  // namespace

std::unique_ptr<OffSide> make_off_side(const Domain& domain, const Cells& cells, const Options& options,
                                       std::string& problem) {
  Session session({"minimd", "libminimd_forces.so", "minimd_forces", kForcesSignature}, problem);
  if (!problem.empty()) return nullptr;
  return std::make_unique<TaskSide>(domain, cells, options, std::move(session));
}

const char* off_side_kind() { return "tasks"; }

}  // namespace minimd
