// SPDX-License-Identifier: BSD-3-Clause
// Transfers of files that cannot be, that the file system refuses, or whose service is lost.
#include "file.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <thread>

namespace offpath::testing {
namespace {

TEST(File, MistakesAndRefusals) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
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
  });
}

TEST(File, AsManyAsThereIsRoomFor) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
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
  });
}

// The limit of the service's process is the client's, which has started it.
TEST(File, TooLong) {
  Job(1).run([](Process& p) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    setenv("OFFPATH_SHARED_MEMORY_BYTES", "0", 1);
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

// A service that has no limit keeps that of the process, which may have set it later.
TEST(File, NoLongerThanTheProcessMay) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
    const OpenFile file(session);
    const rlimit limit{100, RLIM_INFINITY};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    const std::vector<uint8_t> bytes(100);
    offpath_op_t* op = nullptr;
    offpath_file_transfer_t transfer = transfer_of(bytes.data(), 100, 1);
    REQUIRE_STATUS(offpath_file_write(file.file, &transfer, &op), OFFPATH_ERR_ARGUMENT);
    transfer.offset_bytes = 0;
    REQUIRE(write(file.file, transfer).status == OFFPATH_OK);
    transfer.offset_bytes = 1;
    REQUIRE(read(file.file, transfer).result.bytes == 99);
    const offpath_range_t range{10, 20};
    const offpath_layout_t layout{20, 50, &range, 1};
    transfer.layouts = &layout;
    transfer.layouts_count = transfer.layout = 1;
    transfer.offset_bytes = 0;
    transfer.memory.bytes = 40;
    REQUIRE(write(file.file, transfer).status == OFFPATH_OK);
    transfer.memory.bytes = 41;
    REQUIRE_STATUS(offpath_file_write(file.file, &transfer, &op), OFFPATH_ERR_ARGUMENT);
  });
}

// Who closes waits for the service, but for none that is lost.
TEST(File, ClosingEndsWithTheService) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
    const int descriptor = memfd_create("file", MFD_CLOEXEC);
    offpath_file_t* file = nullptr;
    REQUIRE_STATUS(offpath_file_open(session, descriptor, &file, nullptr), OFFPATH_OK);
    const pid_t service = service_of(session);
    stop_process(service);
    std::thread closing([&] { offpath_file_close(file); });
    REQUIRE(kill(service, SIGKILL) == 0);
    closing.join();
    close(descriptor);
  });
}

TEST(File, ALostServiceWritesNoMore) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
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
  });
}

}  // namespace
}  // namespace offpath::testing
