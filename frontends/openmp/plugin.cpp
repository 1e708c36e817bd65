// SPDX-License-Identifier: BSD-3-Clause
// The libomptarget plugin (LLVM 13 to 16): translates its entries into calls of a Device. Built once per architecture.
// A failure is one line to the user and a failed call; libomptarget then decides what becomes of the program.
#include "openmp/devices.hpp"
#include "openmp/omptarget.hpp"

#include <elf.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>

using offpath::base::ErrnoGuard;
using offpath::base::Status;
using offpath::device::Device;
using offpath::device::Queue;
using offpath::openmp::Devices;
using offpath::openmp::say;

// How many devices libomptarget has numbered: those of a plugin when it first takes an image. One for both plugins, as
// the loader makes one symbol of it (unique).
inline std::atomic<int> __tgt_rtl_offpath_numbered{0};

namespace {

constexpr int32_t kOk = 0;
constexpr int32_t kFailed = 1;
constexpr int64_t kUnifiedSharedMemory = 8;  // of `omp requires`

int64_t required = 0;

// Never destroyed: libomptarget's own end comes after that of our objects.
Devices& devices() {
  static Devices& all = []() -> Devices& {
    static auto* const made = new Devices(OFFPATH_PLUGIN_MACHINE);
    pthread_atfork(nullptr, nullptr, [] { made->leave_to_parent(); });
    return *made;
  }();
  return all;
}

Device* device_of(int32_t number) { return devices().opened(static_cast<size_t>(number)); }

int32_t done(const Status& status) {
  if (status.ok()) return kOk;
  say(status);
  return kFailed;
}

Queue& queue_of(OmpAsync* async) {
  if (async->queue == nullptr) async->queue = new Queue;
  return *static_cast<Queue*>(async->queue);
}

uint64_t address(const void* target) { return reinterpret_cast<uint64_t>(target); }

Status launch(Device& device, void* entry, void** args, const ptrdiff_t* offsets, int32_t count, Queue& queue) {
  if (count < 0 || static_cast<uint32_t>(count) > offpath::device::kMaxArguments) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a region with %d arguments (limit %u). Map a struct instead", count,
                         offpath::device::kMaxArguments);
  }
  uint64_t arguments[offpath::device::kMaxArguments];
  for (int32_t i = 0; i < count; ++i) arguments[i] = address(args[i]) + static_cast<uint64_t>(offsets[i]);
  return device.launch(address(entry), {arguments, static_cast<size_t>(count)}, queue);
}

// Issues something into a queue of its own and waits for it.
template <typename Issue>
int32_t at_once(int32_t number, Issue issue) {
  const ErrnoGuard guard;
  Queue queue;
  Device& device = *device_of(number);
  const Status issued = issue(device, queue);
  const Status waited = device.wait(queue);
  return done(issued.ok() ? waited : issued);
}

template <typename Issue>
int32_t later(int32_t number, OmpAsync* async, Issue issue) {
  if (async == nullptr) return at_once(number, issue);
  const ErrnoGuard guard;
  return done(issue(*device_of(number), queue_of(async)));
}

// Tables that libomptarget keeps pointers to.
struct Table : OmpTable {
  std::vector<OmpEntry> entries;
};

}  // namespace

