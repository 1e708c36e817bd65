// SPDX-License-Identifier: BSD-3-Clause
// Policy: a table that says whether an operation runs on the host (native MPI) or on the DPU (the service).
//
// Rows are looked at from the last to the first and the first that matches wins, so an override is simply appended.
// What no row matches stays on the host. The table is a value without hidden state: the same text gives the same
// answers everywhere, which is what makes all ranks of a team decide alike. Irregular collectives (v and w forms)
// have no size that all ranks see alike; they are decided per team and their rows carry no range.
//
// Threads: const member functions from any thread; apply() by one thread while nobody else reads.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace offpath::policy {

enum class Path : uint8_t { host, dpu };

// Adding a collective: one name here, one row in kCollectives of policy.cpp.
enum class Collective : uint8_t { ialltoall, ialltoallv };

inline constexpr uint64_t kUnlimitedBytes = UINT64_MAX;

struct Row {
  Collective collective;
  uint64_t from_bytes;  // first size the row is for (bytes per peer)
  uint64_t to_bytes;    // first size it is no longer for; kUnlimitedBytes: none
  uint32_t min_nodes;   // nodes the team must at least live on
  Path path;
};

class Table {
 public:
  // No rows: everything stays on the host.
  Table() = default;
  // The rows that ship with Offpath, from measurement.
  static Table measured();

  // Appends the rows of a text such as "ialltoall:512K-inf:dpu,ialltoallv:host". A row is
  //   collective[:from-to][:nodes=N]:host|dpu      collective may be * ; sizes take K, M, G (powers of 1024), inf
  // Without a range all sizes, without nodes teams of any number of nodes.
  // On error nothing is changed and the text says what is wrong with which row.
  base::Status apply(std::string_view text);

  // `bytes` is ignored for irregular collectives.
  Path choose(Collective collective, uint64_t bytes, uint32_t nodes) const;
  // False: nothing is ever offloaded for a team on that many nodes.
  bool offloads(uint32_t nodes) const;

  const std::vector<Row>& rows() const { return rows_; }
  // One row per line, in the form that apply() reads.
  std::string print() const;

 private:
  std::vector<Row> rows_;
};

const char* collective_name(Collective collective);
// True for the v and w forms.
bool is_irregular(Collective collective);

}  // namespace offpath::policy
