// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/errors.hpp"

#include "mpi/native/native.hpp"

#include <cstdio>

namespace offpath::mpi {
namespace {

// What the library says of a broadcast whose root has sent less than is expected.
#ifdef OPEN_MPI
constexpr int kShort = MPI_SUCCESS;
#else
constexpr int kShort = MPI_ERR_OTHER;
#endif

// By which programs know what is lost, where the library lets them go on: of Open MPI 5, as the header may be older.
constexpr int kProcessFailed = 75, kProcessFailedPending = 76, kRevoked = 77;

const char* describe_failure(Failure failure) {
  switch (failure) {
    case Failure::service_lost:
      return "service on this node was lost";
    case Failure::peer_lost:
      return "service or process of another rank was lost";
    case Failure::no_agreement:
      return "a service was lost and not all ranks answered in time";
    case Failure::process_lost:
      return "process of another rank was lost";
    case Failure::revoked:
      return "communicator was revoked";
  }
  return "failed";
}

}  // namespace

bool Errors::create() {
  if (native.Add_error_class(&class_) != MPI_SUCCESS) return false;
  native.Add_error_string(class_, "Offpath: a service was lost while it worked on an operation");
  if (native.Add_error_code(class_, &general_) != MPI_SUCCESS) return false;
  native.Add_error_string(general_, "Offpath: a service was lost while it worked on an operation");
  return true;
}

std::optional<Failure> Errors::told_by(int code) {
  int told = code;
  if (!native.tells_of_losses() || native.Error_class(code, &told) != MPI_SUCCESS) return std::nullopt;
  if (told == kProcessFailed || told == kProcessFailedPending) return Failure::process_lost;
  return told == kRevoked ? std::optional(Failure::revoked) : std::nullopt;
}

int Errors::code_of(Failure failure) const {
  if (!native.tells_of_losses()) return general_;
  return failure == Failure::process_lost ? kProcessFailed : failure == Failure::revoked ? kRevoked : general_;
}

int Errors::lost(Failure failure, const char* collective, uint64_t sequence, const char* communicator) {
  int code = code_of(failure);
  if (code != general_) return code;
  if (codes_ >= kMaxCodes || native.Add_error_code(class_, &code) != MPI_SUCCESS) return general_;
  ++codes_;
  char text[MPI_MAX_ERROR_STRING];
  snprintf(text, sizeof(text), "Offpath: %s (operation %s #%llu on communicator %.64s)", describe_failure(failure),
           collective, static_cast<unsigned long long>(sequence),
           *communicator == '\0' ? "without name" : communicator);
  native.Add_error_string(code, text);
  return code;
}

int Errors::naming(const char* call, int code) const {
  char why[MPI_MAX_ERROR_STRING] = "", text[MPI_MAX_ERROR_STRING];
  int length = 0, named = code;
  native.Error_string(code, why, &length);
  if (native.Add_error_code(class_, &named) != MPI_SUCCESS) return code;
  snprintf(text, sizeof(text), "%s failed: %.200s", call, why);
  native.Add_error_string(named, text);
  return named;
}

int Errors::code_for(offpath_status_t status) const {
  switch (status) {
    case OFFPATH_ERR_TRUNCATED:
      return MPI_ERR_TRUNCATE;
    case OFFPATH_ERR_MEMORY_FAULT:
      return MPI_ERR_BUFFER;
    case OFFPATH_ERR_NO_MEMORY:
      return MPI_ERR_NO_MEM;
    case OFFPATH_ERR_RANGE:
      return MPI_ERR_RMA_RANGE;
    case OFFPATH_ERR_ARGUMENT:
      return MPI_ERR_ARG;
    case OFFPATH_ERR_SHORT:
      return kShort;
    case OFFPATH_ERR_PEER_LOST:  // of windows and messages: its process
      return code_of(Failure::process_lost);
    case OFFPATH_ERR_SERVICE_LOST:
    case OFFPATH_ERR_NOT_STARTED:
      return general_;
    default:
      return MPI_ERR_OTHER;
  }
}

int raise_error(MPI_Comm comm, int code) {
  native.Comm_call_errhandler(comm, code);
  return code;
}

}  // namespace offpath::mpi