extern "C" {

int32_t __tgt_rtl_number_of_devices() {
  const ErrnoGuard guard;
  return static_cast<int32_t>(devices().count());
}

int32_t __tgt_rtl_is_valid_binary(OmpImage* image) {
  const auto* header = static_cast<const Elf64_Ehdr*>(image->begin);
  const auto bytes = static_cast<const char*>(image->end) - static_cast<const char*>(image->begin);
  const bool is_ours = bytes >= static_cast<ptrdiff_t>(sizeof(*header)) &&
                       memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
                       header->e_machine == OFFPATH_PLUGIN_MACHINE;
  static std::once_flag numbered;
  if (is_ours) {
    std::call_once(numbered, [] {
      const auto count = static_cast<int>(devices().count());
      devices().number_from(__tgt_rtl_offpath_numbered.fetch_add(count));
    });
  }
  return is_ours;
}

int64_t __tgt_rtl_init_requires(int64_t flags) {
  required = flags;
  return flags;
}

int32_t __tgt_rtl_init_device(int32_t number) {
  const ErrnoGuard guard;
  if ((required & kUnifiedSharedMemory) != 0) {
    return done(
        Status::error(OFFPATH_ERR_ARGUMENT,
                      "device %d: the program requires unified_shared_memory, which no device has. Map what its "
                      "regions use",
                      number));
  }
  return done(devices().get(static_cast<size_t>(number)).status());
}

OmpTable* __tgt_rtl_load_binary(int32_t number, OmpImage* image) {
  const ErrnoGuard guard;
  std::vector<const char*> names;
  for (const OmpEntry* entry = image->entries_begin; entry != image->entries_end; ++entry) names.push_back(entry->name);
  const auto* begin = static_cast<const uint8_t*>(image->begin);
  const auto addresses = device_of(number)->load({begin, static_cast<const uint8_t*>(image->end)}, names);
  if (!addresses.ok()) {
    say(addresses.status());
    return nullptr;
  }
  auto* table = new Table;
  table->entries.assign(image->entries_begin, image->entries_end);
  for (size_t i = 0; i < names.size(); ++i) table->entries[i].address = reinterpret_cast<void*>(addresses.value()[i]);
  table->begin = table->entries.data();
  table->end = table->begin + table->entries.size();
  return table;
}

void* __tgt_rtl_data_alloc(int32_t number, int64_t bytes, void*, int32_t) {
  const auto allocated = device_of(number)->allocate(static_cast<uint64_t>(bytes));
  if (allocated.ok()) return reinterpret_cast<void*>(allocated.value());
  const ErrnoGuard guard;
  say(allocated.status());
  return nullptr;
}

int32_t __tgt_rtl_data_delete(int32_t number, void* target) {
  const ErrnoGuard guard;
  return done(device_of(number)->release(address(target)));
}

int32_t __tgt_rtl_data_submit(int32_t number, void* target, void* host, int64_t bytes) {
  return at_once(number, [&](Device& device, Queue& queue) {
    return device.write(address(target), host, static_cast<uint64_t>(bytes), queue);
  });
}

int32_t __tgt_rtl_data_submit_async(int32_t number, void* target, void* host, int64_t bytes, OmpAsync* async) {
  return later(number, async, [&](Device& device, Queue& queue) {
    return device.write(address(target), host, static_cast<uint64_t>(bytes), queue);
  });
}

int32_t __tgt_rtl_data_retrieve(int32_t number, void* host, void* target, int64_t bytes) {
  return at_once(number, [&](Device& device, Queue& queue) {
    return device.read(host, address(target), static_cast<uint64_t>(bytes), queue);
  });
}

// The bytes are there when it returns: LLVM 13 and 14 put the host's pointers back into a structure with attached ones
// as soon as they have asked for it.
int32_t __tgt_rtl_data_retrieve_async(int32_t number, void* host, void* target, int64_t bytes, OmpAsync* async) {
  return later(number, async, [&](Device& device, Queue& queue) {
    const Status issued = device.read(host, address(target), static_cast<uint64_t>(bytes), queue);
    const Status waited = device.wait(queue);
    return issued.ok() ? waited : issued;
  });
}

int32_t __tgt_rtl_run_target_region(int32_t number, void* entry, void** args, ptrdiff_t* offsets, int32_t count) {
  return at_once(number,
                 [&](Device& device, Queue& queue) { return launch(device, entry, args, offsets, count, queue); });
}

int32_t __tgt_rtl_run_target_region_async(int32_t number, void* entry, void** args, ptrdiff_t* offsets, int32_t count,
                                          OmpAsync* async) {
  return later(number, async,
               [&](Device& device, Queue& queue) { return launch(device, entry, args, offsets, count, queue); });
}

// A CPU runs the teams of a region in its own way: how many there are is in its code.
int32_t __tgt_rtl_run_target_team_region(int32_t number, void* entry, void** args, ptrdiff_t* offsets, int32_t count,
                                         int32_t, int32_t, uint64_t) {
  return __tgt_rtl_run_target_region(number, entry, args, offsets, count);
}

int32_t __tgt_rtl_run_target_team_region_async(int32_t number, void* entry, void** args, ptrdiff_t* offsets,
                                               int32_t count, int32_t, int32_t, uint64_t, OmpAsync* async) {
  return __tgt_rtl_run_target_region_async(number, entry, args, offsets, count, async);
}

int32_t __tgt_rtl_launch_kernel(int32_t number, void* entry, void** args, ptrdiff_t* offsets,
                                OmpKernelArguments* arguments, OmpAsync* async) {
  return __tgt_rtl_run_target_region_async(number, entry, args, offsets, static_cast<int32_t>(arguments->count), async);
}

int32_t __tgt_rtl_synchronize(int32_t number, OmpAsync* async) {
  const ErrnoGuard guard;
  if (async == nullptr || async->queue == nullptr) return kOk;
  const std::unique_ptr<Queue> queue(static_cast<Queue*>(async->queue));
  async->queue = nullptr;
  return done(device_of(number)->wait(*queue));
}

void __tgt_rtl_print_device_info(int32_t number) {
  const ErrnoGuard guard;
  const auto device = devices().get(static_cast<size_t>(number));
  if (!device.ok()) return say(device.status());
  const auto& entry = devices().entry(static_cast<size_t>(number));
  const auto& about = device.value()->description();
  printf(
      "    Name:          %s\n    Kind:          %s\n    Architecture:  %s\n    Cores:         %u\n"
      "    Memory:        %llu bytes\n    Address:       %s\n    System:        %s\n    Limit:         %u programs\n",
      entry.name.c_str(), to_string(about.kind), offpath::device::machine_name(about.machine), about.cores,
      static_cast<unsigned long long>(about.heap_bytes), entry.address.c_str(), about.system, about.max_clients);
}

}  // extern "C"
