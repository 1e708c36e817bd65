// SPDX-License-Identifier: BSD-3-Clause
// The line of OFFPATH_STATS_FILE, in the form the MPI front end writes too.
#include "attach/statistics.hpp"
#include "shmem/exchange.hpp"
#include "shmem/job.hpp"

#include <vector>

namespace offpath::shmem {

void Job::write_statistics() const {
  static constexpr const char* kFamilyNames[kFamilies] = {"put", "get", "atomic"};
  uint64_t offloaded_count = 0, native_count = 0, mapped_count = 0;
  attach::JsonObject families;
  for (size_t i = 0; i < kFamilies; ++i) {
    const uint64_t offloaded = counters_.families[i].offloaded_count.load();
    const uint64_t stayed = counters_.families[i].native_count.load();
    offloaded_count += offloaded;
    native_count += stayed;
    mapped_count += counters_.families[i].mapped_count.load();
    if (offloaded + stayed > 0) families.object(kFamilyNames[i], attach::offloaded_and_native(offloaded, stayed));
  }
  const offpath_session_counters_t service = attach::counters_of(session_);
  attach::JsonObject line = attach::statistics_of(pe_, pe_count_, "openshmem", reason_);
  line.number("offloaded_count", offloaded_count).number("native_count", native_count);
  line.number("mapped_count", mapped_count).number("offloaded_bytes", counters_.offloaded_bytes.load());
  line.number("completed_count", service.completed_count).number("failed_count", service.failed_count);
  attach::add_service(service, &line);
  line.object("collectives", families);
  if (pe_count_ < 2) {
    if (attach::claim_on_statistics(settings_) != 0) attach::append_records(settings_, {{attach::record_of(line)}});
    return;
  }
  const auto pes = static_cast<size_t>(pe_count_);
  std::vector<uint64_t> claims(pes);
  if (!gather(uint64_t{attach::claim_on_statistics(settings_)}, &claims)) return;
  const int keeper = attach::keeper_of(claims);
  std::vector<attach::StatisticsRecord> records(pes);
  if (keeper >= 0 && gather(attach::record_of(line), &records) && pe_ == keeper)
    attach::append_records(settings_, records);
}

}  // namespace offpath::shmem
