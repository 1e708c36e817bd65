/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files as few programs use them: each argument one way. */
#include "files.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
  unsigned char value; /* 2: it makes collective calls, too, as one thread may */
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
    } else if (i % 4 == 1 && writer->value == 2) {
      MPI_File_write_all(writer->file, own, writer->length, MPI_BYTE, MPI_STATUS_IGNORE);
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

enum { SEEKS = 200, FAR = 1 << 20 };

static atomic_int written, sought;

static void* write_until_sought(void* argument) {
  MPI_Request request;
  while (!atomic_load(&sought)) {
    MPI_File_iwrite(*(MPI_File*)argument, bytes, LONG, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    atomic_fetch_add(&written, 1);
  }
  return NULL;
}

/* Another thread moves the pointer: the next write begins where it is. */
static void seek_beside_writes(void) {
  MPI_File file = open_own("sought", 0);
  pthread_t thread;
  long holes = 0;
  pthread_create(&thread, NULL, &write_until_sought, &file);
  for (int i = 1; i <= SEEKS; ++i) {
    MPI_File_seek(file, (MPI_Offset)i * FAR, MPI_SEEK_SET);
    const int before = atomic_load(&written);
    while (atomic_load(&written) < before + 2) sched_yield();
  }
  atomic_store(&sought, 1);
  pthread_join(thread, NULL);
  for (int i = 1; i <= SEEKS; ++i) {
    unsigned char byte = 0;
    MPI_File_read_at(file, (MPI_Offset)i * FAR, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    holes += byte != bytes[0];
  }
  show("sought", holes, 0);
  MPI_File_close(&file);
}

/* Its name is gone before it is written to. */
static void removed(void) {
  static unsigned char back[LONG];
  MPI_File file;
  MPI_Request requests[2];
  MPI_Offset size = 0;
  char own[64];
  snprintf(own, sizeof(own), "removed%d", rank);
  MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  remove(own);
  for (int i = 0; i < 2; ++i) MPI_File_iwrite_at(file, i * LONG, bytes, LONG, MPI_BYTE, &requests[i]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_File_iread_at(file, LONG, back, LONG, MPI_BYTE, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_File_get_size(file, &size);
  MPI_File_close(&file);
  show("removed", (long)size, size_of(own));
  show("removed", memcmp(bytes, back, LONG), 0);
}

/* A terabyte of nothing first. */
static void sparse(void) {
  static unsigned char back[LONG];
  const MPI_Offset far = 1LL << 40;
  MPI_File file = open_own("sparse", 0);
  MPI_Request request;
  MPI_Status status;
  MPI_Offset size = 0, position = 0;
  MPI_File_iwrite_at(file, far, bytes, LONG, MPI_BYTE, &request);
  MPI_Wait(&request, &status);
  show("sparse", count_of(&status, MPI_BYTE), 0);
  MPI_File_set_view(file, far, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  MPI_File_seek(file, far / 4, MPI_SEEK_SET);
  MPI_File_write_all_begin(file, bytes, LONG / 4, MPI_INT);
  MPI_File_write_all_end(file, bytes, &status);
  MPI_File_get_position(file, &position);
  MPI_File_get_size(file, &size);
  show("sparse", count_of(&status, MPI_INT), (long)position);
  MPI_File_iread_at(file, far / 4, back, LONG / 4, MPI_INT, &request);
  MPI_Wait(&request, &status);
  show("sparse", (long)size, memcmp(bytes, back, LONG));
  MPI_File_close(&file);
}

static int syncs;

/* The libraries', and ours. */
__attribute__((visibility("default"))) int fsync(int descriptor) {
  ++syncs;
  return (int)syscall(SYS_fsync, descriptor);
}

/* What nobody but the service has written is brought to the disk. */
static void synced(void) {
  MPI_File file = open_new("synced.dat");
  MPI_File_write_at_all_begin(file, rank * LONG, bytes, LONG, MPI_BYTE);
  MPI_File_write_at_all_end(file, bytes, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  show("synced", syncs > 0, 0);
  MPI_File_close(&file);
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
  if (strcmp(how, "sought") == 0) seek_beside_writes();
  if (strcmp(how, "removed") == 0) removed();
  if (strcmp(how, "sparse") == 0) sparse();
  if (strcmp(how, "synced") == 0) synced();
  if (strcmp(how, "run") == 0) run();
  if (strcmp(how, "limited") == 0) limited();
  if (strcmp(how, "spawned") == 0) spawned(argv[0]);
  MPI_Finalize();
  return 0;
}
