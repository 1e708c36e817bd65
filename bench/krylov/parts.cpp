// SPDX-License-Identifier: BSD-3-Clause
// What the parts of a conjugate-gradient iteration take here, alone and while another core works too; JSON, seconds per
// row. The parts follow each other as in an iteration, so that each finds in the caches what it would find there; what
// runs on the other core begins with the part that it is measured beside.
#include "kernels/vector_program.hpp"
#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/json.hpp"
#include "matrix.hpp"

#include <petscksp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace offpath;

constexpr char kHelp[] =
    "Parts of an iteration.\n"
    "  -grid N           3-D Laplacian, 27-point stencil, N x N x N (default 64)\n"
    "  -other_core N     number of the core to work beside (default 1)\n"
    "  -repeats N        of each part (default 25)\n";

constexpr uint32_t kVectors = 8;
constexpr unsigned kPosts = 500;
constexpr double kRestSeconds = 1e-4;
enum Vector : uint32_t { kQ, kP, kS, kX, kU, kR, kM, kW };

// This thread's time on its core: what other processes take of it is none of the parts'.
double now() { return 1e-9 * static_cast<double>(kit::thread_cpu_ns()); }

// Runs a task on another core when it is told to.
class Beside {
 public:
  explicit Beside(int core) : thread_([this, core] { loop(core); }) {}
  ~Beside() {
    begin(nullptr);
    thread_.join();
  }
  void begin(std::function<void()> task) {
    task_ = std::move(task);
    begun_.store(begun_ + 1);
  }
  // Until it is done; its seconds.
  double finish() {
    while (done_ != begun_) {
    }
    return seconds_;
  }

 private:
  void loop(int core) {
    kit::pin(core);
    for (unsigned next = 1;; ++next) {
      while (begun_ < next) {
      }
      if (task_ == nullptr) return;
      const double begin = now();
      task_();
      seconds_ = now() - begin;
      done_.store(next);
    }
  }
  std::function<void()> task_;
  double seconds_ = 0;
  std::atomic<unsigned> begun_{0}, done_{0};
  std::thread thread_;
};

// The service's end of an iteration on vectors of its own: the updates and dot products of pipelined CG in one pass.
class ServicePart {
 public:
  explicit ServicePart(uint64_t rows) : scalars_{1, 0.5, -1e-3, 0, 0, 0, 0, 0} {
    for (auto& vector : vectors_) vector.assign(rows, 1);
    arrays_.push_back(reinterpret_cast<uint8_t*>(scalars_.data()));
    for (auto& vector : vectors_) arrays_.push_back(reinterpret_cast<uint8_t*>(vector.data()));
    program_.rows = rows;
    program_.scalars = static_cast<uint32_t>(scalars_.size());
    program_.vectors = kVectors;
  }
  void whole_pass() {
    run({{OFFPATH_UPDATE, kQ, {{0, kM}, {1, kQ}}},
         {OFFPATH_UPDATE, kP, {{0, kU}, {1, kP}}},
         {OFFPATH_UPDATE, kS, {{0, kW}, {1, kS}}},
         {OFFPATH_UPDATE, kX, {{0, kX}, {2, kP}}},
         {OFFPATH_UPDATE, kU, {{0, kU}, {2, kQ}}},
         {OFFPATH_UPDATE, kR, {{0, kR}, {2, kS}}},
         {OFFPATH_DOT, 4, {{0, kR}, {0, kU}}},
         {OFFPATH_DOT, 5, {{0, kW}, {0, kU}}},
         {OFFPATH_DOT, 6, {{0, kR}, {0, kR}}}});
  }
  // z = n + beta z, w' = w - alpha z: what the host keeps.
  void host_pass() { run({{OFFPATH_UPDATE, kQ, {{0, kM}, {1, kQ}}}, {OFFPATH_UPDATE, kS, {{0, kW}, {2, kQ}}}}); }
  void one_update() { run({{OFFPATH_UPDATE, kX, {{0, kX}, {2, kP}}}}); }

