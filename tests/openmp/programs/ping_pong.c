// SPDX-License-Identifier: BSD-3-Clause
// TCP between two devices, asynchronously: one region listens and answers, another connects and asks, and the host
// counts meanwhile. With one device both regions run there.
#include "check.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ITERATIONS = 20 };

#pragma omp declare target
static int listener = -1;

static int tcp_listen(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof(address);
  listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0 || bind(listener, (struct sockaddr*)&address, length) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (struct sockaddr*)&address, &length) != 0) {
    return -1;
  }
  return ntohs(address.sin_port);
}

static int tcp_connect(int port) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  return connect(fd, (struct sockaddr*)&address, sizeof(address)) == 0 ? fd : -1;
}

static int ping_pong(int fd, char mode) {
  int m = 0;
  for (int i = 0; i < ITERATIONS; i++) {
    if (mode == 'c') {
      printf("to server > %02d\n", m);
      send(fd, &m, sizeof(m), 0);
      recv(fd, &m, sizeof(m), MSG_WAITALL);
      m++;
    } else {
      recv(fd, &m, sizeof(m), MSG_WAITALL);
      m++;
      printf("to client > %02d\n", m);
      send(fd, &m, sizeof(m), 0);
    }
  }
  return m;
}
#pragma omp end declare target

int main(void) {
  check_place();
  const int client = omp_get_num_devices() > 1 ? 1 : 0;
  int port = 0, asked = 0, answered = 0;
#pragma omp target device(0) map(from : port)
  port = tcp_listen();
  CHECK(port > 0);
#pragma omp target nowait device(0) map(from : answered)
  {
    const int fd = accept(listener, NULL, NULL);
    answered = ping_pong(fd, 's');
    close(fd);
    close(listener);
  }
#pragma omp target nowait device(client) map(from : asked) firstprivate(port)
  {
    const int fd = tcp_connect(port);
    asked = ping_pong(fd, 'c');
    close(fd);
  }
  long host = 0;
  for (long i = 0; i < 1000000; i++) {
    host += i % 7;
  }
#pragma omp taskwait
  CHECK(asked == 2 * ITERATIONS && answered == 2 * ITERATIONS - 1 && host > 0);
  return check_status();
}
