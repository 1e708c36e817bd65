// SPDX-License-Identifier: BSD-3-Clause
// Onloading: of a group of ranks on a node only the leader talks to the service. Each vector of theirs is one array in
// the leader's shared memory, so that one program for the whole array does the work of all; matrices are numbered by
// that array, too. Ranks hand over by counters on a board in the same memory:
//
//   each rank   says what it has, counts `posted` up   ...   waits for `finished`, takes the scalars
//   leader      waits for all, posts one program       ...   waits for the service, shows the scalars, sets `finished`
//
// A rank's scalars are its own: the program works on the leader's, and what becomes of them goes to all.
#include "petsc/executor.hpp"
#include "petsc/groups.hpp"
#include "petsc/job.hpp"
#include "petsc/shared_array.hpp"
#include "session/futex.hpp"

#include <algorithm>
#include <atomic>
#include <list>
#include <span>
#include <vector>

namespace offpath::petsc {
namespace {

constexpr uint32_t kMostScalars = 64;
constexpr uint32_t kMostPosted = 4;  // programs between two waits
constexpr uint64_t kBoardNapNs = 100'000;

struct Part {
  uint64_t rows;
  uint32_t matrices;             // 0 or 1
  offpath_matrix_rows_t matrix;  // addresses are the leader's
};

struct alignas(64) Handover {
  std::atomic<uint32_t> posted;
  Part parts[kMostPosted];  // by number of the program
};

struct alignas(64) Board {
  std::atomic<uint32_t> started, finished;  // programs
  std::atomic<uint32_t> failed;
  std::atomic<uint32_t> changes, waiters;  // of anything here: who waits sleeps on the first
  double scalars[kMostScalars];            // of the last that is finished
};

// Counters wrap.
bool reached(const std::atomic<uint32_t>& counter, uint32_t number) {
  return static_cast<int32_t>(counter.load(std::memory_order_acquire) - number) >= 0;
}

class OnloadedExecutor : public Executor {
 public:
  // service: null but for the leader. Takes the communicators over.
  OnloadedExecutor(const Groups& groups, std::unique_ptr<Executor> service)
      : groups_(groups), service_(std::move(service)) {}

  ~OnloadedExecutor() override {
    if (!job_is_open()) return;  // after PetscFinalize
    arrays_.clear();
    MPI_Barrier(groups_.group);  // the leader's memory goes when nobody uses it any more
    service_.reset();
    PetscCallAbort(PETSC_COMM_SELF, groups_.free());
  }

  // Collective over the group. Whether all its ranks see the board.
  bool open() {
    const auto ranks = static_cast<size_t>(groups_.size);
    if (allocate(groups_.leads() ? sizeof(Board) + ranks * sizeof(Handover) : 0) == nullptr) return false;
    uint8_t* memory = arrays_.front().begin();  // zeroed
    board_ = reinterpret_cast<Board*>(memory);
    handovers_ = reinterpret_cast<Handover*>(memory + sizeof(Board));
    return true;
  }

  void* allocate(uint64_t bytes) override {
    SharedArray array;
    if (!array.make(groups_, service_.get(), bytes)) return nullptr;
    arrays_.push_back(std::move(array));
    return arrays_.back().own();
  }

  void release(void* memory) override {
    const auto array = find(memory);
    if (array == arrays_.end()) return;
    uint8_t* const begin = array->begin();
    arrays_.erase(array);
    MPI_Barrier(groups_.group);
    if (service_ != nullptr) service_->release(begin);
  }

  uint64_t offset_of(const void* memory) const override {
    const auto array = std::find_if(arrays_.begin(), arrays_.end(), [&](const auto& a) { return a.own() == memory; });
    return array == arrays_.end() ? 0 : array->own_offset();
  }
  bool multiplies() const override { return true; }
  bool offloads() const override { return true; }
  bool shares_memory() const override { return service_ == nullptr || service_->shares_memory(); }

  PetscErrorCode post(const offpath_program_t& program, const offpath_crossing_t& crossing) override {
    PetscFunctionBegin;
    PetscCheck(program.scalars_count <= kMostScalars && program.matrices_count <= 1, PETSC_COMM_SELF, PETSC_ERR_PLIB,
               "a program with %u scalars and %u matrices cannot be handed to a leader", program.scalars_count,
               program.matrices_count);
    scalars_ = {program.scalars, program.scalars_count};
    Handover& own = handovers_[groups_.rank];
    PetscCall(wait_for(board_->started, number_ + 1 - kMostPosted));
    Part& part = own.parts[number_ % kMostPosted];
    part.rows = program.rows;
    part.matrices = program.matrices_count;
    if (part.matrices > 0) part.matrix = at_leader(program.matrices[0]);
    show(own.posted, ++number_);
    if (service_ != nullptr) PetscCall(post_for_all(program, crossing));
    PetscFunctionReturn(0);
  }

  PetscErrorCode wait() override {
    PetscFunctionBegin;
    if (service_ != nullptr && !reached(board_->finished, number_)) {
      PetscCall(fail_all(service_->wait()));
      std::copy(scalars_.begin(), scalars_.end(), board_->scalars);
      show(board_->finished, number_);
    }
    if (service_ != nullptr || taken_ == number_) PetscFunctionReturn(0);
    PetscCall(wait_for(board_->finished, number_));
    std::copy_n(board_->scalars, scalars_.size(), scalars_.begin());
    taken_ = number_;
    PetscFunctionReturn(0);
  }

