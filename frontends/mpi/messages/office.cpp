// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/office.hpp"

#include "base/random.hpp"
#include "mpi/job/job.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace offpath::mpi {

Office office;

namespace {

constexpr uint64_t kWindowId = 1;

bool several_threads() {
  int granted = MPI_THREAD_SINGLE;
  return native.Query_thread(&granted) == MPI_SUCCESS && job.granted_threads(granted) == MPI_THREAD_MULTIPLE;
}

// From where on the policy has the service carry messages on that many nodes; nothing: nowhere.
std::optional<uint64_t> first_offloaded(uint32_t nodes) {
  std::optional<uint64_t> first;
  for (const policy::Row& row : job.policy().rows()) {
    if (row.collective != policy::Collective::send) continue;
    for (const uint64_t bytes : {row.from_bytes, row.to_bytes}) {
      const bool offloaded = job.policy().choose(policy::Collective::send, bytes, nodes).path == policy::Path::dpu;
      if (offloaded) first = std::min(bytes, first.value_or(bytes));
    }
  }
  return first;
}

}  // namespace

bool Office::agree(bool own) const {
  int mine = own ? 1 : 0, all = 0;
  return native.Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, job.control()) == MPI_SUCCESS && all == 1;
}

bool Office::open_own(offpath_session_t* session, const attach::Directory& directory, uint64_t* table) {
  session_ = session;
  offpath_team_t* team = nullptr;
  offpath_error_t error{};
  if (attach::create_team(session, team_id_, job.rank(), directory, &team, &error) != OFFPATH_OK) return false;
  team_ = team;
  const auto size = static_cast<size_t>(job.size());
  void* memory = nullptr;
  if (offpath_memory_allocate(session, size * sizeof(Entry), &memory) != OFFPATH_OK) return false;
  table_ = static_cast<Entry*>(memory);
  offpath_window_params_t params{};
  params.struct_bytes = sizeof(params);
  params.flags = OFFPATH_WINDOW_DYNAMIC;
  params.id = kWindowId;
  pool_ = Pool();
  pool_.open(session, job.settings().staging_bytes);
  const bool made =
      offpath_window_create(team, &params, &window_, &error) == OFFPATH_OK &&
      offpath_window_attach(window_, memory, size * sizeof(Entry)) == OFFPATH_OK &&
      (pool_.length() == 0 || offpath_window_attach(window_, pool_.memory(), pool_.length()) == OFFPATH_OK);
  *table = made ? reinterpret_cast<uint64_t>(memory) : 0;
  return made;
}

bool Office::open() {
  const std::optional<uint64_t> near = first_offloaded(1), far = first_offloaded(2);
  // The same on all ranks, as the policy and the nodes are.
  if (!(far && job.nodes() > 1) && !near) return false;
  least_bytes_ = std::max<uint64_t>(2 * kTicketBytes, std::min(near.value_or(UINT64_MAX), far.value_or(UINT64_MAX)));
  near_ = near.has_value();
  far_ = far.has_value();
  struct {
    Mark mark;
    std::array<uint8_t, OFFPATH_TEAM_ID_BYTES> team;
  } common{};
  if (job.rank() == 0) base::fill_random(&common, sizeof(common));
  if (native.Bcast(&common, sizeof(common), MPI_BYTE, 0, job.control()) != MPI_SUCCESS) return false;
  mark_ = common.mark;
  team_id_ = common.team;
  uint64_t own = 0;
  bool made = routes.open() == MPI_SUCCESS && kept_messages.open(several_threads()) == MPI_SUCCESS &&
              resending.open() == MPI_SUCCESS && open_own(job.session(), job.directory(), &own);
  tables_.resize(static_cast<size_t>(job.size()));
  made = native.Allgather(&own, sizeof(own), MPI_BYTE, tables_.data(), sizeof(own), MPI_BYTE, job.control()) ==
             MPI_SUCCESS &&
         made;
  if (!agree(made)) {
    close();
    return false;
  }
  first_table_ = table_;
  comeback_ = std::make_unique<Comeback>(resending.seat(), losses_);
  grant_to_all();
  on_.store(true, std::memory_order_release);
  // Others may ask a rank that has posted nothing.
  offloader.look_also(this, [this] { listen(); });
  return true;
}

