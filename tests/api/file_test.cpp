// SPDX-License-Identifier: BSD-3-Clause
// Files: transfers between memory and files, against what pwrite() and pread() would do.
#include "job.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

namespace offpath::testing {
namespace {

struct OpenFile {
  explicit OpenFile(offpath_session_t* session, int flags = 0) : descriptor(memfd_create("file", MFD_CLOEXEC)) {
    if (flags != 0) fcntl(descriptor, F_SETFL, flags);
    offpath_error_t error{};
    REQUIRE_STATUS(offpath_file_open(session, descriptor, &file, &error), OFFPATH_OK);
  }
  ~OpenFile() {
    offpath_file_close(file);
    close(descriptor);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor;
  offpath_file_t* file = nullptr;
};

offpath_file_transfer_t transfer_of(const void* memory, uint64_t bytes, uint64_t offset) {
  offpath_file_transfer_t out{};
  out.struct_bytes = sizeof(out);
  out.memory = {0, 0, memory, bytes, 0};
  out.offset_bytes = offset;
  return out;
}

struct End {
  offpath_status_t status;
  offpath_file_result_t result;
};

End await(offpath_op_t* op) {
  End end{};
  end.result.struct_bytes = sizeof(end.result);
  end.status = offpath_op_wait(op, kLongNs);
  REQUIRE_STATUS(offpath_file_result(op, &end.result), OFFPATH_OK);
  offpath_op_free(op);
  return end;
}

End write(offpath_file_t* file, const offpath_file_transfer_t& transfer) {
  offpath_op_t* op = nullptr;
  REQUIRE_STATUS(offpath_file_write(file, &transfer, &op), OFFPATH_OK);
  return await(op);
}

End read(offpath_file_t* file, const offpath_file_transfer_t& transfer) {
  offpath_op_t* op = nullptr;
  REQUIRE_STATUS(offpath_file_read(file, &transfer, &op), OFFPATH_OK);
  return await(op);
}

std::vector<uint8_t> contents(int descriptor) {
  struct stat about {};
  REQUIRE(fstat(descriptor, &about) == 0);
  std::vector<uint8_t> bytes(static_cast<size_t>(about.st_size));
  REQUIRE(pread(descriptor, bytes.data(), bytes.size(), 0) == about.st_size);
  return bytes;
}

TEST(File, WhatIsWrittenIsRead) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = p.attach();
    {
      const OpenFile file(session);
      void* shared = nullptr;
      constexpr uint64_t kBytes = (3 << 20) + 17;
      REQUIRE_STATUS(offpath_memory_allocate(session, kBytes, &shared), OFFPATH_OK);
      std::vector<uint8_t> own(kBytes), back(kBytes);
      for (uint64_t i = 0; i < kBytes; ++i) own[i] = static_cast<uint8_t>(i * 7 + i / 256);
      memcpy(shared, own.data(), kBytes);
      for (const void* memory : {static_cast<const void*>(own.data()), static_cast<const void*>(shared)}) {
        REQUIRE(ftruncate(file.descriptor, 0) == 0);
        End end = write(file.file, transfer_of(memory, kBytes, 1001));
        REQUIRE(end.status == OFFPATH_OK && end.result.bytes == kBytes && end.result.system_error == 0);
        const auto there = contents(file.descriptor);
        REQUIRE(there.size() == 1001 + kBytes && memcmp(there.data() + 1001, own.data(), kBytes) == 0);
        end = read(file.file, transfer_of(back.data(), kBytes, 1001));
        REQUIRE(end.status == OFFPATH_OK && end.result.bytes == kBytes && back == own);
        memset(shared, 1, kBytes);
        REQUIRE(read(file.file, transfer_of(shared, kBytes, 1001)).status == OFFPATH_OK);
        REQUIRE(memcmp(shared, own.data(), kBytes) == 0);
      }
      offpath_session_counters_t counters{};
      counters.struct_bytes = sizeof(counters);
      REQUIRE_STATUS(offpath_session_counters(session, &counters), OFFPATH_OK);
      REQUIRE(counters.file_bytes == 6 * kBytes && counters.failed_count == 0);
      REQUIRE(write(file.file, transfer_of(nullptr, 0, 5)).status == OFFPATH_OK);
    }
    offpath_session_detach(session);
  });
}

