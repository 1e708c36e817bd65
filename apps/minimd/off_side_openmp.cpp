// SPDX-License-Identifier: BSD-3-Clause
// The other side as target regions on a device. Regions talk to the regions of other ranks by MPI; nothing of theirs
// passes through the host's program.
#include <omp.h>

#include <cstring>

#include "device_buffer.hpp"
#include "lane.hpp"
#include "off_side.hpp"
#include "replay.hpp"
#include "threaded_forces.hpp"

namespace minimd {
namespace {

struct Answer {
  Sums sums;
  int atoms = 0;  // -1: there was no room for the forces of all
  double force_s = 0, replay_s = 0;
};

// Vectors of the device that outlive its regions.
struct DeviceMemory {
  std::vector<double> x, f, buffer;
  ThreadedForces forces;
};
inline DeviceMemory& device_memory() {
  static DeviceMemory memory;
  return memory;
}

// In a region: all forces by the old lists, and these in the order that the host will have.
inline Answer all_in_region(const double* x, double* f, int room, const StructureView& s, const Domain& domain,
                            const Cells& cells, Effort effort, bool with_sums) {
  DeviceMemory& memory = device_memory();
  Answer answer;
  const double start = omp_get_wtime();
  memory.x.assign(x, x + 3 * std::size_t(s.local));
  answer.sums = old_forces(
      memory.x, memory.f, s, domain.rank, memory.buffer, [&](const double* at, double* to, int begin, int end) {
        return memory.forces.add(at, to, s.local + s.ghost, s.list, begin, end, Options::kCutoff, with_sums, effort);
      });
  const double forces_end = omp_get_wtime();
  replay(memory.x, memory.f, s.local, domain, cells);
  answer.atoms = int(memory.f.size() / 3);
  if (answer.atoms <= room)
    std::memcpy(f, memory.f.data(), memory.f.size() * sizeof(double));
  else
    answer.atoms = -1;
  answer.force_s = forces_end - start, answer.replay_s = omp_get_wtime() - forces_end;
  return answer;
}

// In a region: the forces of atoms from `begin` on, and on ghosts.
inline Sums share_in_region(const double* x, double* f, int all, ListView list, int begin, int end, Effort effort,
                            bool with_sums) {
  std::memset(f + 3 * std::size_t(begin), 0, 3 * std::size_t(all - begin) * sizeof(double));
  return device_memory().forces.add(x, f, all, list, begin, end, Options::kCutoff, with_sums, effort);
}

class OpenmpSide : public OffSide {
 public:
  OpenmpSide(const Domain& domain, const Cells& cells, const Options& options, int device)
      : domain_(domain), cells_(cells), options_(options), device_(device) {}
  ~OpenmpSide() override { lane_.wait(); }

  void accept(const Structure& structure) override {
    lane_.wait();
    local_ = structure.local, ghost_ = structure.ghost;
    lane_.post([this, &structure] {
      const double start = omp_get_wtime();
      const std::size_t pairs = std::size_t(structure.first.back());
      swaps_.reserve(kSwaps);
      send_.reserve(structure.send.size() + 1);
      first_.reserve(structure.first.size());
      neighbours_.reserve(pairs + 1);
      swaps_.put(structure.swaps, kSwaps);
      send_.put(structure.send.data(), structure.send.size());
      first_.put(structure.first.data(), structure.first.size());
      neighbours_.put(structure.neighbours.data(), pairs);
      x_.reserve(3 * room());
      f_.reserve(3 * room());
      times_.ship += omp_get_wtime() - start;
      times_.bytes += double(structure.bytes());
      ++times_.ships;
    });
  }
  bool arrived() override { return lane_.idle(); }
  void settle() override { lane_.wait(); }

  void begin_all(const std::vector<double>& x, int local, bool with_sums) override {
    const double start = omp_get_wtime();
    x_.put(x.data(), 3 * std::size_t(local));
    times_.in += omp_get_wtime() - start;
    lane_.post([this, with_sums] {
      answer_ = all_forces(with_sums);
      const double out = omp_get_wtime();
      result_.resize(3 * std::size_t(std::max(answer_.atoms, 0)));
      f_.get(result_.data(), result_.size());
      times_.out += omp_get_wtime() - out;
      times_.force += answer_.force_s, times_.replay += answer_.replay_s;
      ++times_.alls;
    });
  }
  Sums finish_all(std::vector<double>& f) override {
    lane_.wait();
    f.swap(result_);
    return answer_.sums;
  }

