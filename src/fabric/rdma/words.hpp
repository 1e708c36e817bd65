// SPDX-License-Identifier: BSD-3-Clause
// Words: what two endpoints say to each other besides what their users do. They go over TCP, so they come from who knows the
// job's key. Internal to fabric/rdma. Pure.
#pragma once

#include "fabric/rdma/device.hpp"

#include <optional>
#include <vector>

namespace offpath::fabric::rdma {

struct Word {
  enum class Kind : uint8_t {
    hello = 1,    // here is my end of a connection; you are number `you` to me: say so from now on
    ready = 2,    // yours is known here: try to read what lies there
    reached = 3,  // my card has read it
    offer = 4,    // a payload lies there
    taken = 5     // I have it, or do not want it
  };
  Kind kind = Kind::ready;
  uint32_t to = 0;    // who says it, as a number of who hears it; not of a hello
  uint32_t you = 0;   // hello
  PairAddress end;    // hello
  uint64_t id = 0;    // offer, taken
  uint64_t from = 0;  // offer, ready
  uint32_t key = 0, bytes = 0;
  Bytes rest = {};  // hello: the address of the endpoint; offer: the header of the message
};

std::vector<uint8_t> encode(const Word& word);
// Nothing: it is none. `rest` is part of `in`.
std::optional<Word> decode(Bytes in);

}  // namespace offpath::fabric::rdma
