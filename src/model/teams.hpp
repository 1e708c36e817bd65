// SPDX-License-Identifier: BSD-3-Clause
// Which operations of a job are of one communicator. A job does not say it; but all members post what is on one in the
// same order, so what has the same members and that order may be taken for one.
#pragma once

#include "model/job.hpp"

namespace offpath::model {

struct Place {
  uint32_t team = 0;
  uint32_t number = 0;  // in the order of the team
};

// By operation; collectives of the DPU's side only.
std::vector<Place> places_of(const Job& job);

}  // namespace offpath::model