  // Of a pair the atom with the lower number has the other in its list, so nothing before `begin` is touched.
  void begin_share(const std::vector<double>& x, int begin, bool with_sums) override {
    const double start = omp_get_wtime();
    begin_ = begin;
    const std::size_t first = 3 * std::size_t(begin), count = 3 * std::size_t(local_ + ghost_) - first;
    x_.put(x.data() + first, count, first);
    lane_.post([this, start, first, count, with_sums] {
      answer_.sums = share_of_forces(with_sums);
      result_.resize(count);
      f_.get(result_.data(), count, first);
      times_.share += omp_get_wtime() - start;
      ++times_.shares;
    });
  }
  Sums finish_share(std::vector<double>& f) override {
    lane_.wait();
    double* to = f.data() + 3 * std::size_t(begin_);
    for (const double value : result_) *to++ += value;
    return answer_.sums;
  }

  OffTimes times() const override { return times_; }
  void clear_times() override {
    lane_.wait();
    times_ = {};
  }

 private:
  // Of forces: own atoms before or after migration, and ghosts.
  std::size_t room() const { return std::size_t(local_) + std::size_t(local_) / 4 + std::size_t(ghost_) + 1000; }

  Answer all_forces(bool with_sums) {
    Answer answer;
    const double* const x = x_.at();
    double* const f = f_.at();
    const Swap* const swaps = swaps_.at();
    const int *const send = send_.at(), *const first = first_.at(), *const neighbours = neighbours_.at();
    const int most = int(f_.capacity() / 3), local = local_, ghost = ghost_;
    const Effort effort{options_.threads, options_.repeats};
    const Domain domain = domain_;
    const Cells cells = cells_;
#pragma omp target device(device_) is_device_ptr(x, f, swaps, send, first, neighbours) map(from      \
                                                                                           : answer) \
    map(to                                                                                           \
        : domain, cells)
    answer =
        all_in_region(x, f, most, {swaps, send, {first, neighbours}, local, ghost}, domain, cells, effort, with_sums);
    return answer;
  }

  Sums share_of_forces(bool with_sums) {
    Sums sums;
    const double* const x = x_.at();
    double* const f = f_.at();
    const int *const first = first_.at(), *const neighbours = neighbours_.at();
    const int begin = begin_, local = local_, ghost = ghost_;
    const Effort effort{options_.threads, options_.repeats};
#pragma omp target device(device_) is_device_ptr(x, f, first, neighbours) map(from : sums)
    sums = share_in_region(x, f, local + ghost, {first, neighbours}, begin, local, effort, with_sums);
    return sums;
  }

  const Domain& domain_;
  const Cells& cells_;
  const Options& options_;
  const int device_;
  DeviceBuffer<double> x_{device_}, f_{device_};
  DeviceBuffer<Swap> swaps_{device_};
  DeviceBuffer<int> send_{device_}, first_{device_}, neighbours_{device_};
  int local_ = 0, ghost_ = 0, begin_ = 0;
  Answer answer_;
  std::vector<double> result_;
  OffTimes times_;
  Lane lane_;  // last: its thread uses all that is above
};

// Ranks of a node take its devices in turns.
int own_device() {
  MPI_Comm node;
  int rank = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &rank);
  MPI_Comm_free(&node);
  return omp_get_num_devices() > 0 ? rank % omp_get_num_devices() : -1;
}

bool on_all_ranks(bool here) {
  int all = here;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all != 0;
}

}  // namespace

std::unique_ptr<OffSide> make_off_side(const Domain& domain, const Cells& cells, const Options& options,
                                       std::string& problem) {
  const int device = own_device();
  if (!on_all_ranks(device >= 0)) {
    problem = "a rank has no device (target regions would run on the host). See: offpath devices";
    return nullptr;
  }
  int good = 0;
  const bool several = domain.ranks > 1;
#pragma omp target device(device) map(from : good)
  {
    int rank = 0;
    good = !omp_is_initial_device() && (!several || MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS);
  }
  if (!on_all_ranks(good)) {
    problem = "regions of several ranks cannot call MPI (the interposer is not in the ranks). Start it by: offpath run";
    return nullptr;
  }
  return std::make_unique<OpenmpSide>(domain, cells, options, device);
}

const char* off_side_kind() { return "openmp"; }

}  // namespace minimd
