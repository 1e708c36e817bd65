// SPDX-License-Identifier: BSD-3-Clause
// What the worker does inside the node: copies, reductions, and blocks of neighbours.
#include "engine/state.hpp"

namespace offpath::engine {

using base::Status;

namespace {
constexpr uint64_t kTurnBytes = 1024;  // what a turn costs, in bytes copied: many short ones must not stall the fabric
}

bool Engine::State::move_local() {
  bool busy = false;
  uint64_t budget = config.chunk_bytes;
  for (size_t turns = local.size(); turns > 0 && budget > 0 && !local.empty(); --turns) {
    LocalWork work = std::move(local.front());
    local.pop_front();
    if (work.pull_id != 0 && !pulls.contains(work.pull_id)) continue;  // given up meanwhile
    Status status;
    Cause cause = Cause::complete;
    const bool reduces = work.operand.memory != nullptr;
    const bool computes = work.run != nullptr;
    const uint64_t bytes = computes  ? compute_block(work)
                           : reduces ? reduce_chunk(work, status)
                                     : copy_chunk(work, status, cause);
    if (bytes == 0 && !computes) {
      local.push_front(std::move(work));
      break;
    }
    busy = true;
    traffic.local_bytes += bytes;
    if (status.ok()) note_moved(work.pull_id != 0 ? *pulls.at(work.pull_id).operation : *work.operation, bytes);
    budget -= std::min(budget, bytes + kTurnBytes);
    if (!computes) work.offset += bytes;
    if (status.ok() && work.offset < work.bytes) {
      local.push_back(std::move(work));
    } else if (work.pull_id != 0) {
      pulls.at(work.pull_id).placed = work.offset;
      finish_pull(work.pull_id, status, cause);
    } else {
      finish_step(*work.operation, work.step, status, computes ? 0 : work.bytes);
    }
    settle();
  }
  return busy;
}

uint64_t Engine::State::copy_chunk(const LocalWork& work, Status& status, Cause& cause) {
  const uint64_t bytes = std::min<uint64_t>(config.chunk_bytes, work.bytes - work.offset);
  const memory::Memory& source = *work.source.memory;
  memory::Memory& target = *work.target.memory;
  const uint64_t from = work.source.address + work.offset;
  const uint64_t to = work.target.address + work.offset;
  const auto read = [&](uint8_t* buffer) {
    status = source.read(buffer, from, bytes);
    cause = status.ok() ? Cause::complete : Cause::source_fault;
    return status.ok();
  };
  const auto write = [&](const uint8_t* buffer) {
    status = target.write(to, buffer, bytes);
    if (!status.ok()) cause = Cause::target_fault;
  };
  if (const uint8_t* there = source.view(from, bytes); there != nullptr) {
    write(there);
  } else if (uint8_t* here = target.view(to, bytes); here != nullptr) {
    read(here);
  } else if (Chunk* chunk = take_chunk(); chunk != nullptr) {
    if (read(chunk->memory.get())) write(chunk->memory.get());
    give_back(chunk);
  } else {
    return 0;
  }
  return bytes;
}

Status Engine::State::prepare_compute(const Operation& operation, const Compute& compute, LocalWork& work) const {
  work.bytes = compute.kernel->blocks();
  std::vector<uint8_t*> views;
  for (const Compute::Array& array : compute.arrays) {
    Location location;
    if (const Status status = operation.resolve(array.place, location); !status.ok()) return status;
    views.push_back(location.memory->view(location.address, array.bytes));
    if (views.back() == nullptr) {
      return Status::error(OFFPATH_ERR_MEMORY_FAULT,
                           "%llu bytes at %#llx are no shared memory (the service computes in place). Use memory of "
                           "offpath_memory_allocate",
                           static_cast<unsigned long long>(array.bytes),
                           static_cast<unsigned long long>(location.address));
    }
    work.arrays.push_back(std::move(location));
  }
  const Status status = compute.kernel->begin(views);
  if (status.ok()) work.run = kernels::start_run(*compute.kernel, std::move(views), config.helpers);
  return status;
}

uint64_t Engine::State::compute_block(LocalWork& work) {
  kernels::Kernel& kernel = *work.operation->graph.steps[work.step].compute->kernel;
  work.run->run_block();
  const uint64_t before = std::exchange(work.offset, work.run->done());
  if (work.offset == work.bytes) kernel.end(work.run->arrays());
  return (work.offset - before) * kernel.block_bytes();
}

uint64_t Engine::State::reduce_chunk(const LocalWork& work, Status& status) {
  const kernels::Reduction& reduction = work.operation->graph.reduction;
  const uint64_t element = kernels::element_bytes(reduction.element);
  const uint64_t bytes = std::min<uint64_t>(config.chunk_bytes / element * element, work.bytes - work.offset);
  uint8_t* result = work.target.memory->view(work.target.address + work.offset, bytes);
  const Location* operands[2] = {&work.source, &work.operand};
  uint8_t* data[2];  // where the operands can be read: in place, or in a chunk
  Chunk* taken[2] = {nullptr, nullptr};
  bool enough = true;
  for (size_t i = 0; i < 2; ++i) {
    data[i] = operands[i]->memory->view(operands[i]->address + work.offset, bytes);
    // A chunk that one of the operands needs holds the result too.
    const bool needed = data[i] == nullptr || (i == 1 && result == nullptr && taken[0] == nullptr);
    if (needed) enough = enough && (taken[i] = take_chunk()) != nullptr;
  }
  for (size_t i = 0; enough && status.ok() && i < 2; ++i) {
    if (data[i] != nullptr) continue;
    data[i] = taken[i]->memory.get();
    status = operands[i]->memory->read(data[i], operands[i]->address + work.offset, bytes);
  }
  if (enough && status.ok()) {
    uint8_t* combined = result != nullptr ? result : (taken[0] != nullptr ? taken[0] : taken[1])->memory.get();
    kernels::combine(reduction, data[0], data[1], combined, bytes);
    if (result == nullptr) status = work.target.memory->write(work.target.address + work.offset, combined, bytes);
  }
  for (Chunk* chunk : taken) {
    if (chunk != nullptr) give_back(chunk);
  }
  return enough ? bytes : 0;
}

}  // namespace offpath::engine
