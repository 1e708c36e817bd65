// SPDX-License-Identifier: BSD-3-Clause
// What a one-sided operation wants, with the data that goes along.
#pragma once

#include "remote/wanted.hpp"

namespace offpath::remote::testing {

struct Body : Wanted {
  std::vector<uint8_t> data;
};

inline std::vector<uint8_t> encode(const Body& body) {
  std::vector<uint8_t> out;
  remote::encode(body, body.data, out);
  return out;
}

}  // namespace offpath::remote::testing