TEST(File, AReadEndsWhereTheFileEnds) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = p.attach();
    {
      const OpenFile file(session);
      REQUIRE(pwrite(file.descriptor, "0123456789", 10, 0) == 10);
      char bytes[32];
      memset(bytes, 'x', sizeof(bytes));
      End end = read(file.file, transfer_of(bytes, 20, 4));
      REQUIRE(end.status == OFFPATH_OK && end.result.bytes == 6 && memcmp(bytes, "456789xxxx", 10) == 0);
      end = read(file.file, transfer_of(bytes, 20, 10));
      REQUIRE(end.status == OFFPATH_OK && end.result.bytes == 0 && memcmp(bytes, "456789xxxx", 10) == 0);
      const offpath_range_t ranges[] = {{0, 2}, {4, 1}};
      const offpath_layout_t layout{3, 6, ranges, 2};
      offpath_file_transfer_t strided = transfer_of(bytes, 9, 0);
      strided.layouts = &layout;
      strided.layouts_count = strided.layout = 1;
      strided.skip_bytes = 1;  // 1 4 67 .. is what the file has
      end = read(file.file, strided);
      REQUIRE(end.status == OFFPATH_OK && end.result.bytes == 4 && memcmp(bytes, "146789xxxx", 4) == 0);
    }
    offpath_session_detach(session);
  });
}

// Elements in memory and file; against a copy byte by byte.
TEST(File, RandomLayouts) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = p.attach();
    {
      const OpenFile file(session);
      std::mt19937_64 random(3);
      std::vector<uint8_t> model, memory(1 << 18), back(1 << 18), wanted;
      for (int round = 0; round < 60; ++round) {
        for (uint8_t& byte : memory) byte = static_cast<uint8_t>(random());
        std::vector<offpath_range_t> ranges[2];
        offpath_layout_t layouts[2];
        for (int i = 0; i < 2; ++i) {
          uint64_t at = 0, size = 0;
          for (size_t count = 1 + random() % 5; count > 0; --count) {
            at += random() % 50;
            const uint64_t bytes = 1 + random() % 300;
            ranges[i].push_back({static_cast<int64_t>(at), bytes});
            at += bytes;
            size += bytes;
          }
          layouts[i] = {size, static_cast<int64_t>(at + random() % 40), ranges[i].data(),
                        static_cast<uint32_t>(ranges[i].size())};
        }
        const uint64_t most = memory.size() / static_cast<uint64_t>(layouts[0].extent_bytes) * layouts[0].size_bytes;
        offpath_file_transfer_t transfer = transfer_of(memory.data(), random() % most, random() % 1000);
        transfer.memory.layout = 1;
        transfer.layouts = layouts;
        transfer.layouts_count = transfer.layout = 2;
        transfer.skip_bytes = random() % 500;
        const auto place = [](const offpath_layout_t& layout, uint64_t data) {
          uint64_t within = data % layout.size_bytes;
          for (const offpath_range_t* range = layout.ranges;; ++range) {
            const uint64_t at = data / layout.size_bytes * static_cast<uint64_t>(layout.extent_bytes) +
                                static_cast<uint64_t>(range->offset_bytes);
            if (within < range->bytes) return at + within;
            within -= range->bytes;
          }
        };
        back.assign(back.size(), 0xEE);
        wanted = back;
        for (uint64_t i = 0; i < transfer.memory.bytes; ++i) {
          const uint64_t at = transfer.offset_bytes + place(layouts[1], transfer.skip_bytes + i);
          const uint64_t from = place(layouts[0], i);
          if (model.size() <= at) model.resize(at + 1);
          model[at] = wanted[from] = memory[from];
        }
        REQUIRE(write(file.file, transfer).status == OFFPATH_OK);
        REQUIRE(contents(file.descriptor) == model);
        transfer.memory.address = back.data();
        REQUIRE(read(file.file, transfer).status == OFFPATH_OK);
        REQUIRE(back == wanted);
      }
    }
    offpath_session_detach(session);
  });
}

