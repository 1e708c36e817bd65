// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/device/call.hpp"

#include "offpath/offpath.h"

#include <atomic>
#include <cstdio>
#include <type_traits>

namespace offpath::regions {
namespace {

template <typename Handle>
uint64_t value_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<uintptr_t>(handle);
  else
    return static_cast<uint32_t>(handle);
}

}  // namespace

int UpCall::post(const Arguments& arguments, Buffer input, Buffer output) {
  const offpath_span_t in{input.data, input.bytes};
  const offpath_span_t out[]{{&result_, sizeof(result_)}, {output.data, output.bytes}};
  result_ = {};
  id_ = offpath_upcall_post(kUpcallCode, &arguments, sizeof(arguments), &in, input.bytes == 0 ? 0 : 1, out,
                            output.bytes == 0 ? 1 : 2);
  return id_ == 0 ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

int UpCall::ended(int32_t status) {
  id_ = 0;
  if (status == OFFPATH_OK) return result_.error;
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    fprintf(stderr,
            "offpath error: MPI calls in target regions return errors: nobody serves them in the host process. Preload "
            "liboffpath_mpi.so there, or run the program with offpath run\n");
  }
  return result_.error = MPI_ERR_OTHER;
}

bool UpCall::test() {
  int32_t status = OFFPATH_OK;
  if (id_ == 0) return true;
  if (offpath_upcall_test(id_, &status) == 0) return false;
  ended(status);
  return true;
}

int UpCall::wait() { return id_ == 0 ? result_.error : ended(offpath_upcall_wait(id_)); }

int call(const Arguments& arguments, Result* result, Buffer input, Buffer output) {
  UpCall upcall;
  const int posted = upcall.post(arguments, input, output);
  const int code = posted == MPI_SUCCESS ? upcall.wait() : posted;
  if (result != nullptr) *result = upcall.result();
  return code;
}

uint64_t comm_name(MPI_Comm comm) {
  if (comm == MPI_COMM_WORLD) return kCommWorld;
  if (comm == MPI_COMM_SELF) return kCommSelf;
  return comm == MPI_COMM_NULL ? kUnknownName : value_of(comm);
}

uint64_t type_name(MPI_Datatype type) {
  const auto& types = named_types();
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].handle == type) return i + 1;
  }
  return kUnknownName;
}

uint64_t operator_name(MPI_Op operation) {
  const auto& operators = named_operators();
  for (size_t i = 0; i < operators.size(); ++i) {
    if (operators[i] == operation) return i + 1;
  }
  return kUnknownName;
}

int measure(int count, MPI_Datatype type, uint64_t* bytes, uint64_t* name) {
  if (count < 0) return MPI_ERR_COUNT;
  *name = type_name(type);
  const NamedType* const found = find_type(*name);
  if (found == nullptr) return MPI_ERR_TYPE;
  *bytes = static_cast<uint64_t>(count) * found->bytes;
  return MPI_SUCCESS;
}

}  // namespace offpath::regions
