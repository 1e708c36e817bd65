// SPDX-License-Identifier: BSD-3-Clause
// The bytes of frames, spelled out: they must be the same on every processor.
#include "device/command.hpp"
#include "device/upcall_frame.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace offpath::device {
namespace {

TEST(DeviceFrames, HeaderBytes) {
  std::array<uint8_t, kFrameHeaderBytes> bytes;
  encode_header({Kind::launch, 0x12345, 0x1122334455667788}, bytes);
  const std::array<uint8_t, kFrameHeaderBytes> expected{1,    3,    0,    0,    0x45, 0x23, 0x01, 0x00,
                                                        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
  EXPECT_EQ(bytes, expected);
  const auto header = decode_header(bytes);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->kind, Kind::launch);
  EXPECT_EQ(header->body_bytes, 0x12345U);
}

TEST(DeviceFrames, BadHeadersAreRefused) {
  std::array<uint8_t, kFrameHeaderBytes> good;
  encode_header({Kind::launch, 10, 1}, good);
  for (const auto& [at, value] : {std::pair{0, 2}, {1, 0}, {1, 13}, {1, 255}, {6, 0x11}, {7, 0xff}}) {
    auto bad = good;
    bad[static_cast<size_t>(at)] = static_cast<uint8_t>(value);
    EXPECT_FALSE(decode_header(bad).ok()) << at << " " << value;
  }
}

TEST(DeviceFrames, CommandBytes) {
  Command command;
  command.kind = Kind::get;
  command.id = 5;
  command.after = 0x0102;
  command.words[0] = 0xA1;
  command.words[13] = uint64_t{0xB2} << 56;
  std::array<uint8_t, Command::kBytes> bytes;
  encode(command, bytes);
  EXPECT_EQ(bytes[0], 0x02);
  EXPECT_EQ(bytes[1], 0x01);
  EXPECT_EQ(bytes[8], 0xA1);
  EXPECT_EQ(bytes[119], 0xB2);
  const Command again = decode_command({Kind::get, Command::kBytes, 5}, bytes);
  EXPECT_EQ(again.after, command.after);
  EXPECT_EQ(again.words, command.words);
}

TEST(DeviceFrames, DescriptionBytesAndChecks) {
  Description description;
  description.kind = DeviceKind::emulated;
  description.machine = 183;
  description.cores = 8;
  description.heap_address = 0x7f0000000000;
  description.heap_bytes = 1 << 30;
  snprintf(description.system, sizeof(description.system), "Linux 6.1");
  std::array<uint8_t, Description::kBytes> bytes;
  encode(description, bytes);
  EXPECT_EQ(bytes[8], 2);
  EXPECT_EQ(bytes[12], 183);
  EXPECT_EQ(bytes[32 + 5], 0x7f);
  EXPECT_EQ(bytes[40 + 3], 0x40);
  EXPECT_EQ(memcmp(bytes.data() + 64, "Linux", 5), 0);
  const auto again = decode_description(bytes);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->machine, 183U);
  EXPECT_EQ(again->heap_bytes, description.heap_bytes);
  auto hostile = bytes;
  hostile[40 + 7] = 0xff;  // a heap larger than any
  EXPECT_FALSE(decode_description(hostile).ok());
  hostile = bytes;
  hostile[8] = 9;  // no kind
  EXPECT_FALSE(decode_description(hostile).ok());
  description.status = OFFPATH_ERR_NO_SERVICE;  // a refusal
  encode(description, bytes);
  EXPECT_EQ(decode_description(bytes).status().code(), OFFPATH_ERR_NO_SERVICE);
  bytes[4] = static_cast<uint8_t>(-50);  // no status of ours
  EXPECT_EQ(decode_description(bytes).status().code(), OFFPATH_ERR_INTERNAL);
}

TEST(DeviceFrames, TextsAreEndedAndPrintable) {
  std::array<uint8_t, Answer::kBytes> bytes;
  bytes.fill(0x1b);
  const Answer answer = decode_answer(bytes);
  EXPECT_LT(strlen(answer.text), sizeof(answer.text));
  EXPECT_EQ(strchr(answer.text, 0x1b), nullptr);
  EXPECT_NE(answer.status, OFFPATH_OK);
}

TEST(DeviceFrames, UpcallsOfAnyBytesAreRefusedOrSane) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  UpcallFrame frame;
  frame.code = 7;
  frame.args = {1, 2, 3};
  frame.inputs = {0x1000, 16};
  frame.outputs = {0x2000, 32, 0x3000, 8};
  const auto good = encode(frame);
  const auto again = decode_upcall(good);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->args, frame.args);
  EXPECT_EQ(again->inputs, frame.inputs);
  EXPECT_EQ(again->outputs, frame.outputs);
  for (int i = 0; i < 20000; ++i) {
    auto bytes = good;
    bytes.resize(random() % 200);
    for (int changes = 0; changes < 3 && !bytes.empty(); ++changes)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    const auto decoded = decode_upcall(bytes);
    if (!decoded.ok()) continue;
    EXPECT_LE(decoded->args.size(), size_t{OFFPATH_UPCALL_MAX_ARGS_BYTES});
    EXPECT_LE(decoded->inputs.size(), size_t{2 * OFFPATH_UPCALL_MAX_SPANS});
  }
}

}  // namespace
}  // namespace offpath::device
