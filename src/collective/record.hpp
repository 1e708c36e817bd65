// SPDX-License-Identifier: BSD-3-Clause
// How a Collective stands in a session segment: this, then the arrays in the order of their counts. Values are those of
// offpath.h. Checked by golden tests.
#pragma once

#include <cstdint>

namespace offpath::collective {

struct CollectiveRecord {
  uint32_t kind;
  uint32_t algorithm;
  uint32_t root;
  uint32_t op;
  uint32_t element;
  uint32_t send_count;     // memory::Block
  uint32_t recv_count;     // memory::Block
  uint32_t counts_count;   // uint64_t
  uint32_t layouts_count;  // memory::LayoutRecord
  uint32_t ranges_count;   // memory::Range, of all layouts one after the other
};
static_assert(sizeof(CollectiveRecord) == 40);

}  // namespace offpath::collective
