// SPDX-License-Identifier: BSD-3-Clause
// The line of OFFPATH_STATS_FILE, in the form the MPI front end writes too.
#include "attach/statistics.hpp"
#include "shmem/job.hpp"

namespace offpath::shmem {

void Job::write_statistics() const {
  uint64_t offloaded_count = 0, native_count = 0, mapped_count = 0;
  attach::JsonObject families;
  for (size_t i = 0; i < kFamilies; ++i) {
    const uint64_t offloaded = counters_.families[i].offloaded_count.load();
    const uint64_t stayed = counters_.families[i].native_count.load();
    offloaded_count += offloaded;
    native_count += stayed;
    mapped_count += counters_.families[i].mapped_count.load();
    if (offloaded + stayed > 0)
      families.object(family_name(static_cast<Family>(i)), attach::offloaded_and_native(offloaded, stayed));
  }
  const offpath_session_counters_t service = attach::counters_of(member_.session());
  attach::JsonObject line = attach::statistics_of(pe_, pe_count_, "openshmem", reason_);
  line.number("offloaded_count", offloaded_count).number("native_count", native_count);
  line.number("mapped_count", mapped_count).number("offloaded_bytes", counters_.offloaded_bytes.load());
  line.number("completed_count", service.completed_count).number("failed_count", service.failed_count);
  attach::add_service(member_.session(), service, &line);
  line.object("collectives", families);
  attach::write_statistics(exchange(), settings_, line);
}

}  // namespace offpath::shmem
