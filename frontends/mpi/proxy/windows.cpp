// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/proxy/windows.hpp"

namespace offpath::mpi::regions {
namespace {

// The progress thread's hold on a window.
class Held : public Task {
 public:
  explicit Held(std::shared_ptr<RegionWindow> window) : window_(std::move(window)) {}
  bool advance() override { return window_->advance(); }
  void lose(uint64_t channel) override { window_->lose(channel); }
  void give_up() override { window_->give_up(); }

 private:
  std::shared_ptr<RegionWindow> window_;
};

}  // namespace

void RegionWindows::create(Upcall upcall, std::shared_ptr<Contexts> contexts) {
  const Arguments& arguments = upcall.arguments();
  if (arguments.count <= 0) return upcall.answer(MPI_ERR_DISP);
  if (arguments.bytes != upcall.input().size()) return upcall.answer(MPI_ERR_SIZE);
  std::erase_if(windows_, [](const auto& entry) { return entry.second.expired(); });
  const auto window = std::make_shared<RegionWindow>(std::move(upcall), std::move(contexts), ++last_name_);
  windows_.emplace(window->name(), window);
  progress_.adopt(std::make_unique<Held>(window));
}

void RegionWindows::serve(Upcall upcall) {
  const auto entry = windows_.find(upcall.arguments().handle);
  const auto window = entry == windows_.end() ? nullptr : entry->second.lock();
  if (window == nullptr) return upcall.answer(MPI_ERR_WIN);
  window->serve(std::move(upcall));
}

std::shared_ptr<RegionWindow> RegionWindows::partner_of(const HostWindow& host) {
  for (const auto& [name, weak] : windows_) {
    auto window = weak.lock();
    if (window == nullptr || window->alone()) continue;
    if (window->contexts() == host.contexts.get() && window->number() == host.number) return window;
  }
  return nullptr;
}

bool HostTask::advance() {
  const auto partner = windows_.partner_of(*host_);
  if (partner == nullptr || !partner->reachable()) return false;
  run_(*partner, host_);
  return true;
}

}  // namespace offpath::mpi::regions
