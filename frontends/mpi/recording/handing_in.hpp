// SPDX-License-Identifier: BSD-3-Clause
// How what the ranks recorded gets to where somebody reads it, without a file system that all of them see: over native
// MPI, to the one rank that can keep it. Every function here is collective over the communicator; none throws.
#pragma once

#include "mpi/native/native.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace offpath::mpi {

// The first of the ranks with the largest claim; -1: nobody claims to be able to keep anything (all claims are 0).
int find_keeper(MPI_Comm comm, uint32_t claim);

// Fills the buffer with what comes next and returns its length; less than there is room for: that was all.
using Source = std::function<size_t(std::span<std::byte>)>;
// What came from a rank, piece by piece and rank by rank; at least one piece each, which may be empty.
using Sink = std::function<void(int rank, std::span<const std::byte>)>;

// Hands each rank's bytes to the keeper, also its own. Blocks until the keeper has taken this rank's turn; `sink` is
// only called there.
void hand_in(MPI_Comm comm, int keeper, const Source& source, const Sink& sink);

// A source of a text, which must stay.
Source source_of(const std::string& text);

}  // namespace offpath::mpi
