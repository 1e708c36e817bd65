// SPDX-License-Identifier: BSD-3-Clause
// Ranks, time, names: what a region asks about itself.
#include "mpi/device/call.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>

namespace offpath::regions {

extern "C" {

int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  Result result{};
  const int code = call(arguments_of(Call::comm_size, comm), &result);
  *rank = result.rank;
  return code;
}

int MPI_Comm_size(MPI_Comm comm, int* size) {
  Result result{};
  const int code = call(arguments_of(Call::comm_size, comm), &result);
  *size = static_cast<int>(result.value);
  return code;
}

int MPI_Abort(MPI_Comm comm, int code) {
  Arguments arguments = arguments_of(Call::abort, comm);
  arguments.peer = code;
  return call(arguments, nullptr);
}

// A region runs between the host's MPI_Init and MPI_Finalize.
int MPI_Initialized(int* flag) {
  *flag = 1;
  return MPI_SUCCESS;
}

int MPI_Finalized(int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int MPI_Query_thread(int* provided) {
  *provided = MPI_THREAD_MULTIPLE;
  return MPI_SUCCESS;
}

int MPI_Is_thread_main(int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int MPI_Get_version(int* version, int* subversion) {
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
  return MPI_SUCCESS;
}

int MPI_Get_processor_name(char* name, int* length) {
  if (gethostname(name, MPI_MAX_PROCESSOR_NAME) != 0) strcpy(name, "unknown");
  name[MPI_MAX_PROCESSOR_NAME - 1] = '\0';
  *length = static_cast<int>(strlen(name));
  return MPI_SUCCESS;
}

double MPI_Wtime(void) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double MPI_Wtick(void) { return 1e-9; }

// Codes of regions are classes.
int MPI_Error_class(int code, int* error_class) {
  *error_class = code;
  return MPI_SUCCESS;
}

int MPI_Error_string(int code, char* text, int* length) {
  *length = snprintf(text, MPI_MAX_ERROR_STRING, "MPI error class %d in a target region", code);
  return MPI_SUCCESS;
}

// Errors in regions always return.
int MPI_Comm_set_errhandler(MPI_Comm, MPI_Errhandler) { return MPI_SUCCESS; }
int MPI_Win_set_errhandler(MPI_Win, MPI_Errhandler) { return MPI_SUCCESS; }

int MPI_Type_size(MPI_Datatype type, int* bytes) {
  const NamedType* const found = find_type(type_name(type));
  if (found == nullptr) return MPI_ERR_TYPE;
  *bytes = static_cast<int>(found->bytes);
  return MPI_SUCCESS;
}

int MPI_Get_address(const void* location, MPI_Aint* address) {
  *address = reinterpret_cast<MPI_Aint>(location);
  return MPI_SUCCESS;
}

#undef MPI_Aint_add
#undef MPI_Aint_diff
MPI_Aint MPI_Aint_add(MPI_Aint base, MPI_Aint displacement) { return base + displacement; }
MPI_Aint MPI_Aint_diff(MPI_Aint to, MPI_Aint from) { return to - from; }

}  // extern "C"
}  // namespace offpath::regions
