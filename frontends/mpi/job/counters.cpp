// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/counters.hpp"

namespace offpath::mpi {

Counters counters;

}  // namespace offpath::mpi
