// SPDX-License-Identifier: BSD-3-Clause
#include "petsc/product.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace offpath::petsc {
namespace {

constexpr double kTrialPhi = 0.125, kMostPhi = 0.9;
constexpr int kTrials = 3;

MPI_Comm comm_of(KSP ksp) { return PetscObjectComm(reinterpret_cast<PetscObject>(ksp)); }

// The diagonal block as compressed rows, while this lives.
struct DiagonalBlock {
  Mat block = nullptr;
  PetscInt rows = 0;
  const PetscInt *offsets = nullptr, *columns = nullptr;
  const PetscScalar* values = nullptr;
  PetscBool done = PETSC_FALSE;

  PetscErrorCode open(Mat matrix) {
    PetscFunctionBegin;
    PetscCall(MatGetDiagonalBlock(matrix, &block));
    PetscCall(MatGetRowIJ(block, 0, PETSC_FALSE, PETSC_FALSE, &rows, &offsets, &columns, &done));
    if (done == PETSC_TRUE) PetscCall(MatSeqAIJGetArrayRead(block, &values));
    PetscFunctionReturn(0);
  }
  PetscErrorCode close() {
    PetscFunctionBegin;
    if (done == PETSC_TRUE) PetscCall(MatSeqAIJRestoreArrayRead(block, &values));
    PetscCall(MatRestoreRowIJ(block, 0, PETSC_FALSE, PETSC_FALSE, &rows, &offsets, &columns, &done));
    PetscFunctionReturn(0);
  }
};

template <typename T>
T* copy_to(Executor& executor, const T* from, uint64_t count, std::vector<void*>* memory) {
  void* to = executor.allocate(count * sizeof(T));
  if (to == nullptr) return nullptr;
  memory->push_back(to);
  memcpy(to, from, count * sizeof(T));
  return static_cast<T*>(to);
}

}  // namespace

PetscErrorCode Product::reset() {
  PetscFunctionBegin;
  PetscCall(MatDestroy(&rest_));
  if (executor_ != nullptr) {
    for (void* memory : memory_) executor_->release(memory);
  }
  memory_.clear();
  phi_ = 0;
  rows_ = 0;
  is_there_ = false;
  state_ = -1;
  PetscFunctionReturn(0);
}

PetscErrorCode Product::prepare(KSP ksp, Storage& storage, Mat matrix, double phi, uint32_t part,
                                PetscErrorCode (*post_busy)(KSP)) {
  PetscFunctionBegin;
  PetscObjectState state;
  PetscObjectId id;
  PetscCall(PetscObjectStateGet(reinterpret_cast<PetscObject>(matrix), &state));
  PetscCall(PetscObjectGetId(reinterpret_cast<PetscObject>(matrix), &id));
  if (state == state_ && id == matrix_) PetscFunctionReturn(0);
  PetscCall(reset());
  executor_ = &storage.executor();
  part_ = part;
  state_ = state;
  matrix_ = id;
  if (phi == 0) PetscFunctionReturn(0);
  PetscBool is_aij;
  PetscCall(PetscObjectTypeCompareAny(reinterpret_cast<PetscObject>(matrix), &is_aij, MATSEQAIJ, MATMPIAIJ, ""));
  if (is_aij == PETSC_FALSE || !storage.executor().multiplies() || sizeof(PetscInt) != sizeof(int32_t)) {
    PetscCall(PetscInfo(ksp, "Offpath: the host does the whole product (a share needs a service and an AIJ matrix)\n"));
    PetscFunctionReturn(0);
  }
  bool taken;
  PetscCall(take(ksp, storage, matrix, phi < 0 ? kTrialPhi : phi, &taken));
  if (taken && phi < 0) {
    PetscCall(measure(ksp, storage, matrix, post_busy, &phi));
    PetscCall(take(ksp, storage, matrix, phi, &taken));
  }
  state_ = state;
  matrix_ = id;
  PetscCall(PetscInfo(ksp, "Offpath: the service multiplies %.3f of the rows\n", phi_));
  PetscFunctionReturn(0);
}

PetscErrorCode Product::take(KSP ksp, Storage& storage, Mat matrix, double phi, bool* taken) {
  PetscFunctionBegin;
  PetscCall(reset());
  rows_ = static_cast<uint64_t>(phi * static_cast<double>(storage.rows()));
  bool fits = false;
  PetscCall(copy_rows(storage, matrix, &fits));
  const int own = fits ? 1 : 0;
  int all = 0;
  PetscCallMPI(MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, comm_of(ksp)));
  *taken = all == 1;
  if (*taken) {
    PetscCall(make_rest(matrix));
    phi_ = phi;
  } else {
    PetscCall(reset());
    PetscCall(PetscInfo(ksp, "Offpath: the service's rows of the matrix do not fit into shared memory\n"));
  }
  PetscFunctionReturn(0);
}