TEST(File, AfterOthersAndManyAtATime) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = p.attach();
    {
      constexpr uint64_t kBytes = 100000, kCount = 1500;  // more than there are slots
      const OpenFile file(session);
      std::vector<std::vector<uint8_t>> blocks(8, std::vector<uint8_t>(kBytes));
      for (size_t i = 0; i < blocks.size(); ++i) memset(blocks[i].data(), static_cast<int>(i + 1), kBytes);
      std::vector<offpath_op_t*> ops;
      ops.reserve(kCount);
      for (uint64_t i = 0; i < kCount; ++i) {
        offpath_file_transfer_t transfer = transfer_of(blocks[i % 8].data(), kBytes, i / 8 % 4 * kBytes);
        transfer.after = ops.empty() ? nullptr : &ops.back();
        transfer.after_count = ops.empty() ? 0 : 1;
        ops.push_back(nullptr);
        REQUIRE_STATUS(offpath_file_write(file.file, &transfer, &ops.back()), OFFPATH_OK);
      }
      for (offpath_op_t* op : ops) REQUIRE(await(op).status == OFFPATH_OK);
      const auto there = contents(file.descriptor);
      REQUIRE(there.size() == 4 * kBytes);
      for (uint64_t last = (kCount / 8 - 3) * 8; last < kCount; ++last) {
        if (last % 8 != 7 && last + 1 < kCount) continue;  // what came last to its place
        const uint64_t at = last / 8 % 4 * kBytes;
        REQUIRE(there[at] == last % 8 + 1 && memcmp(&there[at], blocks[last % 8].data(), kBytes) == 0);
      }
      // One that fails, and what comes after it.
      offpath_op_t *bad = nullptr, *later = nullptr;
      offpath_file_transfer_t wild = transfer_of(reinterpret_cast<void*>(4096), 100, 0);
      REQUIRE_STATUS(offpath_file_write(file.file, &wild, &bad), OFFPATH_OK);
      offpath_file_transfer_t good = transfer_of(blocks[0].data(), 10, 0);
      good.after = &bad;
      good.after_count = 1;
      REQUIRE_STATUS(offpath_file_write(file.file, &good, &later), OFFPATH_OK);
      REQUIRE(await(later).status == OFFPATH_ERR_DEPENDENCE);
      REQUIRE(await(bad).status == OFFPATH_ERR_MEMORY_FAULT);
    }
    offpath_session_detach(session);
  });
}

TEST(File, MistakesAndRefusals) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = p.attach();
    {
      offpath_file_t* none = nullptr;
      offpath_error_t error{};
      REQUIRE_STATUS(offpath_file_open(session, -1, &none, &error), OFFPATH_ERR_ARGUMENT);
      int pipes[2];
      REQUIRE(pipe(pipes) == 0);
      REQUIRE_STATUS(offpath_file_open(session, pipes[1], &none, &error), OFFPATH_ERR_ARGUMENT);
      REQUIRE(none == nullptr && strstr(error.text, "no plain file") != nullptr);
      const int append = memfd_create("append", MFD_CLOEXEC);
      fcntl(append, F_SETFL, O_APPEND);
      REQUIRE_STATUS(offpath_file_open(session, append, &none, &error), OFFPATH_ERR_ARGUMENT);
      for (const int descriptor : {pipes[0], pipes[1], append}) close(descriptor);

      const OpenFile file(session);
      uint8_t byte = 0;
      offpath_op_t* op = nullptr;
      const auto wrong = [&](auto change) {
        offpath_file_transfer_t bad = transfer_of(&byte, 1, 0);
        change(bad);
        REQUIRE_STATUS(offpath_file_write(file.file, &bad, &op), OFFPATH_ERR_ARGUMENT);
      };
      wrong([](auto& bad) { bad.struct_bytes -= 4; });
      wrong([](auto& bad) { bad.flags = 2; });
      wrong([](auto& bad) { bad.reserved = 1; });
      wrong([](auto& bad) { bad.memory.peer = 1; });
      wrong([](auto& bad) { bad.memory.layout = 1; });
      wrong([](auto& bad) { bad.layout = 1; });
      wrong([](auto& bad) { bad.layouts_count = 1; });
      wrong([](auto& bad) { bad.after_count = 1; });
      wrong([](auto& bad) { bad.offset_bytes = UINT64_MAX; });
      wrong([](auto& bad) { bad.skip_bytes = UINT64_MAX; });

      const int read_only = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
      offpath_file_t* own = nullptr;
      REQUIRE_STATUS(offpath_file_open(session, read_only, &own, &error), OFFPATH_OK);
      const End end = write(own, transfer_of(&byte, 1, 0));
      REQUIRE(end.status == OFFPATH_ERR_FILE && end.result.system_error == EBADF && end.result.bytes == 0);
      REQUIRE(read(own, transfer_of(&byte, 1, 1)).status == OFFPATH_OK && byte == 'E');
      offpath_file_close(own);
      close(read_only);
      const int sealed = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
      REQUIRE(fcntl(sealed, F_ADD_SEALS, F_SEAL_WRITE) == 0);
      REQUIRE_STATUS(offpath_file_open(session, sealed, &own, &error), OFFPATH_OK);
      REQUIRE(write(own, transfer_of(&byte, 1, 0)).result.system_error == EPERM);
      offpath_file_close(own);
      close(sealed);
    }
    offpath_session_detach(session);
  });
}

