// SPDX-License-Identifier: BSD-3-Clause
// The fabrics of fabrics.def, by name.
#pragma once

#include "fabric/fabric.hpp"

#include <memory>
#include <string>

namespace offpath::fabric {

struct Made {
  const char* name;  // static
  std::unique_ptr<Context> context;
};

// Once per process and before it has other threads (a fabric may set its environment). Empty: the first of the list.
base::Result<Made> make(const std::string& name);

}  // namespace offpath::fabric
