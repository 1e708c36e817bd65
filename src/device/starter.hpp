// SPDX-License-Identifier: BSD-3-Clause
// A DPU's starter: offpathd --listen. It starts or finds the service of a job there, and answers with the line that
// `offpathd --for-agents` prints (introduction.hpp: who asks, and that nobody else hears it).
//
//   HOST:PORT[/workers=N][/executors=N][/cores=LIST][/functions=FOLDER][/share][/arch=ARCH]     as OFFPATH_DPU names it;
//   LIST has + between its parts: 2+4-7; FOLDER has %2F for each /
//
//   client -> starter   StartRequest      starter -> client   Answer
#pragma once

#include "device/introduction.hpp"

#include <array>
#include <string>
#include <vector>

namespace offpath::device {

struct Wishes {
  uint32_t workers = 0;                // 0: whatever is usual there
  uint32_t executors = 0;              // of each worker's tasks; 0 as above
  std::string cores;                   // with commas; empty: those that the starter has
  std::string functions;               // folder of tasks' shared objects there; empty: none
  uint32_t machine = kMachineAArch64;  // for target regions
  bool shares_cores = false;           // with an application there
};

struct StarterAddress {
  DeviceEntry entry;
  Wishes wishes;
};
base::Result<StarterAddress> parse_starter(const std::string& text);

// Of a list as OFFPATH_DPU is one, those that run target regions, too: all that have a starter.
base::Result<std::vector<DeviceEntry>> devices_of(const std::string& dpus);
// The line of JSON.
base::Result<std::string> ask_starter(const std::string& address, const uint8_t (&token)[OFFPATH_TOKEN_BYTES],
                                      int timeout_ms);

// What is said, as bytes. Pure.
struct StartRequest {
  std::array<uint8_t, OFFPATH_TOKEN_BYTES> token{};
  Wishes wishes;
};
std::string encode_request(const StartRequest& request);
base::Result<StartRequest> decode_request(const std::string& text);
std::string encode_answer(const base::Result<std::string>& answer);
base::Result<std::string> decode_answer(const std::string& text);

}  // namespace offpath::device
