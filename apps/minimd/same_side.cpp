// SPDX-License-Identifier: BSD-3-Clause
// The relaxed schedule in one process: forces by the old lists, before the host rebuilds.
#include "migrate.hpp"
#include "off_side.hpp"
#include "replay.hpp"

namespace minimd {
namespace {

class SameSide : public OffSide {
 public:
  SameSide(const Domain& domain, const Cells& cells) : domain_(domain), cells_(cells) {}

  void accept(const Structure& structure) override { structure_ = &structure; }
  bool arrived() override { return true; }
  void settle() override {}

  void begin_all(const std::vector<double>& x, int local, bool with_sums) override {
    const double start = MPI_Wtime();
    const Structure& s = *structure_;
    x_.assign(x.begin(), x.begin() + 3 * std::ptrdiff_t(local));
    sums_ = old_forces(x_, f_, {s.swaps, s.send.data(), s.list(), s.local, s.ghost}, domain_.rank, buffer_,
                       [&](const double* at, double* to, int begin, int end) {
                         return add_forces(at, to, s.list(), begin, end, Options::kCutoff, with_sums);
                       });
    times_.force += MPI_Wtime() - start;
    ++times_.alls;
  }
  Sums finish_all(std::vector<double>& f) override {
    const double start = MPI_Wtime();
    replay(x_, f_, structure_->local, domain_, cells_);
    f = f_;
    times_.replay += MPI_Wtime() - start;
    return sums_;
  }

  void begin_share(const std::vector<double>&, int, bool) override {}
  Sums finish_share(std::vector<double>&) override { return {}; }
  OffTimes times() const override { return times_; }
  void clear_times() override { times_ = {}; }

 private:
  const Domain& domain_;
  const Cells& cells_;
  const Structure* structure_ = nullptr;
  std::vector<double> x_, f_, buffer_;
  Sums sums_;
  OffTimes times_;
};

}  // namespace

std::unique_ptr<OffSide> make_same_side(const Domain& domain, const Cells& cells) {
  return std::make_unique<SameSide>(domain, cells);
}

}  // namespace minimd