TEST(File, AsManyAsThereIsRoomFor) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = p.attach();
    const int descriptor = memfd_create("file", MFD_CLOEXEC);
    offpath_error_t error{};
    std::vector<offpath_file_t*> files;
    for (int round = 0; round < 2; ++round) {
      offpath_file_t* file = nullptr;
      while (offpath_file_open(session, descriptor, &file, &error) == OFFPATH_OK) files.push_back(file);
      REQUIRE(files.size() == 1024 && error.status == OFFPATH_ERR_NO_MEMORY);
      uint8_t byte = 5;
      REQUIRE(write(files.back(), transfer_of(&byte, 1, 7)).status == OFFPATH_OK);
      for (offpath_file_t* each : files) offpath_file_close(each);
      files.clear();
    }
    close(descriptor);
    offpath_session_detach(session);
  });
}

// The limit of the service's process is the client's, which has started it.
TEST(File, TooLong) {
  Job(1).run([](Process& p) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    setenv("OFFPATH_SHARED_MEMORY_BYTES", "0", 1);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    offpath_session_t* session = p.attach();
    const pid_t service = service_of(session);
    REQUIRE(prlimit(service, RLIMIT_FSIZE, &limit, nullptr) == 0);
    {
      const OpenFile file(session);
      std::vector<uint8_t> bytes(2 << 20);
      const End end = write(file.file, transfer_of(bytes.data(), bytes.size(), 0));
      REQUIRE(end.status == OFFPATH_ERR_FILE && end.result.system_error == EFBIG);
      REQUIRE(write(file.file, transfer_of(bytes.data(), 1000, 0)).status == OFFPATH_OK);
    }
    offpath_session_detach(session);
  });
}

TEST(File, ALostServiceWritesNoMore) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = p.attach();
    {
      const OpenFile file(session);
      std::vector<uint8_t> bytes(64 << 20, 7);
      offpath_op_t* op = nullptr;
      const offpath_file_transfer_t transfer = transfer_of(bytes.data(), bytes.size(), 0);
      REQUIRE_STATUS(offpath_file_write(file.file, &transfer, &op), OFFPATH_OK);
      REQUIRE(kill(service_of(session), SIGKILL) == 0);
      REQUIRE(eventually([&] { return offpath_session_alive(session) == 0; }));
      const offpath_status_t status = offpath_op_wait(op, kLongNs);
      REQUIRE(status == OFFPATH_OK || status == OFFPATH_ERR_SERVICE_LOST || status == OFFPATH_ERR_NOT_STARTED);
      offpath_op_free(op);
      REQUIRE_STATUS(offpath_file_write(file.file, &transfer, &op), OFFPATH_ERR_NOT_STARTED);
      offpath_file_t* none = nullptr;
      REQUIRE_STATUS(offpath_file_open(session, file.descriptor, &none, nullptr), OFFPATH_ERR_SERVICE_LOST);
    }
    offpath_session_detach(session);
  });
}

}  // namespace
}  // namespace offpath::testing
