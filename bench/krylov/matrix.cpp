// SPDX-License-Identifier: BSD-3-Clause
#include "matrix.hpp"

namespace offpath::bench {

PetscErrorCode make_laplacian(MPI_Comm comm, PetscInt n, Mat* matrix) {
  PetscFunctionBegin;
  const PetscInt rows = n * n * n;
  PetscCall(MatCreate(comm, matrix));
  PetscCall(MatSetSizes(*matrix, PETSC_DECIDE, PETSC_DECIDE, rows, rows));
  PetscCall(MatSetType(*matrix, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocation(*matrix, 27, nullptr));
  PetscCall(MatMPIAIJSetPreallocation(*matrix, 27, nullptr, 18, nullptr));
  PetscInt first, end;
  PetscCall(MatGetOwnershipRange(*matrix, &first, &end));
  for (PetscInt row = first; row < end; ++row) {
    const PetscInt x = row % n, y = row / n % n, z = row / n / n;
    PetscInt columns[27], count = 0;
    PetscScalar values[27];
    for (PetscInt k = z - 1; k <= z + 1; ++k) {
      for (PetscInt j = y - 1; j <= y + 1; ++j) {
        for (PetscInt i = x - 1; i <= x + 1; ++i) {
          if (i < 0 || j < 0 || k < 0 || i >= n || j >= n || k >= n) continue;
          columns[count] = i + n * (j + n * k);
          values[count] = columns[count] == row ? 26 : -1;
          ++count;
        }
      }
    }
    PetscCall(MatSetValues(*matrix, 1, &row, count, columns, values, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*matrix, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*matrix, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*matrix, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(0);
}

}  // namespace offpath::bench
