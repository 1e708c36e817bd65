// SPDX-License-Identifier: BSD-3-Clause
// The line of OFFPATH_STATS_FILE.
#include "attach/statistics.hpp"
#include "mpi/adapt/learned.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/recording/handing_in.hpp"
#include "mpi/rma/windows.hpp"

#include <array>
#include <exception>
#include <functional>
#include <optional>

namespace offpath::mpi {
namespace {

using attach::JsonObject;

#ifdef OPEN_MPI
constexpr const char* kMpiName = "openmpi";
#else
constexpr const char* kMpiName = "mpich";
#endif

// Those that were called, each with how often at the service and how often at the host.
JsonObject collectives_object(const Counters& counters, uint64_t* offloaded, uint64_t* stayed_native) {
  JsonObject called;
  for (size_t i = 0; i < kCollectives; ++i) {
    const uint64_t at_service = counters.collectives[i].offloaded_count.load();
    const uint64_t at_host = counters.collectives[i].native_count.load();
    *offloaded += at_service;
    *stayed_native += at_host;
    if (at_service + at_host == 0) continue;
    called.object(policy::collective_name(static_cast<policy::Collective>(i)),
                  attach::offloaded_and_native(at_service, at_host));
  }
  return called;
}

// By what decided; form: the service does not do such calls.
JsonObject why_object(const Counters& counters) {
  JsonObject object;
  for (size_t i = 0; i < policy::kWhyCount; ++i) {
    const std::string key = std::string(why_name(static_cast<policy::Why>(i))) + "_count";
    if (const uint64_t count = counters.why[i].load(); count != 0) object.number(key.c_str(), count);
  }
  if (const uint64_t count = counters.form_count.load(); count != 0) object.number("form_count", count);
  return object;
}

// Calls that no decision was made about.
JsonObject passed_object(const Counters& counters) {
  constexpr std::array<const char*, kPassed> kKeys = {"off_count", "communicator_count", "blocking_count"};
  JsonObject object;
  for (size_t i = 0; i < kPassed; ++i) {
    if (const uint64_t count = counters.passed[i].load(); count != 0) object.number(kKeys[i], count);
  }
  return object;
}

JsonObject windows_object() {
  const WindowTotals& totals = windows.totals();
  JsonObject object = attach::offloaded_and_native(totals.offloaded_count.load(), totals.native_count.load());
  object.number("operations_count", totals.operations_count.load());
  return object.number("operations_bytes", totals.operations_bytes.load());
}

}  // namespace

uint64_t Job::service_cpu_ns() const { return active() ? attach::counters_of(session_).service_cpu_ns : 0; }

std::string Job::statistics() const {
  const Counters& own = offloader.counters();
  uint64_t offloaded_count = 0;
  uint64_t native_count = 0;
  const JsonObject collectives = collectives_object(own, &offloaded_count, &native_count);
  JsonObject line = attach::statistics_of(rank_, size_, kMpiName, reason_);
  line.number("offloaded_count", offloaded_count).number("native_count", native_count);
  line.number("offloaded_bytes", own.offloaded_bytes.load()).number("completed_count", own.completed_count.load());
  line.number("failed_count", own.failed_count.load());
  attach::add_service(attach::counters_of(session_), &line);
  line.number("wait_ns", own.wait_ns.load()).number("post_ns", own.post_ns.load());
  attach::add_loss(loss_, &line);
  // From MPI_Init to MPI_Finalize; 0 where nothing could be offloaded from the beginning.
  const uint64_t begin_ns = ledger.begin_ns.load();
  line.number("run_ns", begin_ns == 0 ? 0 : now_ns() - begin_ns);
  line.object("collectives", collectives).object("windows", windows_object());
  line.object("why", why_object(own)).object("passed", passed_object(own)).object("learned", learned.json());
  return line.json() + "\n";
}

void Job::write_statistics() const {
  std::string line;
  try {
    line = statistics();
  } catch (const std::exception&) {  // the others wait for this rank's all the same
  }
  const uint32_t claim = attach::claim_on_statistics(settings_);
  const MPI_Comm comm = control_ == MPI_COMM_NULL ? MPI_COMM_SELF : control_;
  const int keeper = find_keeper(comm, claim);
  if (keeper < 0) return;
  std::optional<attach::StatisticsFile> file;
  const auto append = [&](int, std::span<const std::byte> text) {
    if (!file) file.emplace(settings_);
    file->append(text.data(), text.size());
  };
  hand_in(comm, keeper, source_of(line), std::ref(append));
}

}  // namespace offpath::mpi
