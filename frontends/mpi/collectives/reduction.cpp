// SPDX-License-Identifier: BSD-3-Clause
// Collectives that combine data. MPI wants operator, datatype and count to be the same on all ranks, so what the
// service cannot reduce is native on all of them.
#include "mpi/collectives/describing.hpp"

namespace offpath::mpi {
namespace {

// Names operator and element type; `element_bytes` is the distance between two elements. False: native.
bool name_reduction(Call& call, const Lane& lane, uint64_t* element_bytes) {
  call.op = find_operator(call.arguments.op);
  const TypeRef type = call.op == OFFPATH_OP_NONE ? nullptr : find_type(call.arguments.recv.type, lane.shadow());
  if (type == nullptr || !type->reduces(call.op)) return false;
  call.element = type->element;
  *element_bytes = static_cast<uint64_t>(type->extent_bytes);
  return true;
}

// False: negative, or more than there is memory.
bool multiply(int64_t count, uint64_t bytes, uint64_t* all) {
  return count >= 0 && !__builtin_mul_overflow(count, bytes, all);
}

// `receives`: this member gets a result.
bool add_sides(Call& call, uint64_t send_bytes, uint64_t recv_bytes, bool receives) {
  const void*& send = call.arguments.send.buffer;
  const void* recv = call.arguments.recv.buffer;
  if (receives && recv == MPI_IN_PLACE) return false;
  // Who gives the same memory for both means it, and may be the only one that does.
  if (receives && recv == send && send_bytes > 0) send = MPI_IN_PLACE;
  call.in_place = send == MPI_IN_PLACE;
  if (call.in_place && !receives) return false;
  if (!call.send.add_bytes(call.in_place ? recv : send, send_bytes)) return false;
  if (call.in_place) call.send.stage_all();
  return !receives || call.recv.add_bytes(recv, recv_bytes);
}

}  // namespace

bool describe_reduction(Call& call, const Lane& lane) {
  uint64_t element_bytes = 0, bytes = 0;
  if (!name_reduction(call, lane, &element_bytes) || !multiply(call.arguments.recv.count, element_bytes, &bytes))
    return false;
  if (!choose(call, lane, bytes)) return false;
  // At the first rank of an exscan MPI looks at no receive buffer, so that there need not be one. Nor is the block touched here.
  const void* const send = call.arguments.send.buffer;
  if (call.collective->id == policy::Collective::iexscan && lane.rank() == 0 && send != MPI_IN_PLACE)
    return call.send.add_bytes(send, bytes) && call.recv.add_bytes(send, bytes);
  return add_sides(call, bytes, bytes, true);
}

bool describe_reduce(Call& call, const Lane& lane) {
  uint64_t element_bytes = 0, bytes = 0;
  const int root = call.arguments.root;
  if (root < 0 || root >= lane.size() || !name_reduction(call, lane, &element_bytes)) return false;
  if (!multiply(call.arguments.recv.count, element_bytes, &bytes)) return false;
  return choose(call, lane, bytes) && add_sides(call, bytes, bytes, root == lane.rank());
}

bool describe_reduce_scatter(Call& call, const Lane& lane) {
  uint64_t element_bytes = 0, bytes = 0;
  const Numbers& counts = call.arguments.recv.counts;
  if (!counts || !name_reduction(call, lane, &element_bytes)) return false;
  for (int rank = 0; rank < lane.size(); ++rank) {
    uint64_t part = 0;
    if (!multiply(counts[rank], element_bytes, &part) || __builtin_add_overflow(bytes, part, &bytes)) return false;
    call.counts_bytes.push_back(part);
  }
  if (!choose(call, lane, bytes)) return false;
  if (!add_sides(call, bytes, call.counts_bytes[static_cast<size_t>(lane.rank())], true)) return false;
  return call.keep(call.recv, &call.arguments.recv, lane.size());
}

bool describe_reduce_scatter_block(Call& call, const Lane& lane) {
  uint64_t element_bytes = 0, block = 0, bytes = 0;
  if (!name_reduction(call, lane, &element_bytes) || !multiply(call.arguments.recv.count, element_bytes, &block) ||
      !multiply(lane.size(), block, &bytes)) {
    return false;
  }
  if (!choose(call, lane, bytes)) return false;
  call.counts_bytes.assign(static_cast<size_t>(lane.size()), block);
  return add_sides(call, bytes, block, true);
}

}  // namespace offpath::mpi
