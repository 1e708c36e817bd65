// SPDX-License-Identifier: BSD-3-Clause
// Which DPUs serve this node: OFFPATH_DPU says it for one node, OFFPATH_DPUS for all nodes of a job, so that a launcher can
// give every rank the same. An entry is one of a list with commas: exec:COMMAND, or HOST:PORT of a starter.
//
//   OFFPATH_DPU    ENTRY[,ENTRY...]
//   OFFPATH_DPUS   NODE=ENTRY[,ENTRY...];...      NODE: a host name, an address, or * for those that are not named
//
// A comma or semicolon that the shell would take as quoted belongs to the command: exec:ssh dpu offpathd --cores '0,2'.
#pragma once

#include "base/result.hpp"

#include <span>
#include <string>
#include <vector>

namespace offpath::session {

// The parts that are not empty, quotes and all: the shell takes these away. Pure.
std::vector<std::string> unquoted_parts(const std::string& text, char separator);

// Of a node with these names and addresses, the first being what errors call it. Pure.
base::Result<std::string> dpus_of(const std::string& list, std::span<const std::string> names);

// Of this node; empty: the service is to run on it. Errors: there is a list, and it does not name this node.
base::Result<std::string> own_dpus();

}  // namespace offpath::session