 private:
  void run(std::vector<kernels::Statement> statements) {
    kernels::VectorProgram program = program_;
    program.statements = std::move(statements);
    [[maybe_unused]] const base::Status status = kernels::run_alone(*kernels::make_pass(std::move(program)), arrays_);
  }
  std::array<double, 8> scalars_;
  std::array<std::vector<double>, kVectors> vectors_;
  std::vector<uint8_t*> arrays_;
  kernels::VectorProgram program_;
};

// A product by another core, with a matrix of its own of the same size.
class OtherProduct {
 public:
  explicit OtherProduct(Mat matrix) {
    PetscInt rows;
    const PetscInt *offsets, *columns;
    const PetscScalar* values;
    PetscBool done;
    PetscCallAbort(PETSC_COMM_SELF, MatGetRowIJ(matrix, 0, PETSC_FALSE, PETSC_FALSE, &rows, &offsets, &columns, &done));
    PetscCallAbort(PETSC_COMM_SELF, MatSeqAIJGetArrayRead(matrix, &values));
    offsets_.assign(offsets, offsets + rows + 1);
    columns_.assign(columns, columns + offsets[rows]);
    values_.assign(values, values + offsets[rows]);
    source_.assign(static_cast<size_t>(rows), 1);
    target_.assign(static_cast<size_t>(rows), 0);
  }
  void run() {
    const kernels::Matrix shape{source_.size(), values_.size(), source_.size()};
    const std::vector<uint8_t*> arrays{bytes(offsets_), bytes(columns_), bytes(values_), bytes(source_),
                                       bytes(target_)};
    [[maybe_unused]] const base::Status status = kernels::run_alone(*kernels::make_multiply(shape), arrays);
  }

 private:
  template <typename T>
  static uint8_t* bytes(std::vector<T>& of) {
    return reinterpret_cast<uint8_t*>(of.data());
  }
  std::vector<PetscInt> offsets_, columns_;
  std::vector<double> values_, source_, target_;
};

// What it costs this core to wake another one, which a post does.
double post_seconds(int core) {
  std::atomic<unsigned> posts{0};
  std::thread other([&] {
    kit::pin(core);
    for (unsigned seen = 0; seen < kPosts; seen = posts) posts.wait(seen);
  });
  std::vector<double> times;
  for (unsigned i = 0; i < kPosts; ++i) {
    for (const double rest = MPI_Wtime() + kRestSeconds; MPI_Wtime() < rest;) {  // it falls asleep meanwhile
    }
    const double begin = now();
    ++posts;
    posts.notify_one();
    times.push_back(now() - begin);
  }
  other.join();
  return kit::spread(times).median;
}

class Times {
 public:
  PetscErrorCode add(const char* part, int count, const std::function<PetscErrorCode()>& work) {
    PetscFunctionBegin;
    const double begin = now();
    PetscCall(work());
    seconds_[part].push_back((now() - begin) / count);
    PetscFunctionReturn(0);
  }
  void add(const char* part, double seconds) { seconds_[part].push_back(seconds); }
  // Medians.
  std::map<std::string, double> results() {
    std::map<std::string, double> out;
    for (const auto& [part, times] : seconds_) out[part] = kit::spread(times).median;
    return out;
  }

 private:
  std::map<std::string, std::vector<double>> seconds_;
};

// The parts one after the other, as PETSc's pipelined CG has them.
PetscErrorCode iterate_alone(Mat matrix, Vec diagonal, Vec* v, Vec n, Vec z, Times* times) {
  PetscFunctionBegin;
  PetscScalar sum;
  PetscReal norm;
  PetscCall(times->add("precondition", 1, [&] { return VecPointwiseMult(v[kM], v[kW], diagonal); }));
  PetscCall(times->add("product", 1, [&] { return MatMult(matrix, v[kM], n); }));
  const std::pair<uint32_t, uint32_t> sums[] = {{kQ, kM}, {kP, kU}, {kS, kW}};
  const std::pair<uint32_t, uint32_t> steps[] = {{kX, kP}, {kU, kQ}, {kR, kS}};
  PetscCall(times->add("update", 8, [&]() -> PetscErrorCode {
    PetscCall(VecAYPX(z, 0.5, n));
    for (const auto& [to, from] : sums) PetscCall(VecAYPX(v[to], 0.5, v[from]));
    for (const auto& [to, from] : steps) PetscCall(VecAXPY(v[to], -1e-3, v[from]));
    return VecAXPY(v[kW], -1e-3, z);
  }));
  PetscCall(times->add("dot", 2, [&]() -> PetscErrorCode {
    PetscCall(VecDot(v[kR], v[kU], &sum));
    return VecDot(v[kW], v[kU], &sum);
  }));
  PetscCall(times->add("norm", 1, [&] { return VecNorm(v[kR], NORM_2, &norm); }));
  PetscFunctionReturn(0);
}

