// SPDX-License-Identifier: BSD-3-Clause
#include "ops/files/transfer.hpp"

namespace offpath::ops {

graph::Graph expand(files::Transfer transfer, FileWay way, uint64_t bytes, std::shared_ptr<memory::Port> file) {
  graph::Graph graph;
  graph.files.push_back(std::move(file));
  graph.layouts = std::move(transfer.layouts);
  const graph::Place memory = graph::place_of(transfer.memory);
  const graph::Place there{.base = transfer.offset,
                           .offset = transfer.skip,
                           .layout = transfer.layout == 0 ? graph::kClient : transfer.layout - 1,
                           .file = 1};
  if (way == FileWay::write) {
    graph.copy(memory, there, bytes);
  } else {
    graph.copy(there, memory, bytes);
  }
  return graph;
}

}  // namespace offpath::ops
