// SPDX-License-Identifier: BSD-3-Clause
// What programs send, made: the same bytes each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fields {

// velocity: doubles of a turbulent field, as fft3d transposes; halo: doubles of a solution after some sweeps, as halo3d
// sends; tiles: doubles of a sparse matrix's blocks, as bspmm gets; single: velocity in floats; text; random.
std::vector<std::string> names();
// Empty: there is no such field.
std::vector<std::uint8_t> make(const std::string& name, std::size_t bytes);
// Bytes of its numbers.
unsigned width_of(const std::string& name);

}  // namespace fields
