// SPDX-License-Identifier: BSD-3-Clause
#include "service/served_client.hpp"

#include "base/log.hpp"
#include "service/translation.hpp"

#include <algorithm>
#include <map>

namespace offpath::service {

using base::Status;
using session::Atomic32;
using session::Counted;
using session::OpKind;
using session::Slot;
using session::SlotState;

namespace {
graph::Ends ends_of(const Slot& slot) {
  const uint32_t flags = slot.flags;  // the client may change it
  if ((flags & session::kTogether) != 0) return graph::Ends::together;
  return (flags & session::kByPairs) != 0 ? graph::Ends::by_pairs : graph::Ends::alone;
}

Counted counted(OpKind kind) { return does(kind, session::kAside) ? Counted::no : Counted::yes; }
}  // namespace

ServedClient::ServedClient(engine::ClientId id, pid_t process, base::Fd alive, base::Fd socket,
                           session::SegmentView view, const session::ServiceId& service,
                           std::shared_ptr<memory::Aliases> aliases, std::unique_ptr<Reflection> reflection)
    : id_(id),
      process_(process),
      alive_(std::move(alive)),
      socket_(std::move(socket)),
      view_(std::move(view)),
      service_(service),
      aliases_(std::move(aliases)),
      reflection_(std::move(reflection)),
      task_numbers_(session::kSlotCount),
      remotes_(session::kSlotCount) {
  if (reflection_ == nullptr) return;
  const memory::Region here{view_.shared_address(), view_.shared_bytes(), view_.shared_data(), view_.mapping()};
  programs_memory_ = memory::make_mapped(here, nullptr);
}

void ServedClient::use(const Workplace& here, std::shared_ptr<memory::Port> memory) {
  here_ = &here;
  memory_ = std::move(memory);
  files_.emplace(here.engine, here.file_threads, here.worker, id_, view_, order_,
                 [this](uint32_t index, offpath_status_t status) { finish(index, status); });
}

bool ServedClient::has_submission() const {
  if (view_.corrupt()) return false;
  if (gates_.any_opened()) return true;
  const session::SegmentHeader& head = view_.header();
  return head.submitted.load(std::memory_order_seq_cst) != head.consumed.load(std::memory_order_relaxed) ||
         view_.is_asked();
}

bool ServedClient::take_submissions() {
  bool any = begin_released();
  for (uint32_t most = session::kSlotCount; most > 0 && take_submission(); --most) {
    any = true;
    begin_released();
    view_.answer();
  }
  return any;
}

bool ServedClient::take_submission() {
  const auto index = view_.take_submission();
  if (!index) return false;
  take_aliases();  // what was submitted with them may not meet older ones
  Slot& slot = view_.slot(*index);
  if (slot.state.load(std::memory_order_acquire) != static_cast<uint32_t>(SlotState::posted)) return true;
  if (gates_.is_held(*index)) return true;           // behind a gate: it was taken before
  const auto kind = static_cast<OpKind>(slot.kind);  // the client may change it
  if (counted(kind) == Counted::yes) {
    in_flight_.begin(*index, InFlight::now_ns());
    if (!is_shown_use()) show_use();
  }
  const bool is_in_order = counted(kind) == Counted::yes && !does(kind, session::kNamesAfter);
  if (is_in_order && !order_.is_under_way(*index)) order_.begin_other(*index);
  if (!hold(kind, *index)) {
    begin(kind, *index);
  } else if (reflection_ != nullptr) {
    reflection_->follow(*index);
  }
  return true;
}

void ServedClient::begin(OpKind kind, uint32_t index) {
  Slot& slot = view_.slot(index);
  const Status status = carry_out(kind, index, slot);
  if (reflection_ != nullptr) reflection_->follow(index);
  if (!status.ok() && does(kind, session::kHasResult)) show_task_end(index, {status});
  if (!status.ok() || !does(kind, session::kGoesOn)) finish(index, status.code(), counted(kind));
  if (!status.ok())
    base::log_write(base::LogLevel::warn, "client %llu: %s", static_cast<unsigned long long>(id_), status.text());
}

void ServedClient::take_aliases() {
  const auto taken = view_.take_aliases();
  if (!taken) return;
  std::vector<memory::Alias> aliases;
  aliases.reserve(taken->size());
  for (const session::AliasRecord& alias : *taken) aliases.push_back({alias.address, alias.bytes, alias.offset});
  aliases_->set(std::move(aliases));
}

void ServedClient::show_memory_use() {
  session::SegmentHeader& head = view_.header();
  const auto show = [](session::Atomic64& shown, uint64_t bytes) {
    if (shown.load(std::memory_order_relaxed) != bytes) shown.store(bytes, std::memory_order_relaxed);
  };
  show(head.in_place_bytes, aliases_->in_place_bytes());
  show(head.copied_bytes, aliases_->copied_bytes());
}

Status ServedClient::carry_out(OpKind kind, uint32_t index, Slot& slot) {
  switch (kind) {
    case OpKind::team_create:
      return create_team(slot);
    case OpKind::team_destroy:
      destroy_team(slot.team);
      return {};
    case OpKind::team_give_up:
      give_up_team(slot.team);
      return {};
    case OpKind::collective:
    case OpKind::program:
      return begin_operation(kind, index, slot);
    case OpKind::window_open:
      return open_window(slot);
    case OpKind::window_close:
    case OpKind::window_give_up:
    case OpKind::window_attach:
    case OpKind::window_detach:
      return change_window(kind, index, slot);
    case OpKind::remote:
      return begin_remote(index, slot);
    case OpKind::function:
      return register_function(index, slot);
    case OpKind::task:
      return begin_task(index, slot);
    case OpKind::task_cancel:
      cancel_task(slot);
      return {};
    case OpKind::file_open:
      if (reflection_ != nullptr) return Status::error(OFFPATH_ERR_STATE, "files of a host stay there");
      return files_->open(index, slot);
    case OpKind::file_close:
      files_->close(static_cast<uint32_t>(slot.address));
      return {};
    case OpKind::file_write:
      return files_->ask(index, slot, ops::FileWay::write);
    case OpKind::file_read:
      return files_->ask(index, slot, ops::FileWay::read);
    case OpKind::gate:  // of no team that there is
    case OpKind::none:
      break;
  }
  return Status::error(OFFPATH_ERR_ARGUMENT, "unknown operation kind %u", static_cast<uint32_t>(kind));
}

Status ServedClient::create_team(const Slot& slot) {
  const uint64_t record = slot.team;  // the client may change it
  auto arguments = view_.team_arguments(record);
  if (!arguments.ok()) return arguments.status();
  engine::TeamSpec spec;
  std::copy_n(arguments->id, spec.id.bytes.size(), spec.id.bytes.begin());
  spec.rank = arguments->rank;
  spec.client = id_;
  spec.context = record;
  if (arguments->compress[0] != '\0') {
    const auto wish = codecs::parse_wish(arguments->compress);
    if (wish.ok()) {
      spec.compress = wish.value();
    } else {
      base::log_write(base::LogLevel::warn, "client %llu, a team of %u: %s", static_cast<unsigned long long>(id_),
                      arguments->size, wish.status().text());
    }
  }
  std::map<session::ServiceId, uint64_t> nodes;
  std::vector<uint64_t> node_of;  // by address
  std::vector<engine::WorkerAddress> workers;
  for (size_t at = 0; at < arguments->addresses.size(); at += arguments->address_stride) {
    auto address =
        session::MemberAddress::decode(std::span(arguments->addresses).subspan(at, arguments->address_stride));
    if (!address.ok()) return address.status();
    node_of.push_back(nodes.try_emplace(address->service, nodes.size()).first->second);
    workers.push_back({address->service == service_, address->worker, std::move(address->fabric)});
  }
  std::vector<uint64_t> node_keys;  // by member
  for (const uint32_t address : arguments->address_of) node_keys.push_back(node_of[address]);
  spec.members = engine::Roster(workers, arguments->address_of);
  const auto handle = here_->engine.add_team(spec);
  if (!handle.ok()) return handle.status();
  here_->balancer.add_team(id_, handle.value(), spec, here_->worker);
  teams_[record] = {handle.value(), ops::Topology::make(arguments->rank, node_keys), 0, {}};
  if (arguments->size > team_size_) {
    rank_ = arguments->rank;
    team_size_ = arguments->size;
  }
  return {};
}

void ServedClient::give_up_team(uint64_t record) {
  if (const auto team = teams_.find(record); team != teams_.end()) here_->engine.give_up_team(team->second.handle);
}

void ServedClient::destroy_team(uint64_t record) {
  const auto team = teams_.find(record);
  if (team == teams_.end()) return;
  close_windows_of(record);
  here_->balancer.remove_team(team->second.handle);
  gates_.remove_team(record);
  here_->engine.remove_team(team->second.handle);
  teams_.erase(team);
}

Status ServedClient::begin_operation(OpKind kind, uint32_t index, Slot& slot) {
  const uint64_t record = slot.team;
  const auto found = teams_.find(record);
  if (found == teams_.end()) return Status::error(OFFPATH_ERR_ARGUMENT, "operation on an unknown team");
  ServedTeam& team = found->second;
  const uint64_t sequence = slot.sequence;  // the client may change it
  if (sequence < team.next_sequence || sequence >= session::kMaxSequence)
    return Status::error(OFFPATH_ERR_ARGUMENT, "operations are out of order");
  // From here on the operation counts as begun, whatever happens to this process and even if it is refused: the next
  // one has a higher number.
  team.next_sequence = sequence + 1;
  view_.team_record(record)->started.store(sequence + 1, std::memory_order_relaxed);
  auto expanded = kind == OpKind::program ? expand_program(slot, team.topology) : expand_collective(slot, team);
  Status spoilt = take_spoilt(record);
  if (!expanded.ok()) spoilt = expanded.status();
  // Also one that cannot be done is posted: other members wait for this one's part, or for its arrival.
  graph::Graph graph = expanded.ok() ? std::move(expanded.value()) : graph::Graph{};
  graph.ends = ends_of(slot);
  show_work(slot, graph, team.topology);
  session::SegmentView::note_start(slot);
  here_->engine.post(team.handle, sequence, std::move(graph), index, spoilt);
  return {};
}

base::Result<graph::Graph> ServedClient::expand_program(const Slot& slot, const ops::Topology& topology) const {
  auto arguments = view_.program_arguments(slot);
  if (!arguments.ok()) return arguments.status();
  auto program = translate(std::move(arguments.value()));
  if (!program.ok()) return program.status();
  if (const Status status = ops::check(program.value()); !status.ok()) return status;
  if (reflection_ == nullptr) return ops::expand(std::move(program.value()), topology);
  const ops::Far far{memory_, programs_memory_};
  return ops::expand(std::move(program.value()), topology, &far);
}

base::Result<graph::Graph> ServedClient::expand_collective(const Slot& slot, ServedTeam& team) const {
  const bool by_client = (slot.flags & session::kOwnBlockByClient) != 0;
  const auto own = by_client ? collective::OwnBlocks::by_client : collective::OwnBlocks::by_service;
  return team.graphs.expand(view_.record(slot), own, team.topology);
}

void ServedClient::show_work(Slot& slot, const graph::Graph& graph, const ops::Topology& topology) {
  slot.steps_left.store(static_cast<uint32_t>(graph.steps.size()), std::memory_order_relaxed);
  slot.exports_left.store(static_cast<uint32_t>(graph.exports.size()), std::memory_order_relaxed);
  Atomic32* open = view_.counters_at(slot.open, topology.size());
  if (open == nullptr) return;
  std::vector<uint32_t> counts(topology.size(), 0);
  for (const graph::Step& step : graph.steps) {
    ++counts[step.kind == graph::StepKind::pull ? step.peer : topology.rank];
  }
  for (const graph::Export& block : graph.exports) ++counts[block.peer];
  for (size_t rank = 0; rank < counts.size(); ++rank) open[rank].store(counts[rank], std::memory_order_relaxed);
}

}  // namespace offpath::service