void Office::close() {
  turn_off();
  offloader.look_less(this);
  offloader.leave();
  const bool writes = resending.receives();
  resending.close();
  outbox.abandon();
  kept_messages.close();
  routes.close();
  std::lock_guard lock(mutex_);
  put_away();
  for (Past& past : past_) close(past, !writes);
  past_.clear();
  table_ = nullptr;
  incoming_.clear();
  outgoing_.clear();
}

bool Office::offloads(int peer, uint64_t bytes) const {
  if (bytes < least_bytes_ || bytes > kMostBytes || peer == job.rank()) return false;
  const uint32_t nodes = job.node_of(peer) == job.node_of(job.rank()) ? 1 : 2;
  return job.policy().choose(policy::Collective::send, bytes, nodes).path == policy::Path::dpu;
}

bool Office::broken() const {
  const offpath_team_t* const team = team_;
  return team == nullptr || offpath_team_broken(team) != 0 || offpath_session_alive(session_) == 0;
}

std::vector<uint8_t> Office::losses() const {
  const offpath_team_t* const team = team_;
  if (team == nullptr || offpath_team_broken(team) == 0) return {};
  std::vector<uint8_t> how(static_cast<size_t>(job.size()));
  offpath_team_lost(team, how.data());
  return how;
}

bool Office::has_lost_process(int peer) const {
  const std::vector<uint8_t> how = losses();
  return !how.empty() && how[static_cast<size_t>(peer)] == OFFPATH_LOSS_PROCESS;
}

bool Office::has_lost() {
  if (!has_lost_.load(std::memory_order_acquire) && broken()) has_lost_.store(true, std::memory_order_release);
  return has_lost_.load(std::memory_order_relaxed);
}

void Office::listen() {
  resending.listen();
  if (!said_held_ && has_lost()) say_held_to_all();
  come_back();
  tidy();
}

// What services were to tell may be lost.
void Office::say_held_to_all() {
  said_held_ = true;
  job.report_lost_service();
  std::vector<int> senders;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [from, in] : incoming_) {
      if (in.holds) senders.push_back(from);
    }
  }
  for (const int sender : senders) resending.say_held(sender);
}

offpath_status_t Office::put(int to, size_t field, const void* data, uint64_t bytes, offpath_op_t** op) {
  if (window_ == nullptr || tables_[static_cast<size_t>(to)] == 0)
    return OFFPATH_ERR_NOT_STARTED;  // it has not opened it yet
  offpath_remote_t remote{};
  remote.struct_bytes = sizeof(remote);
  remote.kind = OFFPATH_PUT;
  remote.target = static_cast<uint32_t>(to);
  remote.target_offset = tables_[static_cast<size_t>(to)] + static_cast<uint64_t>(job.rank()) * sizeof(Entry) + field;
  remote.target_bytes = bytes;
  remote.send = {0, 0, data, bytes, 0};
  return offpath_remote(window_, &remote, op);
}

// ---- as a sender

void Office::take_grant(int from, Outgoing& out) {
  const Entry& entry = table_.load()[from];
  const auto load = [](const uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); };
  const uint64_t number = load(entry.grant.number);
  if (number <= out.region) return;
  const uint64_t address = load(entry.grant.address), bytes = load(entry.grant.bytes);
  if (load(entry.grant.check) != Grant::check_of(number, address, bytes)) return;  // it is being written
  // Until that is said nobody grants another one.
  const uint64_t left = left_word(number, out.region, out.ring);
  if (number > 1 && put(from, offsetof(Entry, left), &left, sizeof(left)) != OFFPATH_OK) return;
  out.before = left_position(number, out.region, out.ring);
  out.region = number;
  out.address = address;
  out.ring = RingAllocator(bytes);
}

