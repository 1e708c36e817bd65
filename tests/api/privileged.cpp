// SPDX-License-Identifier: BSD-3-Clause
// For privileged_test.sh, as one binary that may be setuid:
//   attach   attaches, and prints what came of it
//   pose     does as a service would: listens where `attach` looks for one, until standard input ends; says who came
#include "session/link.hpp"

#include <offpath/offpath.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

constexpr uint8_t kToken[OFFPATH_TOKEN_BYTES] = {7};

int attach() {
  offpath_attach_params_t params{};
  params.struct_bytes = sizeof(params);
  memcpy(params.job_token, kToken, sizeof(kToken));
  offpath_session_t* session = nullptr;
  offpath_error_t error{};
  const offpath_status_t status = offpath_session_attach(&params, &session, &error);
  printf("euid %d: %s\n", static_cast<int>(geteuid()), status == OFFPATH_OK ? "attached" : error.text);
  offpath_session_detach(session);
  return 0;
}

int pose() {
  using namespace offpath;
  const auto folder = session::runtime_folder();
  if (!folder.ok()) return 1;
  const std::string path = session::socket_path(folder.value(), kToken);
  const auto listening = session::listen_at(path);
  if (!listening.ok()) return 1;
  puts("posing");
  fflush(stdout);
  pollfd waits[] = {{listening->get(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  while (poll(waits, 2, -1) > 0) {
    if ((waits[0].revents & POLLIN) != 0) {
      close(accept(listening->get(), nullptr, nullptr));
      puts("caught somebody");
    } else {
      break;
    }
  }
  unlink(path.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return argc > 1 && strcmp(argv[1], "pose") == 0 ? pose() : attach(); }
