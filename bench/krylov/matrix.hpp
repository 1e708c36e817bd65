// SPDX-License-Identifier: BSD-3-Clause
// The matrices of the benchmark.
#pragma once

#include <petscmat.h>

namespace offpath::bench {

// 3-D Laplacian on an n x n x n grid, 27-point stencil, homogeneous Dirichlet boundary: 26 on the diagonal, -1
// elsewhere.
PetscErrorCode make_laplacian(MPI_Comm comm, PetscInt n, Mat* matrix);

}  // namespace offpath::bench
