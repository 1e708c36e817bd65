// SPDX-License-Identifier: BSD-3-Clause
#include "executor.hpp"

#include "offpath/offpath.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace {

constexpr uint64_t kChannel = 77;

struct Underway : offpath_upcall_request {
  std::vector<uint64_t> copy;
  std::vector<offpath_span_t> in, out, back;  // back: where staged outputs go
  std::deque<std::vector<char>> staged;
  bool answered = false;
  bool served = false;  // the proxy has seen it
  int32_t status = 0;
};

std::mutex mutex;
std::condition_variable changed;
std::map<uint64_t, std::unique_ptr<Underway>> underway;
uint64_t last_id = 0;
std::atomic<bool> staging{false};

void answer(offpath_upcall_request_t* request, int32_t status) {
  auto* const own = static_cast<Underway*>(request);
  std::lock_guard lock(mutex);
  for (size_t i = 0; i < own->back.size(); ++i) memcpy(own->back[i].data, own->out[i].data, own->out[i].bytes);
  own->answered = true;
  own->status = status;
  changed.notify_all();
}

void* view(offpath_upcall_request_t*, uint64_t address, uint64_t) {
  return staging ? nullptr : reinterpret_cast<void*>(address);
}

// One at a time, as the channel's thread does it.
void serve(Underway* request) {
  using Serve = void (*)(offpath_upcall_request_t*);
  static const auto function = reinterpret_cast<Serve>(dlsym(RTLD_DEFAULT, "offpath_serve_upcall"));
  static std::mutex channel;
  std::lock_guard lock(channel);
  function(request);
}

}  // namespace

void use_staging(bool staged) { staging = staged; }

void lose_channel() {
  using Lost = void (*)(uint64_t);
  reinterpret_cast<Lost>(dlsym(RTLD_DEFAULT, "offpath_upcall_channel_lost"))(kChannel);
}

int unanswered() {
  std::lock_guard lock(mutex);
  int count = 0;
  for (const auto& [id, request] : underway) count += request->served && !request->answered ? 1 : 0;
  return count;
}

extern "C" {

uint64_t offpath_upcall_post(uint32_t code, const void* args, uint32_t args_bytes, const offpath_span_t* inputs,
                             uint32_t input_count, const offpath_span_t* outputs, uint32_t output_count) {
  auto made = std::make_unique<Underway>();
  Underway* const request = made.get();
  request->copy.resize(args_bytes / 8 + 1);
  memcpy(request->copy.data(), args, args_bytes);
  request->in.assign(inputs, inputs + input_count);
  request->out.assign(outputs, outputs + output_count);
  if (staging) {
    for (auto& span : request->in) {
      const auto* const from = static_cast<char*>(span.data);
      span.data = request->staged.emplace_back(from, from + span.bytes).data();
    }
    request->back = request->out;
    for (auto& span : request->out) span.data = request->staged.emplace_back(span.bytes, '\x5a').data();
  }
  request->code = code;
  request->channel = kChannel;
  request->args = request->copy.data();
  request->args_bytes = args_bytes;
  request->input_count = input_count;
  request->output_count = output_count;
  request->inputs = request->in.data();
  request->outputs = request->out.data();
  request->answer = &answer;
  request->view = &view;
  uint64_t id = 0;
  {
    std::lock_guard lock(mutex);
    id = ++last_id;
    underway.emplace(id, std::move(made));
  }
  serve(request);
  std::lock_guard lock(mutex);
  request->served = true;
  return id;
}

int offpath_upcall_test(uint64_t id, int32_t* status) {
  std::lock_guard lock(mutex);
  const auto entry = underway.find(id);
  if (!entry->second->answered) return 0;
  *status = entry->second->status;
  underway.erase(entry);
  return 1;
}

int32_t offpath_upcall_wait(uint64_t id) {
  std::unique_lock lock(mutex);
  const auto entry = underway.find(id);
  changed.wait(lock, [&] { return entry->second->answered; });
  const int32_t status = entry->second->status;
  underway.erase(entry);
  return status;
}

}  // extern "C"
