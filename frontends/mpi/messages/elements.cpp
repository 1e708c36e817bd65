// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/elements.hpp"

#include "mpi/job/job.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace offpath::mpi {

bool ReceivedElements::hold_a_ticket(int64_t count, MPI_Datatype type) {
  MPI_Count size = 0;
  if (count <= 0 || type == MPI_DATATYPE_NULL) return false;
  if (native.Type_size_x(type, &size) != MPI_SUCCESS || size <= 0) return false;
  return count >= static_cast<int64_t>(kTicketBytes) || count * size >= static_cast<int64_t>(kTicketBytes);
}

bool ReceivedElements::describe() {
  if (type_) return true;
  TypeRef found = find_type(handle_, job.control());
  if (found == nullptr) return false;
  type_.emplace(handle_, std::move(found));
  return true;
}

int ReceivedElements::keep() {
  if (!describe()) return MPI_ERR_TYPE;
  const bool by_ranges = (*type_)->form != Form::packed && !(*type_)->ranges.empty();
  return by_ranges ? MPI_SUCCESS : type_->hold();
}

int ReceivedElements::keep_handle() {
  if (!describe()) return MPI_ERR_TYPE;
  const int code = type_->hold();
  handle_ = type_->handle();
  return code;
}

int ReceivedElements::receive(MPI_Message* message, MPI_Request* request) const {
  return native.Imrecv_c(reinterpret_cast<void*>(address_), static_cast<MPI_Count>(count_), handle_, message, request);
}

int ReceivedElements::receive(int from, int tag, MPI_Comm comm, MPI_Request* request) const {
  return native.Irecv_c(reinterpret_cast<void*>(address_), static_cast<MPI_Count>(count_), handle_, from, tag, comm,
                        request);
}

std::optional<Ticket> ReceivedElements::ticket(const Mark& mark) {
  if (!describe()) return std::nullopt;
  if (const auto run = as_run(**type_, address_, count_)) {
    return read_ticket(mark, reinterpret_cast<const std::byte*>(run->address));
  }
  const int64_t size = (*type_)->size_bytes;
  const int64_t elements = (static_cast<int64_t>(kTicketBytes) + size - 1) / size;
  std::vector<std::byte> packed(static_cast<size_t>(elements * size));
  if (pack(*type_, address_, elements, packed.data(), job.control()) != MPI_SUCCESS) return std::nullopt;
  return read_ticket(mark, packed.data());
}

int ReceivedElements::copy(std::vector<std::byte>* copy) {
  if (!describe()) return MPI_ERR_TYPE;
  copy->resize(static_cast<size_t>((*type_)->size_bytes * count_));
  return pack(*type_, address_, count_, copy->data(), job.control());
}

// The first bytes of the element there.
int ReceivedElements::put_part(const std::byte* bytes, uint64_t count, uintptr_t address) {
  if (count == 0) return MPI_SUCCESS;
  std::vector<std::byte> element(static_cast<size_t>((*type_)->size_bytes));
  const int code = pack(*type_, address, 1, element.data(), job.control());
  if (code != MPI_SUCCESS) return code;
  memcpy(element.data(), bytes, count);
  return unpack(*type_, element.data(), address, 1, job.control());
}

int ReceivedElements::put(const std::byte* payload, uint64_t bytes) {
  if (!describe()) return MPI_ERR_TYPE;
  const auto size = static_cast<uint64_t>((*type_)->size_bytes);
  const uint64_t fits = std::min(bytes, size * static_cast<uint64_t>(count_));
  const uint64_t whole = fits / size;
  int code = unpack(*type_, payload, address_, static_cast<int64_t>(whole), job.control());
  if (code == MPI_SUCCESS) {
    code = put_part(payload + whole * size, fits % size,
                    address_ + whole * static_cast<uintptr_t>((*type_)->extent_bytes));
  }
  if (code != MPI_SUCCESS) return code;
  return fits < bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

}  // namespace offpath::mpi
