// SPDX-License-Identifier: BSD-3-Clause
// The handlers of a collective in its three forms, made from its row: nonblocking, persistent, blocking; each with int
// counts and with large ones.
//
// Threads: any. Errors went to the communicator's handler when these return.
#pragma once

#include "mpi/collectives/describing.hpp"
#include "mpi/native/native.hpp"
#include "mpi/native/signatures.hpp"

namespace offpath::mpi {

// Offloads the call and returns true, with what the MPI function returns in *code. False: nothing was done, the native
// function is to be called.
bool offload(const Offloadable& collective, const Arguments& arguments, MPI_Comm comm, MPI_Request* request, int* code);
// The same for the blocking form, if it is to be offloaded at all. Waits.
bool offload_blocking(const Offloadable& collective, const Arguments& arguments, MPI_Comm comm, int* code);
// After the native init function has made *request: makes it start offloaded, if the policy says so and all ranks can.
// Collective.
void adopt_persistent(const Offloadable& collective, const Arguments& arguments, MPI_Comm comm, MPI_Request* request);

template <typename Width, typename... Fields>
struct Forms : Signature<Width, Fields...> {
  using Base = Signature<Width, Fields...>;

  template <const Offloadable& collective>
  static int nonblocking(typename Fields::Value... values, MPI_Comm comm, MPI_Request* request) {
    const Arguments arguments = Base::collect(values...);
    int code = MPI_SUCCESS;
    if (offload(collective, arguments, comm, request, &code)) return code;
    return collective.issue(arguments, comm, request);
  }

  template <const Offloadable& collective, auto init>
  static int persistent(typename Fields::Value... values, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    const Arguments arguments = Base::collect(values...);
    const int code = Base::call(native.*init, arguments, comm, info, request);
    if (code == MPI_SUCCESS) adopt_persistent(collective, arguments, comm, request);
    return code;
  }

  template <const Offloadable& collective, auto function>
  static int blocking(typename Fields::Value... values, MPI_Comm comm) {
    const Arguments arguments = Base::collect(values...);
    int code = MPI_SUCCESS;
    if (offload_blocking(collective, arguments, comm, &code)) return code;
    return Base::call(native.*function, arguments, comm);
  }

  template <auto function>
  static int issue(const Arguments& arguments, MPI_Comm comm, MPI_Request* request) {
    return Base::call(native.*function, arguments, comm, request);
  }
};

}  // namespace offpath::mpi
