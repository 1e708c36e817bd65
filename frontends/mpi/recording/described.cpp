// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/described.hpp"

#include <algorithm>
#include <numeric>

namespace offpath::mpi::recording {

uint64_t bytes_of(int64_t count, MPI_Datatype type) {
  MPI_Count size = 0;
  if (count <= 0 || type == MPI_DATATYPE_NULL || native.Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return 0;
  return static_cast<uint64_t>(count) * static_cast<uint64_t>(size);
}

namespace {

std::vector<uint64_t> blocks_of(const Stated& side, int size) {
  std::vector<uint64_t> bytes;
  for (int i = 0; side.counts && i < size; ++i) {
    bytes.push_back(bytes_of(side.counts[i], side.types != nullptr ? side.types[i] : side.type));
  }
  return bytes;
}

uint64_t sum(const std::vector<uint64_t>& values) { return std::accumulate(values.begin(), values.end(), uint64_t{0}); }

}  // namespace

Posted describe(const Kind& kind, const Arguments& arguments, MPI_Comm comm) {
  int rank = 0, size = 1;
  native.Comm_rank(comm, &rank);
  native.Comm_size(comm, &size);
  const Stated& send = arguments.send;
  const Stated& recv = arguments.recv;
  const bool in_place = send.buffer == MPI_IN_PLACE;
  const bool is_root = rank == arguments.root;
  const auto ranks = static_cast<uint64_t>(size);
  Posted posted{kind.name, 0, arguments.root, {}};
  switch (kind.shape) {
    case Shape::nothing:
      break;
    case Shape::vector:
      posted.bytes = bytes_of(recv.count, recv.type);
      break;
    case Shape::vector_by_rank:
      posted.bytes = recv.counts ? sum(blocks_of(recv, size)) : ranks * bytes_of(recv.count, recv.type);
      break;
    case Shape::even:
    case Shape::gather: {
      const Stated& stated = in_place ? recv : send;
      posted.bytes = ranks * bytes_of(stated.count, stated.type);
      break;
    }
    case Shape::scatter: {
      const bool own_in_place = recv.buffer == MPI_IN_PLACE;
      posted.bytes = ranks * (own_in_place ? bytes_of(send.count, send.type) : bytes_of(recv.count, recv.type));
      break;
    }
    case Shape::allgather:
      if (!recv.counts) {
        posted.bytes = ranks * bytes_of(recv.count, recv.type);
      } else {
        const auto blocks = blocks_of(recv, size);
        posted.bytes = sum(blocks);
        posted.sent_bytes.assign(ranks, blocks[static_cast<size_t>(rank)]);
      }
      break;
    case Shape::gatherv:
      posted.sent_bytes.assign(ranks, 0);
      if (!(is_root && in_place))
        posted.sent_bytes[static_cast<size_t>(arguments.root)] = bytes_of(send.count, send.type);
      posted.bytes = is_root ? sum(blocks_of(recv, size)) : 0;
      break;
    case Shape::scatterv:
      posted.sent_bytes.assign(ranks, 0);
      if (is_root) posted.sent_bytes = blocks_of(send, size);
      posted.bytes = sum(posted.sent_bytes);
      break;
    case Shape::uneven:
      posted.sent_bytes = blocks_of(in_place ? recv : send, size);
      posted.bytes = std::max(sum(posted.sent_bytes), sum(blocks_of(recv, size)));
  }
  return posted;
}

}  // namespace offpath::mpi::recording
