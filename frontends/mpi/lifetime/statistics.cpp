// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lifetime/statistics.hpp"

#include "attach/statistics.hpp"
#include "base/clock.hpp"
#include "mpi/files/opened_file.hpp"
#include "mpi/job/counters.hpp"
#include "mpi/job/job.hpp"
#include "mpi/messages/office.hpp"
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
JsonObject collectives_object(uint64_t* offloaded, uint64_t* stayed_native) {
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
JsonObject why_object() {
  JsonObject object;
  for (size_t i = 0; i < policy::kWhyCount; ++i) {
    const std::string key = std::string(why_name(static_cast<policy::Why>(i))) + "_count";
    if (const uint64_t count = counters.why[i].load(); count != 0) object.number(key.c_str(), count);
  }
  if (const uint64_t count = counters.form_count.load(); count != 0) object.number("form_count", count);
  return object;
}

// Calls that no decision was made about.
JsonObject passed_object() {
  constexpr std::array<const char*, kPassed> kKeys = {"off_count", "communicator_count", "blocking_count"};
  JsonObject object;
  for (size_t i = 0; i < kPassed; ++i) {
    if (const uint64_t count = counters.passed[i].load(); count != 0) object.number(kKeys[i], count);
  }
  return object;
}

// Of kinds that no other object has, but for what is offloaded of them. Nothing for what was not called.
JsonObject seen_object() {
  constexpr std::array<const char*, kSeen> kKeys = {"messages_count", "long_messages_count", "blocking_messages_count",
                                                    "blocking_collectives_count", "files_count"};
  JsonObject object;
  for (size_t i = 0; i < kSeen; ++i) {
    if (const uint64_t count = counters.seen[i].load(); count != 0) object.number(kKeys[i], count);
  }
  return object;
}

JsonObject windows_object() {
  const WindowTotals& totals = windows.totals();
  JsonObject object = attach::offloaded_and_native(totals.offloaded_count.load(), totals.native_count.load());
  object.number("operations_count", totals.operations_count.load());
  object.number("operations_bytes", totals.operations_bytes.load());
  object.number("mixed_count", totals.mixed_count.load());
  object.number("natively_count", totals.natively_count.load());
  object.number("natively_bytes", totals.natively_bytes.load());
  return object.number("elsewhere_count", totals.elsewhere_count.load());
}

// Of those that the policy gives to the service; ready: the payload was there when the program looked.
JsonObject messages_object() {
  JsonObject object = attach::offloaded_and_native(office.counts.offloaded.load(), office.counts.native.load());
  object.number("offloaded_bytes", office.counts.offloaded_bytes.load())
      .number("received_count", office.counts.received.load());
  object.number("ready_count", office.counts.ready.load()).number("failed_count", office.counts.failed.load());
  return object.number("staging_bytes", office.staging_bytes());
}

// Nothing for a program without files.
JsonObject files_object() {
  constexpr std::array<const char*, kFileWays> kKeys = {"write", "read"};
  JsonObject object;
  for (size_t way = 0; way < kFileWays; ++way) {
    const uint64_t offloaded = opened_files.counts.offloaded[way].load(),
                   stayed = opened_files.counts.native[way].load();
    if (offloaded + stayed == 0) continue;
    JsonObject ways = attach::offloaded_and_native(offloaded, stayed);
    ways.number("offloaded_bytes", opened_files.counts.offloaded_bytes[way].load())
        .number("native_bytes", opened_files.counts.native_bytes[way].load());
    object.object(kKeys[way], ways);
  }
  if (const uint64_t count = opened_files.counts.again.load(); count != 0) object.number("again_count", count);
  if (const uint64_t count = opened_files.counts.failed.load(); count != 0) object.number("failed_count", count);
  if (const uint64_t count = opened_files.counts.kept_native.load(); count != 0)
    object.number("kept_native_count", count);
  return object;
}

std::string statistics() {
  uint64_t offloaded_count = 0;
  uint64_t native_count = 0;
  const JsonObject collectives = collectives_object(&offloaded_count, &native_count);
  JsonObject line = attach::statistics_of(job.rank(), job.size(), kMpiName, job.reason());
  line.number("offloaded_count", offloaded_count).number("native_count", native_count);
  line.number("offloaded_bytes", counters.offloaded_bytes.load())
      .number("completed_count", counters.completed_count.load());
  line.number("failed_count", counters.failed_count.load());
  const offpath_session_counters_t service = attach::counters_of(job.session());
  attach::say_memory(job.settings(), service);
  attach::add_service(job.session(), service, &line);
  attach::add_moved(job.session(), &line);
  line.number("wait_ns", counters.wait_ns.load()).number("post_ns", counters.post_ns.load());
  attach::add_loss(job.loss(), &line);
  // From MPI_Init to MPI_Finalize; 0 where nothing could be offloaded from the beginning.
  const uint64_t begin_ns = job.ledger().begin_ns.load();
  line.number("run_ns", begin_ns == 0 ? 0 : base::clock_ns() - begin_ns);
  line.object("collectives", collectives).object("windows", windows_object());
  line.object("messages", messages_object()).object("files", files_object()).object("seen", seen_object());
  line.number("native_bytes_most", counters.native_bytes_most.load());
  line.object("why", why_object()).object("passed", passed_object()).object("learned", job.learned().json());
  return line.json() + "\n";
}

}  // namespace

void write_statistics() {
  std::string line;
  try {
    line = statistics();
  } catch (const std::exception&) {  // the others wait for this rank's all the same
  }
  const uint32_t claim = attach::claim_on_statistics(job.settings());
  const int keeper = find_keeper(job.control(), claim);
  if (keeper < 0) return;
  std::optional<attach::StatisticsFile> file;
  const auto append = [&](int, std::span<const std::byte> text) {
    if (!file) file.emplace(job.settings());
    file->append(text.data(), text.size());
  };
  hand_in(job.control(), keeper, source_of(line), std::ref(append));
}

}  // namespace offpath::mpi
