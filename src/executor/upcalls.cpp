// SPDX-License-Identifier: BSD-3-Clause
#include "executor/upcalls.hpp"

#include "device/futex.hpp"

#include <sys/uio.h>

#include <cstring>

namespace offpath::executor {

// The address under which the host finds the span: its own, or that of room in the staging area. 0: no room.
uint64_t Upcalls::visible(const offpath_span_t& span, Call& call, Use use) {
  const auto address = reinterpret_cast<uint64_t>(span.data);
  if (!endpoint_->shares_memory() || span.bytes == 0 || endpoint_->in_heap(address, span.bytes)) {
    if (use == Use::output) call.staged_outputs.push_back(nullptr);
    return address == 0 ? 1 : address;
  }
  void* room = endpoint_->stage(span.bytes);
  if (room == nullptr) return 0;
  call.staged.push_back(room);
  if (use == Use::input) {
    memcpy(room, span.data, span.bytes);
  } else {
    call.staged_outputs.push_back(room);
  }
  return reinterpret_cast<uint64_t>(room);
}

uint64_t Upcalls::post(uint32_t code, std::span<const uint8_t> args, std::span<const offpath_span_t> inputs,
                       std::span<const offpath_span_t> outputs) {
  if (endpoint_ == nullptr || args.size() > OFFPATH_UPCALL_MAX_ARGS_BYTES ||
      inputs.size() + outputs.size() > OFFPATH_UPCALL_MAX_SPANS) {
    return 0;
  }
  uint64_t total = 0;
  const auto call = std::make_shared<Call>();
  device::UpcallFrame frame;
  frame.code = code;
  frame.args.assign(args.begin(), args.end());
  std::vector<iovec> parts;
  bool room = true;
  const auto add = [&](const offpath_span_t& span, std::vector<uint64_t>& words, Use use) {
    total += std::min(span.bytes, device::kMaxUpcallBytes + 1);
    const uint64_t address = total > device::kMaxUpcallBytes || !room ? 0 : visible(span, *call, use);
    room = room && address != 0;
    words.insert(words.end(), {address, span.bytes});
  };
  for (const offpath_span_t& span : inputs) {
    add(span, frame.inputs, Use::input);
    if (!endpoint_->shares_memory() && span.bytes > 0) parts.push_back({span.data, span.bytes});
  }
  for (const offpath_span_t& span : outputs) add(span, frame.outputs, Use::output);
  call->outputs.assign(outputs.begin(), outputs.end());
  uint64_t id = 0;
  if (room) {
    const std::lock_guard lock(mutex_);
    id = next_++;
    calls_.emplace(id, call);
  }
  if (id != 0 && !endpoint_->send_upcall(id, frame, parts).ok()) {
    const std::lock_guard lock(mutex_);
    calls_.erase(id);
    id = 0;
  }
  if (id == 0) {
    for (void* taken : call->staged) endpoint_->unstage(taken);
  }
  return id;
}

std::shared_ptr<Upcalls::Call> Upcalls::find(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : found->second;
}

int32_t Upcalls::finish(uint64_t id, Call& call) {
  for (size_t i = 0; i < call.staged_outputs.size(); ++i) {
    if (call.staged_outputs[i] != nullptr) memcpy(call.outputs[i].data, call.staged_outputs[i], call.outputs[i].bytes);
  }
  for (void* room : call.staged) endpoint_->unstage(room);
  const std::lock_guard lock(mutex_);
  calls_.erase(id);
  return call.status;
}

bool Upcalls::test(uint64_t id, int32_t& status) {
  const auto call = find(id);
  if (call == nullptr) {
    status = OFFPATH_ERR_ARGUMENT;
    return true;
  }
  if (call->done == 0) return false;
  status = finish(id, *call);
  return true;
}

int32_t Upcalls::wait(uint64_t id) {
  const auto call = find(id);
  if (call == nullptr) return OFFPATH_ERR_ARGUMENT;
  while (call->done == 0) device::futex_wait(call->done, 0U);
  return finish(id, *call);
}

void Upcalls::answered(uint64_t id, int32_t status) {
  const auto call = find(id);
  if (call == nullptr) return;
  call->status = status;
  call->done = 1;
  device::futex_wake(call->done);
}

std::span<const offpath_span_t> Upcalls::outputs_of(uint64_t upcall) {
  const auto call = find(upcall);  // stays alive: nobody finishes it before answered()
  return call == nullptr ? std::span<const offpath_span_t>() : call->outputs;
}

}  // namespace offpath::executor
