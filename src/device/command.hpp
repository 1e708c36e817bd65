// SPDX-License-Identifier: BSD-3-Clause
// What host and executor say to each other, the same over both channels. Pure. Every item is a frame: a header of 16
// bytes, then a body of as many bytes as the header says. Little endian whatever the processor; lengths are checked.
//
//   host -> executor     load    images and names lie in the heap; addresses of the entries are written there
//                        launch  runs an entry
//                        copy    between any two addresses of the executor; a bad one is an error, never a crash
//                        reply   answers an upcall; outputs follow (stream), or lie in the segment
//   the same, by a stream
//                        put     writes the bytes that follow into the heap
//                        get     asks for bytes of the heap
//                        discard gives pages of the heap back
//   executor -> host     hello   opens the channel, or refuses it
//                        answer  to load, launch, copy
//                        data    to get; bytes follow
//                        upcall  args and (stream) inputs follow
//                        fate    the last words of an executor whose region crashed or called exit
#pragma once

#include "base/result.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace offpath::device {

inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr size_t kFrameHeaderBytes = 16;
inline constexpr uint32_t kMaxBodyBytes = 1 << 20;  // of one frame; longer data is sent in pieces
inline constexpr uint32_t kMaxArguments = 256;      // of a region
inline constexpr uint32_t kInlineArguments = 12;    // more lie in the heap
inline constexpr uint32_t kTextBytes = 252;         // as offpath_error_t

enum class Kind : uint8_t {
  hello = 1,
  load = 2,
  launch = 3,
  copy = 4,
  put = 5,
  get = 6,
  discard = 7,
  answer = 8,
  data = 9,
  upcall = 10,
  reply = 11,
  fate = 12,
};

struct FrameHeader {
  Kind kind = Kind::hello;
  uint32_t body_bytes = 0;
  uint64_t id = 0;  // chosen by who asks; the answer has the same
};

void encode_header(const FrameHeader& header, std::span<uint8_t, kFrameHeaderBytes> out);
// Errors: unknown kind or version, a body longer than kMaxBodyBytes.
base::Result<FrameHeader> decode_header(std::span<const uint8_t, kFrameHeaderBytes> in);

// A command of the host. What the words mean:
//   load     image address, image bytes, names address, names bytes (each ends with NUL), number of names,
//            result address, number of the device in the program
//   launch   entry, number of arguments, then up to kInlineArguments of them, or the address of all
//   copy     to, from, bytes
//   put      address, bytes
//   get      address, bytes
//   discard  address, bytes
//   reply    status, bytes that follow (segment: whether to say, by an answer without a body, that it was taken)
// `after` (get, 0: none): the id of a launch that must have ended first.
struct Command {
  static constexpr size_t kWords = 14;
  static constexpr size_t kBytes = 8 + 8 * kWords;
  Kind kind = Kind::launch;
  uint64_t id = 0;
  uint64_t after = 0;
  std::array<uint64_t, kWords> words{};
};

void encode(const Command& command, std::span<uint8_t, Command::kBytes> out);
Command decode_command(const FrameHeader& header, std::span<const uint8_t, Command::kBytes> in);

struct Answer {
  static constexpr size_t kBytes = 16 + kTextBytes;
  base::Code status = OFFPATH_OK;
  char text[kTextBytes] = "";  // why not, where status is an error
};

void encode(const Answer& answer, std::span<uint8_t, Answer::kBytes> out);
Answer decode_answer(std::span<const uint8_t, Answer::kBytes> in);

enum class DeviceKind : uint32_t { software = 1, emulated = 2, remote = 3 };
const char* to_string(DeviceKind kind);

// What an executor says of itself; body of hello. With an error status only status and text count.
struct Description {
  static constexpr size_t kBytes = 64 + 64 + kTextBytes;
  uint32_t version = kProtocolVersion;
  base::Code status = OFFPATH_OK;
  DeviceKind kind = DeviceKind::software;
  uint32_t machine = 0;      // ELF e_machine of the images it runs: 62 x86-64, 183 AArch64
  uint32_t cores = 0;        // that regions may use
  uint32_t max_clients = 0;  // of its service
  uint32_t process = 0;
  uint64_t heap_address = 0;  // in the executor's address space
  uint64_t heap_bytes = 0;
  uint64_t segment_bytes = 0;  // of the shared memory that comes with hello; 0: stream channel
  char system[64] = "";        // operating system and release
  char text[kTextBytes] = "";
};

void encode(const Description& description, std::span<uint8_t, Description::kBytes> out);
base::Result<Description> decode_description(std::span<const uint8_t, Description::kBytes> in);

// Why an executor ends; body of fate.
struct Fate {
  static constexpr size_t kBytes = 48;
  static constexpr uint64_t kNoImage = UINT64_MAX;
  int32_t signal = 0;  // 0: a region called exit
  int32_t exit_status = 0;
  uint64_t entry = 0;  // of the region that ran on the thread; 0: none
  uint64_t fault_address = 0;
  uint64_t image = kNoImage;  // number of the image (in order of loading) that the instruction belongs to
  uint64_t offset = 0;        // of the instruction in that image's file addresses; absolute where there is no image
};

void encode(const Fate& fate, std::span<uint8_t, Fate::kBytes> out);
Fate decode_fate(std::span<const uint8_t, Fate::kBytes> in);

}  // namespace offpath::device
