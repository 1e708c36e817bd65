// SPDX-License-Identifier: BSD-3-Clause
// UpcallRequest: one upcall at the host, from its frame to its answer. Frees itself when answered.
#pragma once

#include "device/channel.hpp"
#include "device/upcall_frame.hpp"

#include <memory>
#include <vector>

namespace offpath::device {

class UpcallRequest : public offpath_upcall_request_t {
 public:
  // Spans are viewed in the channel's memory. Error: one of them is none of it.
  static base::Result<std::unique_ptr<UpcallRequest>> viewed(uint64_t id, UpcallFrame frame,
                                                             std::shared_ptr<Channel> channel);
  // Spans get buffers of their own; the caller fills those of the inputs.
  static std::unique_ptr<UpcallRequest> staged(uint64_t id, UpcallFrame frame, std::shared_ptr<Channel> channel);

  // Gives the request to whoever serves upcalls, or refuses it.
  static void hand_over(std::unique_ptr<UpcallRequest> request, const Listener& listener, uint64_t channel_number);
  const std::vector<offpath_span_t>& input_spans() const { return input_spans_; }

 private:
  UpcallRequest(uint64_t id, UpcallFrame frame, std::shared_ptr<Channel> channel);
  void publish();
  static void answer_it(offpath_upcall_request_t* request, int32_t status);
  static void* view_it(offpath_upcall_request_t* request, uint64_t address, uint64_t bytes);

  uint64_t id_;
  UpcallFrame frame_;
  std::shared_ptr<Channel> channel_;
  std::vector<offpath_span_t> input_spans_;
  std::vector<offpath_span_t> output_spans_;
  std::vector<std::unique_ptr<uint8_t[]>> buffers_;
};

// Different for every channel of this process.
uint64_t next_channel_number();

}  // namespace offpath::device
