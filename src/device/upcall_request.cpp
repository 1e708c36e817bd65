// SPDX-License-Identifier: BSD-3-Clause
#include "device/upcall_request.hpp"

#include <atomic>
#include <new>

namespace offpath::device {

using base::Result;
using base::Status;

UpcallRequest::UpcallRequest(uint64_t id, UpcallFrame frame, std::shared_ptr<Channel> port)
    : offpath_upcall_request_t{}, id_(id), frame_(std::move(frame)), channel_(std::move(port)) {}

void UpcallRequest::publish() {
  code = frame_.code;
  args = frame_.args.data();
  args_bytes = static_cast<uint32_t>(frame_.args.size());
  inputs = input_spans_.data();
  input_count = static_cast<uint32_t>(input_spans_.size());
  outputs = output_spans_.data();
  output_count = static_cast<uint32_t>(output_spans_.size());
  answer = answer_it;
  view = view_it;
}

Result<std::unique_ptr<UpcallRequest>> UpcallRequest::viewed(uint64_t id, UpcallFrame frame,
                                                             std::shared_ptr<Channel> channel) {
  std::unique_ptr<UpcallRequest> request(new UpcallRequest(id, std::move(frame), std::move(channel)));
  const auto view_all = [&](const std::vector<uint64_t>& words, std::vector<offpath_span_t>& spans) {
    for (size_t i = 0; i + 1 < words.size(); i += 2) {
      void* data = words[i + 1] == 0 ? nullptr : request->channel_->view(words[i], words[i + 1]);
      if (data == nullptr && words[i + 1] != 0) return false;
      spans.push_back({data, words[i + 1]});
    }
    return true;
  };
  if (!view_all(request->frame_.inputs, request->input_spans_) ||
      !view_all(request->frame_.outputs, request->output_spans_)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "an upcall names memory outside the segment");
  }
  request->publish();
  return request;
}

std::unique_ptr<UpcallRequest> UpcallRequest::staged(uint64_t id, UpcallFrame frame, std::shared_ptr<Channel> channel) {
  std::unique_ptr<UpcallRequest> request(new UpcallRequest(id, std::move(frame), std::move(channel)));
  const auto stage_all = [&](const std::vector<uint64_t>& words, std::vector<offpath_span_t>& spans) {
    for (size_t i = 0; i + 1 < words.size(); i += 2) {
      request->buffers_.emplace_back(new (std::nothrow) uint8_t[words[i + 1] + 1]());
      if (request->buffers_.back() == nullptr) return false;
      spans.push_back({request->buffers_.back().get(), words[i + 1]});
    }
    return true;
  };
  if (!stage_all(request->frame_.inputs, request->input_spans_) ||
      !stage_all(request->frame_.outputs, request->output_spans_)) {
    return nullptr;
  }
  request->publish();
  return request;
}

void UpcallRequest::hand_over(std::unique_ptr<UpcallRequest> request, const Listener& listener,
                              uint64_t channel_number) {
  request->channel = channel_number;
  UpcallRequest* raw = request.release();
  if (listener.serve_upcall != nullptr) {
    listener.serve_upcall(raw);
  } else {
    answer_it(raw, OFFPATH_ERR_STATE);
  }
}

void UpcallRequest::answer_it(offpath_upcall_request_t* request, int32_t status) {
  const std::unique_ptr<UpcallRequest> self(static_cast<UpcallRequest*>(request));
  self->channel_->reply(self->id_, status, self->output_spans_);
}

void* UpcallRequest::view_it(offpath_upcall_request_t* request, uint64_t address, uint64_t bytes) {
  return static_cast<UpcallRequest*>(request)->channel_->view(address, bytes);
}

uint64_t next_channel_number() {
  static std::atomic<uint64_t> next{1};
  return next++;
}

}  // namespace offpath::device
