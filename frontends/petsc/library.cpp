// SPDX-License-Identifier: BSD-3-Clause
// What PETSc calls when it loads the library (-dll_append liboffpath_petsc.so): registers the solvers.
#include "petsc/job.hpp"
#include "petsc/solver.hpp"

extern "C" [[gnu::visibility("default")]] PetscErrorCode PetscDLLibraryRegister_offpath_petsc() {
  using namespace offpath::petsc;
  PetscFunctionBegin;
  PetscCall(KSPInitializePackage());
  PetscCall(open_job());
  PetscCall(register_events());
  PetscCall(KSPRegister("offpath_pipecg", create_pipecg));
  PetscCall(KSPRegister("offpath_cg", create_cg));
  PetscCall(KSPRegister("offpath_split", create_split));
  PetscFunctionReturn(0);
}
