// SPDX-License-Identifier: BSD-3-Clause
// Policy: a table that says whether an operation runs on the host (native MPI) or on the DPU (the service).
//
// Rows are looked at from the last to the first and the first that matches wins, so an override is simply appended.
// What no row matches stays on the host. The table is a value without hidden state: the same text gives the same
// answers everywhere, which is what makes all ranks of a team decide alike. Irregular collectives (v and w forms,
// neighbourhoods) have no size that all ranks see alike, but both ends of a block know its size: their rows mean the
// bytes of one block, and each block goes its own way.
//
// Threads: const member functions from any thread; apply() by one thread while nobody else reads.
#pragma once

#include "base/result.hpp"
#include "base/words.hpp"

#include <offpath/offpath.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace offpath::policy {

enum class Path : uint8_t { host, dpu };
// Where a row comes from: Offpath itself, earlier runs on this machine, or the user, who is obeyed.
enum class Origin : uint8_t { measured, remembered, forced };

enum class Collective : uint8_t {
#define OFFPATH_POLICY_ROW(name, kind, size, from, blocking, shown) name,
#include <offpath/words/policy_rows.def>
};

inline constexpr size_t kCollectivesCount = 0
#define OFFPATH_POLICY_ROW(name, kind, size, from, blocking, shown) +1
#include <offpath/words/policy_rows.def>
    ;
inline constexpr uint64_t kUnlimitedBytes = UINT64_MAX;

struct Row {
  Collective collective;
  Path path;
  uint32_t min_nodes;                                         // nodes the team must at least live on
  uint64_t from_bytes;                                        // first size the row is for (see choose)
  uint64_t to_bytes;                                          // first size it is no longer for; kUnlimitedBytes: none
  offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_DEFAULT;  // on the DPU
  Origin origin = Origin::measured;
};

struct Choice {
  Path path = Path::host;
  offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_DEFAULT;
  Origin origin = Origin::measured;
};

// What lies between the nodes, as far as rows from measurement depend on it.
struct Network {
  double bytes_per_ns = 0;    // that a node sends; 0: not known
  bool shares_cores = false;  // services have no cores of their own
  bool crowded = false;       // nor have ranks: there are more of them than cores
};

class Table {
 public:
  // No rows: everything stays on the host.
  Table() = default;
  // The rows that ship with Offpath, from measurement. What pays is that a transfer takes long: where the network is faster
  // they begin later. Where ranks and services share cores there are none for a fast one, as its data takes the cores; and none of
  // messages where ranks have to share them with each other, too.
  static Table measured(const Network& network = {});

  // Appends the rows of a text such as "ialltoall:512K-inf:dpu,ibcast:host": separated by commas or line ends, from
  // a # to the end of its line is comment. A row is
  //   collective[:from-to][:nodes=N]:host|dpu[=algorithm]
  // sizes take K, M, G (powers of 1024), inf; algorithms are those of offpath.h, lower case, that the collective knows.
  // collective may be * : all, or those that know the algorithm if the row names one; of send, write and read
  // only with host, as what forces collectives forces nobody's messages and files.
  // Without a range all sizes, without nodes teams of any number of nodes.
  // On error nothing is changed and the text says what is wrong with which row.
  base::Status apply(std::string_view text, Origin origin = Origin::forced);

  // `bytes`: what all ranks know alike of the size of one rank's part: all it sends or receives, whichever is more
  // (alltoall: size x block; allgather, reduce_scatter: the whole; bcast, reductions: the vector; gather, scatter: the
  // root's whole). Irregular collectives: the bytes of one block between two ranks. send: of the message; `nodes`: that
  // its two ranks live on. write, read: of one rank's transfer of a file; the nodes are the job's.
  Choice choose(Collective collective, uint64_t bytes, uint32_t nodes) const;
  // False: the collective, or nothing, is ever offloaded for a team on that many nodes, whatever the size.
  bool offloads(Collective collective, uint32_t nodes) const;
  bool offloads(uint32_t nodes) const;
  // Of something that has a size a row from measurement says so.
  bool is_measured(uint32_t nodes) const;

  const std::vector<Row>& rows() const { return rows_; }
  // One row per line, in the form that apply() reads.
  std::string print() const;

 private:
  void append(const Row& row);
  // Whether it is so for any size.
  template <typename Wanted>
  bool answers(Collective collective, uint32_t nodes, Wanted wanted) const;

  std::vector<Row> rows_;
  std::array<std::vector<Row>, kCollectivesCount> by_collective_;  // the same: choose() is asked for every block
};

// The row without its path, in the form that apply() reads.
std::string range_text(const Row& row);

const char* collective_name(Collective collective);
inline const char* algorithm_name(offpath_algorithm_t algorithm) { return base::text_of(algorithm); }
// None: no algorithm has that name.
std::optional<offpath_algorithm_t> algorithm_named(std::string_view name);
// Whether the collective can be done that way; every one knows DEFAULT.
bool knows(Collective collective, offpath_algorithm_t algorithm);
// True where no size is known to all ranks: gatherv, scatterv, alltoallv, alltoallw and the neighbourhoods; windows
// and messages.
bool is_irregular(Collective collective);
// False for windows and messages.
bool is_collective(Collective collective);
// What the service does for a collective.
offpath_collective_kind_t kind_of(Collective collective);
// How OFFPATH_MPI_BLOCKING calls its blocking form; empty: that is not offloaded.
const char* blocking_name(Collective collective);
// "Known: ibcast, ..., *"
std::string known_collectives();
// False for windows: their rows carry no range.
bool has_size(Collective collective);

}  // namespace offpath::policy