PetscErrorCode measure(Mat matrix, PetscInt repeats, int core, Times* times) {
  PetscFunctionBegin;
  Vec diagonal, n, z, *v;
  PetscInt rows;
  PetscCall(MatGetSize(matrix, &rows, nullptr));
  PetscCall(MatCreateVecs(matrix, &n, &diagonal));
  PetscCall(VecDuplicate(n, &z));
  PetscCall(VecDuplicateVecs(n, kVectors, &v));
  PetscCall(MatGetDiagonal(matrix, diagonal));
  PetscCall(VecReciprocal(diagonal));
  PetscCall(VecSet(n, 1));
  PetscCall(VecSet(z, 1));
  for (uint32_t i = 0; i < kVectors; ++i) PetscCall(VecSet(v[i], 1));
  ServicePart service(static_cast<uint64_t>(rows)), own(static_cast<uint64_t>(rows));
  OtherProduct other_product(matrix);
  Beside beside(core);
  for (PetscInt i = 0; i < repeats; ++i) PetscCall(iterate_alone(matrix, diagonal, v, n, z, times));
  const auto multiply = [&] { return MatMult(matrix, v[kM], n); };
  for (PetscInt i = 0; i < repeats; ++i) {
    // Pipelined CG split: the service's pass beside the host's product.
    PetscCall(VecPointwiseMult(v[kM], v[kW], diagonal));
    beside.begin([&] { service.whole_pass(); });
    PetscCall(times->add("product_beside_pass", 1, multiply));
    times->add("pass_beside_product", beside.finish());
    PetscCall(times->add("host_pass", 1, [&]() -> PetscErrorCode { return own.host_pass(), 0; }));
  }
  for (PetscInt i = 0; i < repeats; ++i) {
    // Ranks on both cores.
    beside.begin([&] { other_product.run(); });
    PetscCall(times->add("product_beside_product", 1, multiply));
    beside.finish();
    beside.begin([&] { service.one_update(); });
    PetscCall(times->add("update_beside_update", 1, [&] { return VecAXPY(v[kX], -1e-3, v[kP]); }));
    beside.finish();
  }
  PetscCall(VecDestroyVecs(kVectors, &v));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&n));
  PetscCall(VecDestroy(&diagonal));
  PetscFunctionReturn(0);
}

}  // namespace

int main(int argc, char** argv) {
  PetscCall(PetscInitialize(&argc, &argv, nullptr, kHelp));
  PetscInt grid = 64, other_core = 1, repeats = 25, rows;
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, "-grid", &grid, nullptr));
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, "-other_core", &other_core, nullptr));
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, "-repeats", &repeats, nullptr));
  Mat matrix;
  PetscCall(bench::make_laplacian(PETSC_COMM_SELF, grid, &matrix));
  PetscCall(MatGetSize(matrix, &rows, nullptr));
  Times times;
  PetscCall(measure(matrix, repeats, static_cast<int>(other_core), &times));
  kit::Json json = {{"rows", rows}, {"post_s", post_seconds(static_cast<int>(other_core))}};
  for (const auto& [part, seconds] : times.results()) json["s_per_row"][part] = seconds / static_cast<double>(rows);
  std::puts(json.dump().c_str());
  PetscCall(MatDestroy(&matrix));
  PetscCall(PetscFinalize());
  return 0;
}