  std::string describe() const override {
    const std::string service = service_ != nullptr ? service_->describe() : "the service of this node";
    return groups_.size == 1 ? service : service + ", one leader for " + std::to_string(groups_.size) + " ranks";
  }

 private:
  std::list<SharedArray>::iterator find(const void* memory) {
    return std::find_if(arrays_.begin(), arrays_.end(), [&](const auto& array) { return array.own() == memory; });
  }

  template <typename T>
  const T* translate(const T* address) const {
    const auto array = std::find_if(arrays_.begin(), arrays_.end(), [&](const auto& a) { return a.owns(address); });
    return array == arrays_.end() ? nullptr : array->at_leader(address);
  }

  offpath_matrix_rows_t at_leader(offpath_matrix_rows_t matrix) const {
    matrix.offsets = translate(matrix.offsets);
    matrix.columns = translate(matrix.columns);
    matrix.values = translate(matrix.values);
    return matrix;
  }

  PetscErrorCode post_for_all(offpath_program_t program, const offpath_crossing_t& crossing) {
    PetscFunctionBegin;
    std::vector<offpath_matrix_rows_t> matrices;
    program.rows = 0;
    for (PetscMPIInt rank = 0; rank < groups_.size; ++rank) {
      const Handover& other = handovers_[rank];
      PetscCall(wait_for(other.posted, number_));
      const Part& part = other.parts[(number_ - 1) % kMostPosted];
      program.rows += part.rows;
      if (part.matrices > 0) matrices.push_back(part.matrix);
    }
    program.matrices = matrices.data();
    program.matrices_count = static_cast<uint32_t>(matrices.size());
    PetscCall(fail_all(service_->post(program, crossing)));
    show(board_->started, number_);
    PetscFunctionReturn(0);
  }

  // The leader's error is everybody's.
  PetscErrorCode fail_all(PetscErrorCode error) {
    PetscFunctionBegin;
    if (error != 0) show(board_->failed, 1);
    PetscCall(error);
    PetscFunctionReturn(0);
  }

  void show(std::atomic<uint32_t>& counter, uint32_t value) {
    counter.store(value, std::memory_order_release);
    board_->changes.fetch_add(1, std::memory_order_seq_cst);
    if (board_->waiters.load(std::memory_order_seq_cst) != 0) session::futex_wake(board_->changes, INT32_MAX);
  }

  // Sleeps until it is, with native messages kept going.
  PetscErrorCode wait_for(const std::atomic<uint32_t>& counter, uint32_t number) {
    PetscFunctionBegin;
    for (;;) {
      const uint32_t seen = board_->changes.load(std::memory_order_seq_cst);
      if (reached(counter, number)) break;
      PetscCheck(board_->failed.load(std::memory_order_acquire) == 0, PETSC_COMM_SELF, PETSC_ERR_LIB,
                 "Offpath: vector operations of the solver failed at this rank's leader, which says why");
      PetscCall(progress(groups_.group));
      board_->waiters.fetch_add(1, std::memory_order_seq_cst);
      session::futex_wait(board_->changes, seen, kBoardNapNs);
      board_->waiters.fetch_sub(1, std::memory_order_seq_cst);
    }
    PetscFunctionReturn(0);
  }

  Groups groups_;
  std::unique_ptr<Executor> service_;
  std::list<SharedArray> arrays_;
  Board* board_ = nullptr;
  Handover* handovers_ = nullptr;  // by rank of the group
  uint32_t number_ = 0;            // programs posted
  uint32_t taken_ = 0;             // the last one whose scalars are here
  std::span<double> scalars_;
};

}  // namespace

PetscErrorCode progress(MPI_Comm comm) {
  PetscFunctionBegin;
  int found;
  PetscCallMPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, MPI_STATUS_IGNORE));
  PetscFunctionReturn(0);
}

PetscErrorCode make_onloaded_executor(MPI_Comm comm, PetscInt leaders, std::unique_ptr<Executor>* executor,
                                      std::string* reason) {
  PetscFunctionBegin;
  if (leaders == 0) {
    PetscCall(make_service_executor(comm, executor, reason));
    PetscFunctionReturn(0);
  }
  Groups groups;
  std::unique_ptr<Executor> service;
  PetscCall(groups.make(comm, leaders));
  if (groups.leads()) PetscCall(make_service_executor(groups.leaders, &service, reason));
  auto onloaded = std::make_unique<OnloadedExecutor>(groups, std::move(service));
  const int served = !groups.leads() || reason->empty() ? 1 : 0;
  int all_served = 0, all_open = 0;
  PetscCallMPI(MPI_Allreduce(&served, &all_served, 1, MPI_INT, MPI_MIN, comm));
  const int open = all_served == 1 && onloaded->open() ? 1 : 0;
  PetscCallMPI(MPI_Allreduce(&open, &all_open, 1, MPI_INT, MPI_MIN, comm));
  if (all_open == 1) {
    *executor = std::move(onloaded);
  } else if (reason->empty()) {
    *reason = all_served == 0 ? "a leader has no service" : "a rank cannot use the memory of its leader";
  }
  PetscFunctionReturn(0);
}

}  // namespace offpath::petsc
