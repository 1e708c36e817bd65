// SPDX-License-Identifier: BSD-3-Clause
// ServedFiles: the files of one client: descriptors that it has handed over, and transfers between them and its memory. The client has
// opened them, with its own rights; nothing here opens a path. Owned by the ServedClient; on the worker's thread.
#pragma once

#include "base/fd.hpp"
#include "engine/engine.hpp"
#include "files/transfer.hpp"
#include "memory/file.hpp"
#include "ops/files/transfer.hpp"
#include "session/segment_view.hpp"
#include "tasks/order.hpp"

#include <functional>
#include <memory>
#include <unordered_map>

namespace offpath::service {

class ServedFiles {
 public:
  static constexpr uint64_t kContext = uint64_t{1} << 34;  // of an operation; the rest is the slot's index
  using Finish = std::function<void(uint32_t index, offpath_status_t status)>;

  // Of that worker, and of the client; all stay. `finish`: ends a transfer.
  ServedFiles(engine::Engine& engine, memory::FileThreads& threads, uint32_t worker, engine::ClientId client,
              session::SegmentView& view, tasks::Order& order, Finish finish)
      : engine_(engine),
        threads_(threads),
        worker_(worker),
        client_(client),
        view_(view),
        order_(order),
        finish_(std::move(finish)) {}

  // A descriptor has come for one of them; none: this process could not take it.
  void take(uint32_t number, base::Fd descriptor);
  base::Status open(uint32_t index, const session::Slot& slot);
  void close(uint32_t number) { files_.erase(number); }
  base::Status ask(uint32_t index, const session::Slot& slot, ops::FileWay way);
  // What a transfer comes after has ended.
  void decide(const tasks::Order::Decided& decided);
  void end(uint32_t index, const base::Status& status);

 private:
  using Descriptor = std::shared_ptr<const memory::OpenFile>;
  // A transfer that was asked for, whose file the client may have closed meanwhile, and one under way.
  struct Asked {
    ops::FileWay way;
    Descriptor file;
    files::Transfer transfer;
  };
  struct Begun {
    uint64_t bytes = 0;
    std::shared_ptr<memory::FileError> error;
  };

  base::Status adopt(uint32_t number, base::Fd descriptor);
  base::Status begin(uint32_t index, Asked asked);
  base::Result<engine::TeamHandle> own_team();

  engine::Engine& engine_;
  memory::FileThreads& threads_;
  const uint32_t worker_;
  const engine::ClientId client_;
  session::SegmentView& view_;
  tasks::Order& order_;
  const Finish finish_;
  std::unordered_map<uint32_t, Descriptor> files_;  // by number
  std::unordered_map<uint32_t, base::Fd> passed_;   // likewise; have come, and are not opened yet
  std::unordered_map<uint32_t, uint32_t> awaited_;  // likewise: the slots of those that have not come
  std::unordered_map<uint32_t, Asked> waiting_;     // by slot
  std::unordered_map<uint32_t, Begun> begun_;       // likewise
  engine::TeamHandle own_team_ = 0;                 // of the client alone; 0: not needed so far
  uint64_t next_ = 0;
};

}  // namespace offpath::service