void Office::wish(int to, Outgoing& out, uint64_t bytes) {
  if (bytes <= out.wished) return;
  if (put(to, offsetof(Entry, wish), &bytes, sizeof(bytes)) == OFFPATH_OK) out.wished = bytes;
}

std::optional<RingAllocator::Stretch> Office::allocate(int to, Outgoing& out, uint64_t bytes) {
  take_grant(to, out);
  const uint64_t taken = __atomic_load_n(&table_.load()[to].taken, __ATOMIC_ACQUIRE);
  const bool of_this = RingWord::is_of(taken, out.region);  // else nothing was taken out of it yet
  const uint64_t position = of_this ? RingWord::position_of(taken, out.ring.tail()) : 0;
  const auto stretch = out.ring.allocate(bytes, position);
  if (!stretch) wish(to, out, out.ring.wanted(bytes, position));
  return stretch;
}

bool Office::has_room(int to, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (broken()) return false;
  Outgoing& out = outgoing_[to];
  const auto stretch = allocate(to, out, bytes);
  if (stretch) out.ring.undo(*stretch);
  return stretch.has_value();
}

std::optional<Office::Sending> Office::start(int to, bool synchronous, const offpath_block_t& send,
                                             const offpath_layout_t* layouts, offpath_element_t element) {
  Sending sending;
  sending.signal = std::make_unique<uint64_t>();
  std::lock_guard lock(mutex_);
  if (broken() || (synchronous && has_lost())) return std::nullopt;  // as last_sends() promises
  Outgoing& out = outgoing_[to];
  const uint64_t number = synchronous ? static_cast<uint64_t>(std::countr_one(out.synchronous)) + 1 : 0;
  if (number > kSynchronous) return std::nullopt;
  const auto stretch = allocate(to, out, send.bytes);
  if (!stretch) return std::nullopt;
  *sending.signal = signal_of(mark_, static_cast<uint64_t>(job.rank()), static_cast<uint64_t>(to), out.sent);
  sending.ticket = {static_cast<uint64_t>(job.rank()),
                    send.bytes,
                    out.region,
                    stretch->begin,
                    stretch->end,
                    stretch->offset,
                    *sending.signal,
                    number};
  offpath_remote_t remote{};
  remote.struct_bytes = sizeof(remote);
  remote.kind = OFFPATH_PUT_SIGNAL;
  remote.target = static_cast<uint32_t>(to);
  remote.target_offset = out.address + stretch->offset;
  remote.target_bytes = send.bytes + kSignalBytes;
  remote.send = send;
  remote.element = element;
  remote.signal = sending.signal.get();
  remote.layouts = layouts;
  remote.layouts_count = send.layout;
  if (offpath_remote(window_, &remote, &sending.op) != OFFPATH_OK) {
    out.ring.undo(*stretch);
    return std::nullopt;
  }
  ++out.sent;
  out.synchronous |= bit_of(number);
  return sending;
}

// Its service wrote that before the library could receive the ticket there.
bool Office::received(int to, uint64_t synchronous) {
  std::optional<uint64_t> held = resending.held(to);
  if (!held) {
    std::lock_guard lock(mutex_);
    held = first_table_ == nullptr ? first_held_[static_cast<size_t>(to)]
                                   : __atomic_load_n(&first_table_[to].held, __ATOMIC_ACQUIRE);
  }
  return (*held & bit_of(synchronous)) == 0;
}

void Office::forget(int to, uint64_t synchronous) {
  std::lock_guard lock(mutex_);
  outgoing_[to].synchronous &= ~bit_of(synchronous);
}

std::optional<uint64_t> Office::last_sends(int to) {
  std::lock_guard lock(mutex_);
  return has_lost() ? std::optional(outgoing_[to].synchronous) : std::nullopt;
}

int Office::code_of(offpath_status_t status) { return offloader.errors().code_for(status); }

bool Office::quiet() {
  std::lock_guard lock(mutex_);
  return window_ == nullptr || offpath_window_flush_test(window_) != OFFPATH_IN_PROGRESS || broken();
}

}  // namespace offpath::mpi
