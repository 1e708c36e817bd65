/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A PETSc program that knows nothing of Offpath: a 1-D Laplacian, plus -shift S on the diagonal, solved -solves N times
 * (the second from what the first found, if -guess; each later one with another matrix, of S more, if -next S, and
 * with the further options -later TEXT). The right-hand side is -right R (1); -poison puts a NaN into it.
 * -kill ITERATION ends every service whose command line names -service TEXT, from a monitor, as a crash would. */
#define _GNU_SOURCE
#include <petscksp.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static PetscInt kill_at = -1;
static char service[256];

static void kill_services(void) {
  DIR* folder = opendir("/proc");
  for (struct dirent* entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    char path[300], words[4096];
    snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
    const int file = atoi(entry->d_name) > 0 ? open(path, O_RDONLY) : -1;
    if (file < 0) continue;
    const ssize_t bytes = read(file, words, sizeof(words));
    close(file);
    if (bytes > 0 && strstr(words, "offpathd") != NULL &&
        memmem(words, (size_t)bytes, service, strlen(service)) != NULL)
      kill(atoi(entry->d_name), SIGKILL);
  }
  closedir(folder);
}

static PetscErrorCode killer(KSP ksp, PetscInt iteration, PetscReal norm, void* context) {
  PetscFunctionBegin;
  PetscMPIInt rank;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (iteration == kill_at && rank == 0) kill_services();
  (void)ksp, (void)norm, (void)context;
  PetscFunctionReturn(0);
}

static PetscErrorCode make_matrix(PetscInt rows, PetscReal shift, Mat* matrix) {
  PetscFunctionBegin;
  PetscInt first, end;
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, rows, rows, 3, NULL, 2, NULL, matrix));
  PetscCall(MatGetOwnershipRange(*matrix, &first, &end));
  for (PetscInt row = first; row < end; ++row) {
    PetscCall(MatSetValue(*matrix, row, row, 2 + shift, INSERT_VALUES));
    if (row > 0) PetscCall(MatSetValue(*matrix, row, row - 1, -1, INSERT_VALUES));
    if (row + 1 < rows) PetscCall(MatSetValue(*matrix, row, row + 1, -1, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*matrix, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*matrix, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(0);
}

int main(int argc, char** argv) {
  Mat matrix;
  Vec b, x, residual;
  KSP ksp;
  PetscInt rows = 300, solves = 1, iterations;
  PetscReal shift = 0, next = 0, right = 1, norm, reference;
  PetscBool nan = PETSC_FALSE, guess = PETSC_FALSE;
  char later[256] = "";
  KSPConvergedReason reason;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rows", &rows, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-solves", &solves, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-kill", &kill_at, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-shift", &shift, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-next", &next, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-right", &right, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-poison", &nan, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-guess", &guess, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-service", service, sizeof(service), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-later", later, sizeof(later), NULL));
  PetscCall(make_matrix(rows, shift, &matrix));
  PetscCall(MatCreateVecs(matrix, &x, &b));
  PetscCall(VecDuplicate(b, &residual));
  PetscCall(VecSet(b, right));
  if (nan) PetscCall(VecSetValue(b, 0, NAN, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, matrix, matrix));
  PetscCall(KSPSetInitialGuessNonzero(ksp, guess));
  PetscCall(KSPSetFromOptions(ksp));
  if (kill_at >= 0) PetscCall(KSPMonitorSet(ksp, killer, NULL, NULL));
  PetscCall(VecSet(x, 0.5));
  for (PetscInt i = 0; i < solves; ++i) {
    if (i > 0 && next != 0) {
      PetscCall(MatDestroy(&matrix));
      PetscCall(make_matrix(rows, shift + next * (PetscReal)i, &matrix));
      PetscCall(KSPSetOperators(ksp, matrix, matrix));
    }
    if (i == 1 && later[0] != '\0') {
      PetscCall(PetscOptionsInsertString(NULL, later));
      PetscCall(KSPSetFromOptions(ksp));
    }
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetIterationNumber(ksp, &iterations));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(MatMult(matrix, x, residual));
    PetscCall(VecAYPX(residual, -1, b));
    PetscCall(VecNorm(residual, NORM_2, &norm));
    PetscCall(VecNorm(b, NORM_2, &reference));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "result %ld %s %.3e\n", (long)iterations, KSPConvergedReasons[reason],
                          (double)(norm / reference)));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&residual));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&matrix));
  PetscCall(PetscFinalize());
  return 0;
}
