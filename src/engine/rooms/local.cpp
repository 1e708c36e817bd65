// SPDX-License-Identifier: BSD-3-Clause
// What the worker does inside the node: copies, reductions, and blocks of neighbours.
#include "engine/rooms/local.hpp"

#include "engine/rooms/imports.hpp"

namespace offpath::engine {

using base::Status;

namespace {
constexpr uint64_t kTurnBytes = 1024;  // what a turn costs, in bytes copied: many short ones must not stall the fabric
}

void Local::begin_step(Operation& operation, uint32_t index) {
  if (operation.steps[index].failed) return runner_.finish_step(operation, index, operation.status, 0);
  const Step& step = operation.graph.steps[index];
  const auto work = std::make_shared<LocalWork>(LocalWork{.operation = &operation, .step = index, .bytes = step.bytes});
  if (step.kind == StepKind::compute) {
    if (const Status status = prepare_compute(operation, *step.compute, *work); !status.ok())
      return runner_.finish_step(operation, index, status, 0);
    return waiting_.push_back(work);
  }
  if (step.bytes == 0) return runner_.finish_step(operation, index, {}, 0);
  Status status = operation.resolve(step.source, work->source);
  if (status.ok()) status = operation.resolve(step.target, work->target);
  if (status.ok() && step.kind == StepKind::reduce) {
    const kernels::Reduction& reduction = operation.graph.reduction;
    status = operation.resolve(step.operand, work->operand);
    if (!kernels::supported(reduction) || step.bytes % kernels::element_bytes(reduction.element) != 0) {
      status = Status::error(OFFPATH_ERR_ARGUMENT, "operator %d on element type %d, %llu bytes: not a reduction",
                             reduction.op, reduction.element, static_cast<unsigned long long>(step.bytes));
    }
  }
  if (!status.ok()) return runner_.finish_step(operation, index, status, 0);
  work->in_file = step.source.file != 0 || step.target.file != 0;
  waiting_.push_back(work);
}

void Local::forget(Operation& operation) {
  if (operation.steps_left == 0) return;
  std::erase_if(waiting_, [&](const auto& work) { return work->operation == &operation; });
}

bool Local::work() {
  bool busy = false;
  uint64_t budget = config_.chunk_bytes;
  for (size_t turns = waiting_.size(); turns > 0 && budget > 0 && !waiting_.empty(); --turns) {
    const Work work = std::move(waiting_.front());
    waiting_.pop_front();
    if (work->pull_id != 0 && !imports_.is_wanted(work->pull_id)) continue;  // given up meanwhile
    if (!work->status.ok()) continue;  // ends, or has ended, with its last chunk in flight
    uint64_t bytes;
    if (work->run != nullptr) {
      Operation& operation = *work->operation;
      bytes = compute_block(*work);
      core_.traffic.local_bytes += bytes;
      core_.note_moved(operation, bytes);
      if (work->offset == work->bytes) {
        runner_.finish_step(operation, work->step, {}, 0);
      } else {
        waiting_.push_back(work);
      }
    } else {
      bytes = work->operand.memory != nullptr ? begin_reduce(work) : begin_copy(work);
      if (bytes == 0 && work->in_file) {  // others need not wait for a disk
        waiting_.push_back(work);
        continue;
      }
      if (bytes == 0) {
        waiting_.push_front(work);
        break;
      }
      const bool more = work->status.ok() && work->offset < work->bytes;
      work->stalled = more && work->in_flight >= config_.chunks_in_flight;
      if (more && !work->stalled) waiting_.push_back(work);
    }
    busy = true;
    budget -= std::min(budget, bytes + kTurnBytes);
    runner_.settle();
  }
  return busy;
}

// ---- copies ---------------------------------------------------------------------------------------------------

uint64_t Local::begin_copy(const Work& work) {
  const uint64_t offset = work->offset;
  const memory::Port &source = *work->source.memory, &target = *work->target.memory;
  const uint64_t from = work->source.address + offset, to = work->target.address + offset;
  ChunkPool& chunks = chunks_of(*work);
  const uint64_t most = source.alike(from, std::min<uint64_t>(chunks.chunk_bytes(), work->bytes - offset));
  const uint64_t bytes = target.alike(to, most);
  Operation& operation = *work->operation;
  const uint8_t* there = source.view(from, bytes);
  uint8_t* here = there == nullptr ? target.view(to, bytes) : nullptr;
  Chunk* chunk = there == nullptr && here == nullptr ? chunks.take() : nullptr;
  if (there == nullptr && here == nullptr && chunk == nullptr) return 0;
  work->offset += bytes;
  ++work->in_flight;
  if (there != nullptr) return write_copy(operation, work, offset, bytes, there, nullptr), bytes;
  uint8_t* const data = here != nullptr ? here : chunk->memory.get();
  const memory::Ticket ticket = runner_.next_ticket();
  runner_.when_done(operation, source.read(data, from, bytes, ticket), ticket,
                    [this, work, offset, bytes, data, chunk](Operation* op, const Status& status) {
                      if (op != nullptr && status.ok() && chunk != nullptr) {
                        return write_copy(*op, work, offset, bytes, data, chunk);
                      }
                      if (chunk != nullptr) chunks_of(*work).give_back(chunk);
                      if (op != nullptr) end_chunk(*op, work, bytes, status, Cause::source_fault);
                    });
  return bytes;
}

void Local::write_copy(Operation& operation, const Work& work, uint64_t offset, uint64_t bytes, const uint8_t* data,
                       Chunk* chunk) {
  const memory::Ticket ticket = runner_.next_ticket();
  runner_.when_done(operation, work->target.memory->write(work->target.address + offset, data, bytes, ticket), ticket,
                    [this, work, bytes, chunk](Operation* op, const Status& status) {
                      if (chunk != nullptr) chunks_of(*work).give_back(chunk);
                      if (op != nullptr) end_chunk(*op, work, bytes, status, Cause::target_fault);
                    });
}

// `cause`: of a failure.
void Local::end_chunk(Operation& operation, const Work& work, uint64_t bytes, const Status& status, Cause cause) {
  --work->in_flight;
  work->done += bytes;
  core_.traffic.local_bytes += bytes;
  if (status.ok()) {
    core_.note_moved(operation, bytes);
  } else if (work->status.ok()) {
    work->status = status;
    work->cause = cause;
  }
  const bool all = !work->status.ok() || work->done == work->bytes;
  if (all && work->in_flight == 0) return end_work(operation, *work);
  if (!all && std::exchange(work->stalled, false)) waiting_.push_back(work);
}

void Local::end_work(Operation& operation, const LocalWork& work) {
  if (work.pull_id == 0) return runner_.finish_step(operation, work.step, work.status, work.bytes);
  imports_.end_copy(operation, work);
}

// ---- reductions -----------------------------------------------------------------------------------------------

// Of one chunk.
struct Local::Operands {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  const uint8_t* data[2] = {};  // where the operands can be read, in place or in a chunk; null: to be read yet
  uint8_t* result = nullptr;
  bool in_place = false;  // the result is where it belongs
  Chunk* taken[2] = {};
};

uint64_t Local::begin_reduce(const Work& work) {
  const uint64_t element = kernels::element_bytes(work->operation->graph.reduction.element);
  Operands o{.offset = work->offset};
  o.bytes = std::min<uint64_t>(config_.chunk_bytes / element * element, work->bytes - work->offset);
  for (const Location* place : {&work->target, &work->source, &work->operand}) {
    o.bytes = place->memory->alike(place->address + o.offset, o.bytes);
  }
  o.bytes = std::max(o.bytes / element, uint64_t{1}) * element;
  o.result = work->target.memory->view(work->target.address + o.offset, o.bytes);
  o.in_place = o.result != nullptr;
  if (o.result == nullptr) o.result = work->target.memory->draft(work->target.address + o.offset, o.bytes);
  const Location* places[2] = {&work->source, &work->operand};
  for (size_t i = 0; i < 2; ++i) {
    o.data[i] = places[i]->memory->look(places[i]->address + o.offset, o.bytes);
    // A chunk that one of the operands needs holds the result too.
    const bool needed = o.data[i] == nullptr || (i == 1 && o.result == nullptr && o.taken[0] == nullptr);
    if (!needed) continue;
    o.taken[i] = chunks_.take();
    if (o.taken[i] == nullptr) {
      if (i == 1 && o.taken[0] != nullptr) chunks_.give_back(o.taken[0]);
      return 0;
    }
  }
  if (o.result == nullptr) o.result = (o.taken[0] != nullptr ? o.taken[0] : o.taken[1])->memory.get();
  work->offset += o.bytes;
  ++work->in_flight;
  read_operands(*work->operation, work, o);
  return o.bytes;
}

void Local::read_operands(Operation& operation, const Work& work, const Operands& operands) {
  const size_t i = operands.data[0] == nullptr ? 0 : 1;
  if (operands.data[i] != nullptr) return combine(operation, work, operands);
  Operands next = operands;
  uint8_t* const here = next.taken[i]->memory.get();
  next.data[i] = here;
  const Location& place = i == 0 ? work->source : work->operand;
  const memory::Ticket ticket = runner_.next_ticket();
  runner_.when_done(operation, place.memory->read(here, place.address + next.offset, next.bytes, ticket), ticket,
                    [this, work, next](Operation* op, const Status& status) {
                      if (op != nullptr && status.ok()) return read_operands(*op, work, next);
                      give_back(next);
                      if (op != nullptr) end_chunk(*op, work, next.bytes, status, Cause::source_fault);
                    });
}

void Local::combine(Operation& operation, const Work& work, const Operands& operands) {
  core_.doer.combine(operation.graph.reduction, operands.data[0], operands.data[1], operands.result, operands.bytes);
  const auto end = [this, work, operands](Operation* op, const Status& status) {
    give_back(operands);
    if (op != nullptr) end_chunk(*op, work, operands.bytes, status, Cause::target_fault);
  };
  if (operands.in_place) return end(&operation, {});
  const memory::Ticket ticket = runner_.next_ticket();
  const uint64_t to = work->target.address + operands.offset;
  runner_.when_done(operation, work->target.memory->write(to, operands.result, operands.bytes, ticket), ticket, end);
}

void Local::give_back(const Operands& operands) {
  for (Chunk* chunk : operands.taken) {
    if (chunk != nullptr) chunks_.give_back(chunk);
  }
}

// ---- computations ---------------------------------------------------------------------------------------------

Status Local::prepare_compute(const Operation& operation, const Compute& compute, LocalWork& work) const {
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
  if (status.ok()) work.run = kernels::start_run(*compute.kernel, std::move(views), config_.helpers);
  return status;
}

uint64_t Local::compute_block(LocalWork& work) {
  kernels::Kernel& kernel = *work.operation->graph.steps[work.step].compute->kernel;
  work.run->run_block();
  const uint64_t before = std::exchange(work.offset, work.run->done());
  if (work.offset == work.bytes) kernel.end(work.run->arrays());
  return (work.offset - before) * kernel.block_bytes();
}

}  // namespace offpath::engine
