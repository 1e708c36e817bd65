// SPDX-License-Identifier: BSD-3-Clause
// Where the service's threads run.
#pragma once

#include "base/result.hpp"

#include <string>

namespace offpath::service {

// Binds the calling thread to operating-system cores given as a list ("2,3" or "4-7"); an empty list changes nothing.
base::Status bind_this_thread(const std::string& cores);

}  // namespace offpath::service
