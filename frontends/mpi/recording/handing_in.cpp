// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/handing_in.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace offpath::mpi {
namespace {

// Not on the heap, which may be exhausted: a rank that left this early would leave the others waiting.
constexpr size_t kPieceBytes = size_t{1} << 18;
std::array<std::byte, kPieceBytes> piece;

// What fits into the piece. From a rank that has died: nothing more.
size_t receive(MPI_Comm comm, int rank) {
  MPI_Status status;
  int count = 0;
  if (native.Recv(piece.data(), kPieceBytes, MPI_BYTE, rank, 0, comm, &status) != MPI_SUCCESS) return 0;
  native.Get_count(&status, MPI_BYTE, &count);
  return static_cast<size_t>(std::max(count, 0));
}

}  // namespace

int find_keeper(MPI_Comm comm, uint32_t claim) {
  int rank = 0;
  native.Comm_rank(comm, &rank);
  // Larger claims first, then lower ranks.
  const uint64_t own = claim == 0 ? 0 : uint64_t{claim} << 32 | (UINT32_MAX - static_cast<uint32_t>(rank));
  uint64_t best = 0;
  if (native.Allreduce(&own, &best, 1, MPI_UINT64_T, MPI_MAX, comm) != MPI_SUCCESS || best == 0) return -1;
  return static_cast<int>(UINT32_MAX - static_cast<uint32_t>(best));
}

void hand_in(MPI_Comm comm, int keeper, const Source& source, const Sink& sink) {
  int own = 0, ranks = 1;
  native.Comm_rank(comm, &own);
  native.Comm_size(comm, &ranks);
  size_t bytes = 0;
  if (own != keeper) {
    do {
      bytes = source(piece);
      if (native.Send(piece.data(), static_cast<int>(bytes), MPI_BYTE, keeper, 0, comm) != MPI_SUCCESS) return;
    } while (bytes == kPieceBytes);
    return;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    do {
      bytes = rank == own ? source(piece) : receive(comm, rank);
      sink(rank, std::span(piece).first(bytes));
    } while (bytes == kPieceBytes);
  }
}

Source source_of(const std::string& text) {
  return [&text, done = size_t{0}](std::span<std::byte> room) mutable {
    const size_t bytes = std::min(room.size(), text.size() - done);
    memcpy(room.data(), text.data() + done, bytes);
    done += bytes;
    return bytes;
  };
}

}  // namespace offpath::mpi