PetscErrorCode Product::copy_rows(Storage& storage, Mat matrix, bool* fits) {
  PetscFunctionBegin;
  DiagonalBlock block;
  PetscCall(block.open(matrix));
  if (block.done == PETSC_TRUE) {
    const auto entries = static_cast<uint64_t>(block.offsets[rows_]);
    const int32_t* offsets = copy_to(storage.executor(), block.offsets, rows_ + 1, &memory_);
    int32_t* columns = copy_to(storage.executor(), block.columns, entries, &memory_);
    const double* values = copy_to(storage.executor(), block.values, entries, &memory_);
    const uint64_t first = storage.first_row(), known = std::max<uint64_t>(first + storage.rows(), 1);
    *fits = offsets != nullptr && columns != nullptr && values != nullptr && known <= INT32_MAX;
    if (*fits)
      std::for_each(columns, columns + entries, [&](int32_t& column) { column += static_cast<int32_t>(first); });
    share_ = {first, rows_, offsets, columns, values, entries, known, 0, part_};
  }
  PetscCall(block.close());
  PetscFunctionReturn(0);
}

PetscErrorCode Product::make_rest(Mat matrix) {
  PetscFunctionBegin;
  PetscInt first, end, first_column, end_column, rows, columns;
  PetscCall(MatGetOwnershipRange(matrix, &first, &end));
  PetscCall(MatGetOwnershipRangeColumn(matrix, &first_column, &end_column));
  PetscCall(MatGetLocalSize(matrix, &rows, &columns));
  std::vector<PetscInt> offsets{0}, kept_columns;
  std::vector<PetscScalar> kept_values;
  for (PetscInt row = first; row < end; ++row) {
    PetscInt count;
    const PetscInt* in_row;
    const PetscScalar* values;
    PetscCall(MatGetRow(matrix, row, &count, &in_row, &values));
    const bool given_away = static_cast<uint64_t>(row - first) < rows_;
    for (PetscInt i = 0; i < count; ++i) {
      if (given_away && in_row[i] >= first_column && in_row[i] < end_column) continue;
      kept_columns.push_back(in_row[i]);
      kept_values.push_back(values[i]);
    }
    PetscCall(MatRestoreRow(matrix, row, &count, &in_row, &values));
    offsets.push_back(static_cast<PetscInt>(kept_columns.size()));
  }
  PetscCall(MatCreate(PetscObjectComm(reinterpret_cast<PetscObject>(matrix)), &rest_));
  PetscCall(MatSetSizes(rest_, rows, columns, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(rest_, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocationCSR(rest_, offsets.data(), kept_columns.data(), kept_values.data()));
  PetscCall(MatMPIAIJSetPreallocationCSR(rest_, offsets.data(), kept_columns.data(), kept_values.data()));
  PetscFunctionReturn(0);
}

// The host's time falls with phi, the service's grows: where the two lines meet both are done at once. The slowest rank
// counts.
PetscErrorCode Product::measure(KSP ksp, Storage& storage, Mat matrix, PetscErrorCode (*post_busy)(KSP), double* phi) {
  PetscFunctionBegin;
  Executor& executor = storage.executor();
  double host = INFINITY, share = INFINITY, rest = post_busy == nullptr ? 0 : INFINITY;
  for (int trial = 0; trial < kTrials; ++trial) {
    double begin = MPI_Wtime();
    PetscCall(MatMult(matrix, storage.vec(0), storage.vec(part_)));
    host = std::min(host, MPI_Wtime() - begin);
    begin = MPI_Wtime();
    PetscCall(post(storage, 0));
    PetscCall(executor.wait());
    share = std::min(share, MPI_Wtime() - begin);
    if (post_busy == nullptr) continue;
    begin = MPI_Wtime();
    PetscCall(post_busy(ksp));
    PetscCall(executor.wait());
    rest = std::min(rest, MPI_Wtime() - begin);
  }
  double times[] = {host, share / kTrialPhi, rest};
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, times, 3, MPI_DOUBLE, MPI_MAX, comm_of(ksp)));
  *phi = std::clamp((times[0] - times[2]) / (times[0] + times[1]), 0.0, kMostPhi);
  PetscFunctionReturn(0);
}

PetscErrorCode Product::post(Storage& storage, uint32_t x) {
  PetscFunctionBegin;
  share_.source = x;
  offpath_program_t program = storage.program();
  program.matrices = &share_;
  program.matrices_count = 1;
  const uint32_t flags = std::exchange(is_there_, true) ? 0 : OFFPATH_CROSSING_MATRICES;
  PetscCall(storage.executor().post(program, crossing_of({&x, 1}, {&part_, 1}, flags)));
  PetscFunctionReturn(0);
}

PetscErrorCode Product::begin(KSP ksp, Storage& storage, Mat matrix, uint32_t x, uint32_t y) {
  PetscFunctionBegin;
  if (rest_ == nullptr) {
    PetscCall(KSP_MatMult(ksp, matrix, storage.vec(x), storage.vec(y)));
    PetscFunctionReturn(0);
  }
  PetscCall(post(storage, x));
  PetscCall(MatMult(rest_, storage.vec(x), storage.vec(y)));
  PetscFunctionReturn(0);
}

PetscErrorCode Product::end(Storage& storage, uint32_t y) {
  PetscFunctionBegin;
  const double* part = storage.array(part_);
  double* sum = storage.array(y);
  for (uint64_t i = 0; i < rows_; ++i) sum[i] += part[i];
  if (rows_ > 0) PetscCall(PetscObjectStateIncrease(reinterpret_cast<PetscObject>(storage.vec(y))));
  PetscFunctionReturn(0);
}

}  // namespace offpath::petsc
