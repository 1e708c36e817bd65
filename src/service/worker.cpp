// SPDX-License-Identifier: BSD-3-Clause
#include "service/worker.hpp"

#include "base/clock.hpp"
#include "base/epoll.hpp"
#include "base/log.hpp"
#include "service/placement.hpp"
#include "session/link.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>

namespace offpath::service {
namespace {
constexpr uint64_t kAlarmTag = 0;  // client ids start at 1
constexpr uint64_t kFabricTag = UINT64_MAX;
constexpr uint64_t kClientsTag = UINT64_MAX - 1;
constexpr uint64_t kDoorsTag = UINT64_MAX - 2;
constexpr uint64_t kProcessBit = uint64_t{1} << 63;   // and the id of the client whose process it is
constexpr uint64_t kExecutorBit = uint64_t{1} << 62;  // and which executor of tasks
constexpr int kFlushTimeoutMs = 1000;
using Clock = std::chrono::steady_clock;
constexpr uint32_t kRoundsBetweenPolls = 4096;
thread_local const Worker* t_here = nullptr;  // whose thread this is
}  // namespace

using engine::ClientId;

Worker::Worker(Options options, std::unique_ptr<fabric::Named> fabric, engine::Neighbours& neighbours, Owner owner)
    : options_(std::move(options)),
      fabric_(std::move(fabric)),
      engine_(std::make_unique<engine::Engine>(engine_config(), *fabric_, neighbours, *this)),
      target_([this](graph::RequestId request, graph::Answer answer) { engine_->answer(request, std::move(answer)); },
              [this](ClientId client) {
                if (ServedClient* const known = served(client)) known->tell();
              }),
      owner_(std::move(owner)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      clients_epoll_(epoll_create1(EPOLL_CLOEXEC)),
      alarm_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      tasks_to_run_(
          options_.tasks, alarm_.get(), [this] { ring(); },
          [this](int ended, uint32_t number) { base::watch(clients_epoll_.get(), ended, kExecutorBit | number); },
          [this](ClientId client, uint32_t slot, const TaskEnd& end) {
            if (ServedClient* const known = served(client)) known->on_task_ended(slot, end);
          }),
      balancer_(options_.balance, *engine_, tasks_to_run_, target_, [this] { return has_time_for_guests(); }) {
  engine_->set_responder(&balancer_);
  base::watch(clients_epoll_.get(), alarm_.get(), kAlarmTag);
  base::watch(epoll_.get(), clients_epoll_.get(), kClientsTag);
}

engine::Config Worker::engine_config() {
  engine::Config config = options_.engine;
  config.wake = [this] { t_here == this ? void(access_ended_ = true) : ring(); };
  return config;
}

Worker::~Worker() {
  stop();
  fabric_->set_receiver(nullptr);
  fabric_.reset();  // it may still be filling the engine's buffers
}

base::Status Worker::start() {
  if (options_.spin.count() == 0) {
    if (const base::Status status = nudge_.start([cores = options_.cores] {
          [[maybe_unused]] const base::Status bound =
              bind_this_thread(cores);  // the worker's binding says what is wrong
          ask_for_short_slices();
        });
        !status.ok())
      return status;
  }
  std::promise<base::Status> bound;
  auto result = bound.get_future();
  thread_ = std::thread([this, &bound] {
    const base::Status status = bind_this_thread(options_.cores);
    const bool go = status.ok();
    thread_number_ = static_cast<pid_t>(syscall(SYS_gettid));
    ask_for_short_slices();
    bound.set_value(status);
    if (go) loop();
  });
  const base::Status status = result.get();
  if (!status.ok()) thread_.join();
  return status;
}

void Worker::stop() {
  if (!thread_.joinable()) return;
  run([this] { stopping_ = true; });
  thread_.join();
}

void Worker::run(std::function<void()> task) {
  bool first;
  {
    std::lock_guard lock(tasks_mutex_);
    first = tasks_.empty();
    tasks_.push_back(std::move(task));
  }
  if (first) ring();
}

void Worker::ring() {
  if (t_here == this) return;  // it looks before it sleeps
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(alarm_.get(), &one, sizeof(one));
}

void Worker::send(const wire::Message& message, fabric::Bytes payload) {
  run([this, message, body = std::vector<uint8_t>(payload.begin(), payload.end())] {
    engine_->on_neighbour_message(message, body);
  });
}

void Worker::offer(uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address, uint64_t bytes) {
  run([this, pull_id, memory = std::move(memory), address, bytes] {
    engine_->on_neighbour_offer(pull_id, memory, address, bytes);
  });
}

void Worker::add_client(std::unique_ptr<ServedClient> client, const std::shared_ptr<memory::Port>& memory) {
  auto shared = std::make_shared<std::unique_ptr<ServedClient>>(std::move(client));  // std::function must be copyable
  run([this, shared, memory] {
    ServedClient& added = **shared;
    const ClientId id = added.id();
    engine_->add_client(id, memory);
    added.use(for_clients_, memory);
    if (in_use_) added.show_use();
    clients_[id] = std::move(*shared);
    base::watch(clients_epoll_.get(), added.socket(), id);
    if (added.process() >= 0) base::watch(clients_epoll_.get(), added.process(), kProcessBit | id);
  });
}

void Worker::add_door(std::unique_ptr<AgentDoor> door, std::function<void()> on_door_gone) {
  auto shared = std::make_shared<Door>(Door{std::move(door), std::move(on_door_gone)});
  run([this, shared] {
    base::watch(clients_epoll_.get(), shared->door->link_fd(), kFabricTag);
    base::watch(clients_epoll_.get(), shared->door->clients_fd(), kDoorsTag);
    doors_.push_back(std::move(*shared));
  });
}

base::Result<std::vector<uint8_t>> Worker::open_fabric() {
  using Address = base::Result<std::vector<uint8_t>>;
  const auto answer = std::make_shared<std::promise<Address>>();
  run([this, answer] {
    const bool was_open = fabric_->event_fd() >= 0;
    const base::Status status = fabric_->open();
    if (!was_open && fabric_->event_fd() >= 0) base::watch(epoll_.get(), fabric_->event_fd(), kFabricTag);
    answer->set_value(status.ok() ? Address(fabric_->address()) : Address(status));
  });
  return answer->get_future().get();
}

void Worker::loop() {
  t_here = this;
  auto last_busy = Clock::now();
  for (uint32_t round = 0; !stopping_; ++round) {
    // A worker that is always busy must still notice clients that leave.
    if (round % kRoundsBetweenPolls == 0) {
      poll_events(clients_epoll_.get(), 0);
      until_watch();
      until_doors_look();
    }
    if (work()) {
      if (options_.spin.count() > 0) last_busy = Clock::now();
      continue;
    }
    const bool spins = options_.spin.count() > 0 && !leaves_core_to_tasks();
    if (spins && Clock::now() - last_busy < options_.spin) continue;
    sleep();
  }
  // Clients are told that an operation is done when its short blocks are on their way; those must arrive. Others end
  // at the same time and wait for our answers, too.
  const auto end = Clock::now() + std::chrono::milliseconds(kFlushTimeoutMs);
  for (bool wait = true; wait;) {
    engine_->tell_senders();
    const bool busy = work();
    wait = engine_->unconfirmed() > 0 && Clock::now() < end;
    if (wait && !busy && fabric_->arm()) poll_events(epoll_.get(), kTellSendersAfter.count());
  }
  fabric_->flush(kFlushTimeoutMs);
  doors_.clear();
  tasks_to_run_.log_counts();
}

// Executors on the program's cores take tasks of other nodes while one of its ranks waits.
bool Worker::has_time_for_guests() const {
  if (options_.spare_cores > 0 || options_.spin.count() > 0) return true;
  const uint64_t now_ns = base::clock_ns();
  return std::any_of(clients_.begin(), clients_.end(), [now_ns](const auto& entry) {
    const session::SegmentHeader& header = entry.second->header();
    return header.waiters.load(std::memory_order_relaxed) != 0 || header.waiting_since_ns.load() != 0 ||
           header.polls_until_ns.load(std::memory_order_relaxed) > now_ns;
  });
}

bool Worker::work() {
  bool busy = false;
  for (Door& next : doors_) busy |= next.door->take();
  busy |= take_submissions();
  busy |= balancer_.progress();
  busy |= tasks_to_run_.progress();
  busy |= run_tasks();
  access_ended_ = false;
  busy |= engine_->progress();
  charge();
  for (auto& [id, client] : clients_) client->wake();
  for (Door& next : doors_) busy |= next.door->give();
  return busy | close_doors() | access_ended_;
}

// Comes before anything that tells of a departure: teams submitted before it must exist to hear of it, and what the
// departed has submitted still counts, as peers may wait for it.
bool Worker::take_submissions() {
  bool any = false;
  ClientId broken = 0;
  for (auto& [id, client] : clients_) {
    any |= client->take_submissions();
    if (client->broken()) broken = id;
  }
  const auto is_used = [](const auto& entry) { return entry.second->is_shown_use(); };
  if (any && !in_use_ && std::any_of(clients_.begin(), clients_.end(), is_used)) owner_.on_used();
  if (broken != 0) drop_client(broken, Departure::died);
  return any;
}

// Their clients hear of it as of everything that a socket says.
bool Worker::close_doors() {
  const auto first =
      std::partition(doors_.begin(), doors_.end(), [](const Door& next) { return !next.door->is_over(); });
  if (first == doors_.end()) return false;
  for (auto over = first; over != doors_.end(); ++over) {
    over->door.reset();
    over->on_gone();
  }
  doors_.erase(first, doors_.end());
  return true;
}

bool Worker::has_tasks() {
  std::lock_guard lock(tasks_mutex_);
  return !tasks_.empty();
}

bool Worker::run_tasks() {
  std::vector<std::function<void()>> tasks;
  {
    std::lock_guard lock(tasks_mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task();
  return !tasks.empty();
}

void Worker::poll_events(int epoll, int timeout_ms) {
  epoll_event events[64];
  const int count = epoll_wait(epoll, events, 64, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const uint64_t tag = events[i].data.u64;
    if (tag == kAlarmTag) {
      uint64_t value;
      [[maybe_unused]] const ssize_t got = read(alarm_.get(), &value, sizeof(value));
    } else if (tag == kClientsTag) {
      poll_events(clients_epoll_.get(), 0);
    } else if (tag == kDoorsTag) {
      for (Door& next : doors_) next.door->look();
    } else if (tag != kFabricTag && (tag & kProcessBit) != 0) {
      take_submissions();
      if (clients_.contains(tag & ~kProcessBit)) drop_client(tag & ~kProcessBit, Departure::died);
    } else if (tag != kFabricTag && (tag & kExecutorBit) != 0) {
      tasks_to_run_.on_executor_ended(static_cast<uint32_t>(tag));
    } else if (tag != kFabricTag) {
      read_socket(tag);
    }
  }
}

}  // namespace offpath::service
