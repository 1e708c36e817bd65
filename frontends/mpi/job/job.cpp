// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/job.hpp"

#include "attach/resting.hpp"
#include "attach/statistics.hpp"
#include "base/clock.hpp"
#include "client/next_session.hpp"
#include "mpi/job/network.hpp"
#include "mpi/job/opening.hpp"
#include "mpi/native/native.hpp"
#include "policy/blocking.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace offpath::mpi {

Job job;

namespace {

constexpr char kCannotMove[] =
    "the policy does not change while the program runs: the MPI library grants no MPI_THREAD_MULTIPLE, or the system "
    "no thread (a call whose path is not agreed yet could not be started while the program waits for something else). "
    "Use a library that grants it, or OFFPATH_MPI_ADAPT=freeze";

// A duplicate of MPI_COMM_WORLD, made here unless there is nobody else.
class WorldExchange final : public attach::Exchange {
 public:
  explicit WorldExchange(MPI_Comm* made)
      : Exchange(ask(native.Comm_rank), ask(native.Comm_size), "a native collective on MPI_COMM_WORLD failed") {
    if (size() == 1) return;
    native.Comm_dup(MPI_COMM_WORLD, made);
    native.Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
    comm_ = *made;
  }

 private:
  static int ask(int (*function)(MPI_Comm, int*)) {
    int answer = 0;
    function(MPI_COMM_WORLD, &answer);
    return answer;
  }
  bool broadcast_bytes(void* record, size_t bytes) const override {
    return native.Bcast(record, static_cast<int>(bytes), MPI_BYTE, 0, comm_) == MPI_SUCCESS;
  }
  bool gather_bytes(const void* record, size_t bytes, void* all) const override {
    const int count = static_cast<int>(bytes);
    return native.Allgather(record, count, MPI_BYTE, all, count, MPI_BYTE, comm_) == MPI_SUCCESS;
  }
  bool gather_parts(const void* own, const Parts& parts, void* all) const override {
    const int bytes = parts.bytes[static_cast<size_t>(rank())];
    return native.Allgatherv(own, bytes, MPI_BYTE, all, parts.bytes.data(), parts.begins.data(), MPI_BYTE, comm_) ==
           MPI_SUCCESS;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace

void Job::fill_opening(Opening* opening) const {
  opening->terms.propose(settings_);
  policy::Table table = policy::Table::measured();
  const base::Status status = table.apply(settings_.policy);
  std::string problem = status.ok() ? "" : status.text();
  // Without the memory the run begins as the first one did.
  base::Status memory = table.apply(settings_.memory, policy::Origin::remembered);
  if (settings_.memory.size() >= kMaxPolicyText)
    memory = base::Status::error(OFFPATH_ERR_ARGUMENT, "it is too long. Clear it with: offpath policy forget");
  if (!memory.ok()) say(settings_, LogLevel::warn, "OFFPATH_MPI_MEMORY is left out: %s", memory.text());
  opening->adapts = settings_.adapt == "on" ? 1 : 0;
  if (opening->adapts == 0 && !settings_.adapt.empty() && settings_.adapt != "off" && settings_.adapt != "freeze") {
    problem = "OFFPATH_MPI_ADAPT is '" + settings_.adapt.substr(0, 40) + "' (it takes on, off or freeze). Correct it";
  }
  opening->adapt_percent = static_cast<uint8_t>(settings_.adapt_percent);
  const base::Result<NamedPreferences> named = NamedPreferences::parse(settings_.comm_policy);
  if (!named.ok()) problem = named.status().text();
  const base::Result<uint32_t> blocking = policy::parse_blocking(settings_.blocking);
  opening->blocking = blocking.ok() ? blocking.value() : 0;
  if (!blocking.ok()) problem = blocking.status().text();
  if (settings_.policy.size() >= kMaxPolicyText) problem = "OFFPATH_POLICY is too long. Shorten it";
  if (settings_.comm_policy.size() >= kMaxPolicyText) problem = "OFFPATH_MPI_COMM_POLICY is too long. Shorten it";
  const bool remembers = memory.ok() && settings_.adapt != "off" && !settings_.adapt.empty() && problem.empty();
  snprintf(opening->memory, sizeof(opening->memory), "%s", remembers ? settings_.memory.c_str() : "");
  snprintf(opening->comm_policy, sizeof(opening->comm_policy), "%s",
           problem.empty() ? settings_.comm_policy.c_str() : "");
  snprintf(opening->policy, sizeof(opening->policy), "%s", problem.empty() ? settings_.policy.c_str() : "");
  snprintf(opening->terms.problem, sizeof(opening->terms.problem), "%s", problem.c_str());
}

bool Job::read_opening(const Opening& opening) {
  if (opening.terms.problem[0] != '\0') {
    return stay_native(LogLevel::warn, opening.terms.problem);
  }
  blocking_ = opening.blocking;
  adapts_ = opening.adapts != 0;
  base::Result<NamedPreferences> named = NamedPreferences::parse(opening.comm_policy);
  if (named.ok()) named_preferences_ = std::move(named.value());
  ledger_.percent = opening.adapt_percent;
  ledger_.begin_ns = base::clock_ns();
  return apply_policy(opening, {});
}

bool Job::apply_policy(const Opening& opening, const policy::Network& network) {
  policy_ = policy::Table::measured(network);
  return policy_.apply(opening.memory, policy::Origin::remembered).ok() && policy_.apply(opening.policy).ok();
}

// Where rows from measurement decide about anything.
void Job::adjust_to_network(const Opening& opening) {
  if (!policy_.is_measured(member_.nodes().count())) return;
  int worst = spare_cores() ? 0 : member_.crowded() ? 2 : 1;
  native.Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MAX, control_);
  const policy::Network network{measure_network(member_.nodes(), control_), worst != 0, worst == 2};
  apply_policy(opening, network);
  if (rank() != 0) return;
  say(settings_, LogLevel::info, "the network between nodes moves %.2f bytes in a ns", network.bytes_per_ns);
}

bool Job::copy_token(uint8_t* token) const {
  if (!active() || !member_.alive()) return false;
  std::copy(token_.begin(), token_.end(), token);
  return true;
}

bool Job::stay_native(LogLevel level, const std::string& reason) {
  reason_ = reason;
  if (rank() == 0) say(settings_, level, "all MPI calls stay native: %s", reason.c_str());
  return false;
}

bool Job::start(Equipment own) {
  const Inside inside;
  settings_ = Settings::from_environment();
  if (settings_.quiet_waits) attach::resting.insist(native.yield_when_idle);
  all_ = own;
  const WorldExchange world(&control_);
  if (world.size() == 1) return stay_native(LogLevel::info, "the job has one process");
  attach::NodeRecords records;
  Opening opening{};
  if (world.rank() == 0) fill_opening(&opening);
  const bool met = world.broadcast(&opening) && member_.meet(world, &records);
  native.Comm_group(MPI_COMM_WORLD, &world_group_);
  native.Allreduce(MPI_IN_PLACE, &all_, sizeof(all_), MPI_C_BOOL, MPI_LAND, control_);
  if (!met) return stay_native(LogLevel::warn, world.failure());
  if (!read_opening(opening)) return false;
  if (adapts_ && !all_.moves) {
    adapts_ = false;
    if (rank() == 0) say(settings_, LogLevel::warn, "%s", kCannotMove);
  }
  const attach::Nodes& nodes = member_.nodes();
  if (!policy_.offloads(nodes.count())) {
    return stay_native(LogLevel::info, "the policy offloads nothing on " + std::to_string(nodes.count()) + " node(s)");
  }
  std::copy(std::begin(opening.terms.token), std::end(opening.terms.token), token_.begin());
  std::string problem = member_.choose_cores(opening.terms, settings_, records);
  if (problem.empty()) adjust_to_network(opening);
  if (problem.empty()) problem = member_.attach(opening.terms, world, &directory_);
  return problem.empty() || stay_native(LogLevel::warn, problem);
}

void Job::turn_on() {
  reason_.clear();
  member_.rest_where_cores_are_shared(native.yield_when_idle);
  active_.store(true, std::memory_order_release);
  member_.announce(settings_);
}

void Job::turn_off() {
  attach::resting.end();
  active_.store(false, std::memory_order_release);
}

void Job::leave_lost_behind() {
  const Inside inside;
  MPI_Comm left = MPI_COMM_NULL;
  if (!native.tells_of_losses() || control_ == MPI_COMM_NULL) return;
  if (native.Comm_shrink(control_, &left) != MPI_SUCCESS) return;
  native.Comm_set_errhandler(left, MPI_ERRORS_RETURN);
  native.Comm_free(&control_);
  control_ = left;
}

void Job::stop() {
  if (world_group_ != MPI_GROUP_NULL) native.Group_free(&world_group_);
  if (control_ != MPI_COMM_NULL) native.Comm_free(&control_);
  reason_ = "MPI_Finalize was called";
}

void Job::report_lost_service() {
  const std::lock_guard lock(loss_mutex_);
  if (member_.alive() || std::exchange(lost_, session()) == session()) return;
  loss_ = member_.loss();
  parting_meant_ = nullptr;
  if (member_.nodes().leads(rank())) warn_of_loss(member_.may_go_on() ? kGoesOn : kAllNative);
}

void Job::report_parting(const attach::Parting& parting, bool says, const char* meaning) {
  const std::lock_guard lock(loss_mutex_);
  if (!loss_.problem.empty() && (parting_meant_ == nullptr || parting_meant_ == meaning)) return;
  parting_meant_ = meaning;
  const auto host = [this](uint32_t rank) { return member_.nodes().host_of(static_cast<int>(rank)); };
  loss_ = attach::parting_of(host(parting.here), host(parting.there), parting.silence_ms);
  if (says) warn_of_loss(meaning);
}

attach::Loss Job::loss() const {
  const std::lock_guard lock(loss_mutex_);
  return loss_;
}

void Job::warn_of_loss(const char* meaning) const {
  say(settings_, LogLevel::warn, "%s (%s). %s", loss_.problem.c_str(), meaning, loss_.cure.c_str());
}

offpath_status_t Job::go_on() {
  if (!client::leaves(session())) report_lost_service();
  const offpath_status_t status = member_.go_on(&client::next_session);
  report_lost_service();  // unless there is another one
  const bool never = status != OFFPATH_OK && status != OFFPATH_IN_PROGRESS && member_.may_go_on();
  if (never && member_.nodes().leads(rank()) && !end_reported_.exchange(true)) {
    say(settings_, LogLevel::warn,
        "no service takes the place of the lost one: three were lost within a minute, or none can be started (all is "
        "native now). Find out why they end");
  }
  return status;
}

void Job::warn_of_starvation() {
  if (starvation_reported_.exchange(true) || !member_.nodes().leads(rank())) return;
  const attach::Loss starved =
      attach::starved_of(member_.nodes().host_of(rank()), offpath_session_starved_ns(session()),
                         member_.nodes().around(rank()).neighbours);
  say(settings_, LogLevel::warn, "%s (nothing is lost, and it is waited for). %s", starved.problem.c_str(),
      starved.cure.c_str());
}

}  // namespace offpath::mpi
