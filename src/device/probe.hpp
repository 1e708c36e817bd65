// SPDX-License-Identifier: BSD-3-Clause
// What a DPU and the way to it are like, asked by its host: who is there, how far its clock is off, how long a message
// and how long a byte takes. Over the connection to a starter, or the standard input and output of `offpathd --probe`.
//
//   there -> here   length, a JSON object about the machine; a starter's answer is that already
//   here -> there   'p': its clock;  'd' and a number: so many bytes;  'u' and a number: takes so many, then its clock
#pragma once

#include "device/line.hpp"

#include <functional>
#include <string>

namespace offpath::device {

// The members of that object; `jobs` of at most `most` are served here.
std::string about_this_machine(uint32_t jobs, uint32_t most);
// Where it is said; false: the other side has gone.
struct ProbeEnds {
  std::function<bool(void* to, size_t bytes)> read;
  std::function<bool(const void* from, size_t bytes)> write;
};
// Answers until the other side has gone, or for half a minute.
void serve_probe(const ProbeEnds& ends);
void serve_probe(const Line& line);
// The same on standard input and output, whose first word is about the machine.
void serve_probe_by_command();

// Everything found out about the DPU that HOST:PORT or exec:COMMAND leads to, as a JSON object. Errors say what is missing.
base::Result<std::string> probe(const std::string& dpu, int timeout_ms);

}  // namespace offpath::device
