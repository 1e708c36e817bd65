// SPDX-License-Identifier: BSD-3-Clause
// Transfers between a client's memory and a file: one step, whose other place is the file. Pure.
#pragma once

#include "files/transfer.hpp"
#include "graph/graph.hpp"

namespace offpath::ops {

enum class FileWay : uint8_t { write, read };

// Of its first `bytes` bytes. `file`: addresses are offsets. Precondition: check() passed.
graph::Graph expand(files::Transfer transfer, FileWay way, uint64_t bytes, std::shared_ptr<memory::Port> file);

}  // namespace offpath::ops
