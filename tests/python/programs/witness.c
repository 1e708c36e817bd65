/* Stands in for the preload library: when a rank that has it ends, it leaves one line of statistics. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char* program_invocation_short_name;

__attribute__((destructor)) static void leave_a_line(void) {
  const char* name = getenv("OFFPATH_STATS_FILE");
  if (!name || strncmp(program_invocation_short_name, "hello", 5) != 0) return;
  char host[64] = "", line[512];
  gethostname(host, sizeof host - 1);
  const char *cores = getenv("OFFPATH_SERVICE_CORES"), *wrapper = getenv("OFFPATH_SERVICE_WRAPPER");
  const char *folder = getenv("OFFPATH_RUNTIME_DIR"), *policy = getenv("OFFPATH_POLICY");
  int length = snprintf(line, sizeof line,
                        "{\"node\": \"%s\", \"offloaded_count\": 2, \"offloaded_bytes\": 1024, \"native_count\": 1, "
                        "\"reason\": \"policy\","
                        " \"cores\": \"%s\", \"wrapper\": \"%s\", \"folder\": \"%s\", \"policy\": \"%s\"}\n",
                        host, cores ? cores : "", wrapper ? wrapper : "", folder ? folder : "", policy ? policy : "");
  int file = open(name, O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (file >= 0 && write(file, line, (size_t)length) < 0) perror("witness");
  if (file >= 0) close(file);
}
