// SPDX-License-Identifier: BSD-3-Clause
// Code for devices is found in a file by what it is, wherever it lies, and what only looks like it is left out.
#include "device/device_code.hpp"

#include <gtest/gtest.h>

#include <elf.h>

#include <cstring>
#include <random>

namespace offpath::device {
namespace {

using Bytes = std::vector<uint8_t>;

struct Object {
  Elf64_Ehdr head{};
  Elf64_Phdr parts[2]{};

  explicit Object(uint16_t machine) {
    const unsigned char begin[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
    memcpy(head.e_ident, begin, sizeof(begin));
    head.e_type = ET_DYN;
    head.e_machine = machine;
    head.e_phoff = sizeof(head);
    head.e_phnum = 2;
    head.e_phentsize = sizeof(Elf64_Phdr);
    parts[0].p_type = PT_LOAD;
    parts[0].p_filesz = sizeof(*this) + 100;
    parts[1].p_type = PT_DYNAMIC;
  }
  Bytes bytes(uint8_t filling = 0) const {
    Bytes out(sizeof(*this) + 100, filling);
    memcpy(out.data(), this, sizeof(*this));
    return out;
  }
};

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

std::vector<Bytes> found(const Bytes& file, uint32_t machine) {
  std::vector<Bytes> out;
  for (const auto one : device_code_in(file, machine)) out.emplace_back(one.begin(), one.end());
  return out;
}

TEST(DeviceCode, IsFoundForEachMachineAndNotTheFileItself) {
  const Bytes program = Object(EM_X86_64).bytes(1), near = Object(EM_X86_64).bytes(2),
              arm = Object(EM_AARCH64).bytes(3), second = Object(EM_X86_64).bytes(4), between(13, 7);
  const Bytes file = program + between + near + arm + between + second + between;
  EXPECT_EQ(found(file, EM_X86_64), (std::vector<Bytes>{near, second}));
  EXPECT_EQ(found(file, EM_AARCH64), (std::vector<Bytes>{arm}));
  EXPECT_TRUE(found(file, EM_PPC64).empty());
  EXPECT_TRUE(found(program, EM_X86_64).empty());
  EXPECT_TRUE(found({}, EM_X86_64).empty());
  EXPECT_TRUE(found(Bytes(5, ELFMAG0), EM_X86_64).empty());
}

TEST(DeviceCode, WhatIsNotWholeIsLeftOut) {
  const auto is_found = [](const Object& object) { return !found(Bytes(1) + object.bytes(), EM_X86_64).empty(); };
  Object object(EM_X86_64);
  EXPECT_TRUE(is_found(object));
  object.head.e_type = ET_EXEC;
  EXPECT_FALSE(is_found(object));
  object = Object(EM_X86_64);
  object.parts[1].p_type = PT_NOTE;
  EXPECT_FALSE(is_found(object));
  object = Object(EM_X86_64);
  object.parts[0].p_filesz += 2;
  EXPECT_FALSE(is_found(object));
  object.parts[0].p_filesz = UINT64_MAX;
  object.parts[0].p_offset = 8;
  EXPECT_FALSE(is_found(object));
  object = Object(EM_X86_64);
  object.head.e_phoff = UINT64_MAX - 8;
  EXPECT_FALSE(is_found(object));
  object = Object(EM_X86_64);
  object.head.e_phnum = 0xffff;
  EXPECT_FALSE(is_found(object));
  object = Object(EM_X86_64);
  object.head.e_shoff = UINT64_MAX - 8;  // nobody needs them
  object.head.e_shnum = 9;
  object.head.e_shentsize = 64;
  EXPECT_TRUE(is_found(object));
  EXPECT_EQ(found(Bytes(1) + object.bytes(), EM_X86_64)[0], object.bytes());
}

TEST(DeviceCode, DamagedFilesDoNoHarm) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    Bytes file = Bytes(1) + Object(EM_X86_64).bytes() + Object(EM_X86_64).bytes();
    file.resize(file.size() - random() % 300);
    for (uint64_t i = random() % 4; i > 0; --i) file[random() % file.size()] = static_cast<uint8_t>(random());
    for (const auto one : device_code_in(file, EM_X86_64)) {
      EXPECT_GE(one.data(), file.data() + 1);
      EXPECT_LE(one.data() + one.size(), file.data() + file.size());
    }
  }
}

TEST(DeviceCode, AFileThatIsNotThereHasNoBytes) {
  EXPECT_FALSE(FileBytes::of("/nowhere/at/all").has_value());
  EXPECT_FALSE(FileBytes::of("/tmp").has_value());
  EXPECT_TRUE(FileBytes::of("/proc/self/maps")->get().empty());  // its length is not known
  const auto own = FileBytes::of("/proc/self/exe");
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(memcmp(own->get().data(), ELFMAG, SELFMAG), 0);
}

}  // namespace
}  // namespace offpath::device
