// SPDX-License-Identifier: BSD-3-Clause
// Files: transfers between memory and files, against what pwrite() and pread() would do.
#include "file.hpp"

#include <cstring>
#include <filesystem>
#include <random>
#include <string>

namespace offpath::testing {
namespace {

TEST(File, WhatIsWrittenIsRead) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
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
    const offpath_session_counters_t counters = counters_of(session);
    REQUIRE(counters.file_bytes == 6 * kBytes && counters.failed_count == 0);
    REQUIRE(write(file.file, transfer_of(nullptr, 0, 5)).status == OFFPATH_OK);
  });
}

TEST(File, AReadEndsWhereTheFileEnds) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
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
  });
}

// Elements in memory and file; against a copy byte by byte.
TEST(File, RandomLayouts) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
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
  });
}

TEST(File, AfterOthersAndManyAtATime) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
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
  });
}

// Whoever closes a file may run it, unmount its file system, or need its room at once.
TEST(File, NobodyHasWhatIsClosed) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
    const std::string folder = "/proc/" + std::to_string(service_of(session)) + "/fd";
    for (int round = 0; round < 200; ++round) {
      {
        const OpenFile file(session);
        REQUIRE(write(file.file, transfer_of("bytes", 5, 0)).status == OFFPATH_OK);
      }
      for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        std::error_code gone;
        REQUIRE(std::filesystem::read_symlink(entry, gone).string().find("memfd:file ") == std::string::npos);
      }
    }
  });
}

// What was posted belongs to its file, also when that is closed before it begins, and another one has its number.
TEST(File, ClosedBeforeItsTransfersBegin) {
  Job(2).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    if (p.rank == 1) p.barrier();
    offpath_collective_t all{};
    all.struct_bytes = sizeof(all);
    all.kind = OFFPATH_BARRIER;
    offpath_op_t *met = nullptr, *written = nullptr;
    REQUIRE_STATUS(offpath_collective(team, &all, &met), OFFPATH_OK);
    if (p.rank == 1) {
      p.wait_ok(met);
      return offpath_op_free(met);
    }
    const int first = memfd_create("first", MFD_CLOEXEC);
    offpath_file_t* closed = nullptr;
    REQUIRE_STATUS(offpath_file_open(session, first, &closed, nullptr), OFFPATH_OK);
    offpath_file_transfer_t transfer = transfer_of("here", 4, 0);
    transfer.after = &met;
    transfer.after_count = 1;
    REQUIRE_STATUS(offpath_file_write(closed, &transfer, &written), OFFPATH_OK);
    offpath_file_close(closed);
    {
      const OpenFile second(session);
      p.barrier();
      REQUIRE(await(written).status == OFFPATH_OK);
      REQUIRE(contents(second.descriptor).empty() && contents(first).size() == 4);
    }
    offpath_op_free(met);
    close(first);
  });
}

}  // namespace
}  // namespace offpath::testing
