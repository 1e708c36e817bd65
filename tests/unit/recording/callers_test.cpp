// SPDX-License-Identifier: BSD-3-Clause
// A library of wrappers is played by the functions of one section of this program, the program by those of another.
#include "mpi/recording/callers.hpp"

#include <gtest/gtest.h>

#define IN_SECTION(name) __attribute__((noinline, section(#name)))
extern const char __start_played_wrappers[], __stop_played_wrappers[];
extern const char __start_played_program[], __stop_played_program[];

namespace offpath::mpi::recording {
namespace {

void here() { asm volatile("" ::: "memory"); }  // no call before it is the last one of a function

__attribute__((noinline)) const void* handler(const Callers& from) {
  const void* found = from.of(__builtin_return_address(0));
  here();
  return found;
}
IN_SECTION(played_wrappers) const void* inner_wrapper(const Callers& from) {
  const void* found = handler(from);
  here();
  return found;
}
IN_SECTION(played_wrappers) const void* wrapper(const Callers& from) {
  const void* found = inner_wrapper(from);
  here();
  return found;
}
IN_SECTION(played_program) const void* program(const Callers& from, bool through_wrapper) {
  const void* found = through_wrapper ? wrapper(from) : handler(from);
  here();
  return found;
}

bool in_program(const void* address) { return address > __start_played_program && address <= __stop_played_program; }

Callers with_wrappers() {
  Callers from;
  from.add(reinterpret_cast<uintptr_t>(__start_played_wrappers),
           static_cast<size_t>(__stop_played_wrappers - __start_played_wrappers));
  return from;
}

TEST(Callers, ADirectCallerIsTheReturnAddress) { EXPECT_TRUE(in_program(program(with_wrappers(), false))); }

TEST(Callers, TheProgramIsFoundBehindWrappers) {
  EXPECT_TRUE(in_program(program(with_wrappers(), true)));
  const void* without = program(Callers(), true);
  EXPECT_FALSE(in_program(without)) << "this test would not notice";
}

TEST(Callers, MoreWrappersThanThereIsRoomFor) {
  Callers from;
  for (uintptr_t i = 1; i < 100; ++i) from.add(i * 4096, 4096);
  EXPECT_TRUE(from.is_wrapper(reinterpret_cast<const void*>(4096)));
  EXPECT_FALSE(from.is_wrapper(nullptr));
}

TEST(Callers, WhatIsNoWrapperIsNotFound) {
  Callers from;
  from.find_wrappers();  // this program has none
  EXPECT_TRUE(in_program(program(from, false)));
}

}  // namespace
}  // namespace offpath::mpi::recording
