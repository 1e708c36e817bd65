// SPDX-License-Identifier: BSD-3-Clause
// What the user calls a region, from what the compiler calls it. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace offpath::device {

// "__omp_offloading_<device>_<file>_<function>_l<line>" becomes "line <line> of <function>"; other names stay.
std::string region_name(const std::string& entry);
// FILE:LINE of an address in an ELF image, from its DWARF; empty where there is none, or no libdw on this machine.
std::string source_line(std::span<const uint8_t> image, uint64_t address);
// FILE of a symbol, likewise.
std::string source_file(std::span<const uint8_t> image, const std::string& symbol);

}  // namespace offpath::device
