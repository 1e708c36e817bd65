/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files as few programs use them: each argument one way. */
#include "files.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG = 20000, SHORT = 1000 };

static unsigned char bytes[100000];

static MPI_File open_own(const char* name, int at) {
  char own[64];
  MPI_File file;
  snprintf(own, sizeof(own), "%s%d.%d", name, rank, at);
  if (MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                    &file) != MPI_SUCCESS) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return file;
}

static long size_of(const char* name) {
  struct stat about;
  return stat(name, &about) == 0 ? (long)about.st_size : -1;
}

/* What stands before a colon is a driver's name or a part of the file's, as the library has it. */
static void prefixed(void) {
  MPI_Request request;
  if (rank == 0) fclose(fopen("named.dat", "wb"));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File file = open_new("ufs:named.dat");
  MPI_File_iwrite_at(file, rank * LONG, bytes, LONG, MPI_BYTE, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Barrier(MPI_COMM_WORLD);
  show("with prefix", size_of("named.dat"), size_of("ufs:named.dat"));
}

/* As many as the library has communicators for, or nearly. */
static void many(void) {
  enum { FILES = 1800 };
  static MPI_File files[FILES];
  MPI_Request request;
  for (int i = 0; i < FILES; ++i) {
    files[i] = open_own("many", i);
    MPI_File_iwrite(files[i], bytes, LONG, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < FILES; ++i) MPI_File_close(&files[i]);
  show("many", FILES, 0);
}

struct Writer {
  MPI_File file;
  int length;
  unsigned char value;
};

static void* write_often(void* argument) {
  struct Writer* writer = argument;
  unsigned char own[LONG];
  MPI_Request request;
  memset(own, writer->value, sizeof(own));
  for (int i = 0; i < 1000; ++i) {
    if (i % 2 == 0) {
      MPI_File_iwrite(writer->file, own, writer->length, MPI_BYTE, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_File_write(writer->file, own, writer->length, MPI_BYTE, MPI_STATUS_IGNORE);
    }
  }
  return NULL;
}

/* One pointer: each byte that was written has its place. */
static void by_threads(void) {
  MPI_File file = open_own("threads", 0);
  struct Writer writers[2] = {{file, LONG, 1}, {file, SHORT, 2}};
  pthread_t threads[2];
  MPI_Offset size = 0;
  long found[3] = {0};
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, &write_often, &writers[i]);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  MPI_File_get_size(file, &size);
  unsigned char* all = malloc((size_t)size);
  MPI_File_read_at(file, 0, all, (int)size, MPI_BYTE, MPI_STATUS_IGNORE);
  for (MPI_Offset i = 0; i < size; ++i) ++found[all[i] % 3];
  show("threads", (long)size, found[0]);
  show("threads", found[1], found[2]);
  MPI_File_close(&file);
  free(all);
}

/* A program that is written, closed and run: nobody else may have it open for writing. */
static void run(void) {
  static unsigned char program[1 << 20];
  const int from = open("/bin/true", O_RDONLY);
  const ssize_t length = read(from, program, sizeof(program));
  int bad = 0;
  close(from);
  for (int round = 0; round < 200 && rank == 0; ++round) {
    MPI_File file;
    MPI_Request request;
    int status = 0;
    MPI_File_open(MPI_COMM_SELF, "program", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_iwrite_at(file, 0, program, (int)length, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    chmod("program", 0755);
    const pid_t child = fork();
    if (child == 0) {
      char* const nothing[] = {NULL};
      execve("program", (char* const[]){(char*)"program", NULL}, nothing);
      _exit(1);
    }
    waitpid(child, &status, 0);
    bad += status != 0;
  }
  show("run", bad, 0);
}

/* The process may not write so much; the service could. */
static void limited(void) {
  const struct rlimit limit = {SHORT, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
  MPI_File file = open_own("limited", 0);
  MPI_Request request;
  MPI_Offset size = 0;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limit);
  if (MPI_File_iwrite_at(file, 0, bytes, LONG, MPI_BYTE, &request) == MPI_SUCCESS)
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  setrlimit(RLIMIT_FSIZE, &none);
  MPI_File_get_size(file, &size);
  show("limited", (long)size, 0);
  MPI_File_close(&file);
}

/* With a process of another world, which may not be offloaded. */
static void spawned(char* self) {
  char* arguments[] = {(char*)"spawned", NULL};
  char folder[4096] = "";
  MPI_Comm parent, between, all;
  MPI_Request request;
  MPI_Comm_get_parent(&parent);
  between = parent;
  if (parent == MPI_COMM_NULL)
    MPI_Comm_spawn(self, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
  MPI_Intercomm_merge(between, parent != MPI_COMM_NULL, &all);
  int mine = 0;
  MPI_Comm_rank(all, &mine);
  if (getcwd(folder, sizeof(folder) - 32) == NULL) MPI_Abort(all, 1);
  strcat(folder, "/spawned.dat");
  MPI_Bcast(folder, sizeof(folder), MPI_CHAR, 0, all);
  MPI_File file;
  MPI_File_open(all, folder, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  MPI_File_iwrite_at_all(file, (MPI_Offset)mine * LONG, bytes, LONG, MPI_BYTE, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  if (parent == MPI_COMM_NULL) show("spawned", size_of(folder), 0);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&between);
}

int main(int argc, char** argv) {
  int granted = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* how = argc > 1 ? argv[1] : "";
  memset(bytes, 7, sizeof(bytes));
  if (strcmp(how, "prefixed") == 0) prefixed();
  if (strcmp(how, "many") == 0) many();
  if (strcmp(how, "threads") == 0) by_threads();
  if (strcmp(how, "run") == 0) run();
  if (strcmp(how, "limited") == 0) limited();
  if (strcmp(how, "spawned") == 0) spawned(argv[0]);
  MPI_Finalize();
  return 0;
}
