/* SPDX-License-Identifier: BSD-3-Clause
 * Files by calls with large counts, which a program finds at run time. All must be there. "beyond": more elements than an int counts. */
#define _GNU_SOURCE
#include "mpi/native/prototypes.h"
#include "world.h"

#include <dlfcn.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 50000, PERIOD = 32 << 20 };

static unsigned char out[BYTES], in[BYTES];
static MPI_File file;
static MPI_Request request;
static MPI_Status status;

#define FIND(name) __typeof__(&MPI_File_##name) name = (__typeof__(&MPI_File_##name))find("MPI_File_" #name)

static void* find(const char* name) {
  void* function = dlsym(RTLD_DEFAULT, name);
  if (function == NULL) {
    report(name, 0);
    exit(finish());
  }
  return function;
}

/* Each rank has every size-th block. */
static void look_at(MPI_Offset first) {
  MPI_Datatype block, filetype;
  MPI_Type_contiguous(BYTES, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, (MPI_Aint)size * BYTES, &filetype);
  MPI_Type_commit(&filetype);
  MPI_File_set_view(file, first + (MPI_Offset)rank * BYTES, MPI_BYTE, filetype, "native", MPI_INFO_NULL);
  MPI_Type_free(&block);
  MPI_Type_free(&filetype);
}

static int moved(MPI_Count bytes) {
  MPI_Count count = -1;
  MPI_Get_elements_x(&status, MPI_BYTE, &count);
  return count == bytes;
}

static void next(void) {
  for (int i = 0; i < BYTES; ++i) out[i] = (unsigned char)(out[i] * 5 + i + rank + 1);
}

/* `write` goes out, `read` brings it back; both end in `status`. */
#define BACK_AND_FORTH(name, write, read)                   \
  do {                                                      \
    next();                                                 \
    MPI_File_seek(file, 0, MPI_SEEK_SET);                   \
    write;                                                  \
    int ok = moved(BYTES);                                  \
    memset(in, 0, BYTES);                                   \
    MPI_File_seek(file, 0, MPI_SEEK_SET);                   \
    read;                                                   \
    ok = ok && moved(BYTES) && memcmp(in, out, BYTES) == 0; \
    report(name, ok);                                       \
  } while (0)
#define WAITED(call) (call, MPI_Wait(&request, &status))

static void nonblocking(void) {
  FIND(iwrite_c);
  FIND(iread_c);
  FIND(iwrite_at_c);
  FIND(iread_at_c);
  FIND(iwrite_all_c);
  FIND(iread_all_c);
  FIND(iwrite_at_all_c);
  FIND(iread_at_all_c);
  BACK_AND_FORTH("pointer", WAITED(iwrite_c(file, out, BYTES, MPI_BYTE, &request)),
                 WAITED(iread_c(file, in, BYTES, MPI_BYTE, &request)));
  BACK_AND_FORTH("offset", WAITED(iwrite_at_c(file, 0, out, BYTES, MPI_BYTE, &request)),
                 WAITED(iread_at_c(file, 0, in, BYTES, MPI_BYTE, &request)));
  BACK_AND_FORTH("all", WAITED(iwrite_all_c(file, out, BYTES, MPI_BYTE, &request)),
                 WAITED(iread_all_c(file, in, BYTES, MPI_BYTE, &request)));
  BACK_AND_FORTH("all at offset", WAITED(iwrite_at_all_c(file, 0, out, BYTES, MPI_BYTE, &request)),
                 WAITED(iread_at_all_c(file, 0, in, BYTES, MPI_BYTE, &request)));
}

static void split(void) {
  FIND(write_all_begin_c);
  FIND(read_all_begin_c);
  FIND(write_at_all_begin_c);
  FIND(read_at_all_begin_c);
  BACK_AND_FORTH("split", (write_all_begin_c(file, out, BYTES, MPI_BYTE), MPI_File_write_all_end(file, out, &status)),
                 (read_all_begin_c(file, in, BYTES, MPI_BYTE), MPI_File_read_all_end(file, in, &status)));
  BACK_AND_FORTH("split at offset",
                 (write_at_all_begin_c(file, 0, out, BYTES, MPI_BYTE), MPI_File_write_at_all_end(file, out, &status)),
                 (read_at_all_begin_c(file, 0, in, BYTES, MPI_BYTE), MPI_File_read_at_all_end(file, in, &status)));
}

/* Those that stay native. */
static void blocking(void) {
  FIND(read_c);
  FIND(write_c);
  FIND(write_at_c);
  FIND(write_all_c);
  FIND(write_at_all_c);
  BACK_AND_FORTH("write", write_c(file, out, BYTES, MPI_BYTE, &status), read_c(file, in, BYTES, MPI_BYTE, &status));
  BACK_AND_FORTH("write_at", write_at_c(file, 0, out, BYTES, MPI_BYTE, &status),
                 MPI_File_read(file, in, BYTES, MPI_BYTE, &status));
  BACK_AND_FORTH("write_all", write_all_c(file, out, BYTES, MPI_BYTE, &status),
                 MPI_File_read_all(file, in, BYTES, MPI_BYTE, &status));
  BACK_AND_FORTH("write_at_all", write_at_all_c(file, 0, out, BYTES, MPI_BYTE, &status),
                 MPI_File_read_all(file, in, BYTES, MPI_BYTE, &status));
}

/* By the pointer that all share: whoever comes first. */
static int is_there(MPI_Offset first) {
  int there = 0;
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) {
    MPI_File_read_at(file, first + (MPI_Offset)i * BYTES, in, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    there += memcmp(in, out, BYTES) == 0;
  }
  next();
  return there == 1 && moved(BYTES);
}

static void shared(void) {
  FIND(write_shared_c);
  FIND(iwrite_shared_c);
  FIND(write_ordered_c);
  FIND(write_ordered_begin_c);
  const MPI_Offset all = (MPI_Offset)size * BYTES;
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  write_shared_c(file, out, BYTES, MPI_BYTE, &status);
  report("shared", is_there(0));
  WAITED(iwrite_shared_c(file, out, BYTES, MPI_BYTE, &request));
  report("nonblocking shared", is_there(all));
  write_ordered_c(file, out, BYTES, MPI_BYTE, &status);
  report("ordered", is_there(2 * all));
  write_ordered_begin_c(file, out, BYTES, MPI_BYTE);
  MPI_File_write_ordered_end(file, out, &status);
  report("split ordered", is_there(3 * all));
}

/* Memory that is a few pages again and again, so that the machine needs no more. */
static unsigned char* repeated(size_t bytes) {
  const int pages = memfd_create("pages", MFD_CLOEXEC);
  unsigned char* all = mmap(NULL, bytes + PERIOD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages < 0 || ftruncate(pages, PERIOD) != 0 || all == MAP_FAILED) return NULL;
  for (size_t at = 0; at < bytes; at += PERIOD)
    if (mmap(all + at, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, pages, 0) == MAP_FAILED) return NULL;
  close(pages);
  return all;
}

static unsigned char byte_at(size_t i) { return (unsigned char)(i % PERIOD * 7 + i % PERIOD / 4096 + 3); }

/* Rank 0 has more than the others. */
static void beyond(void) {
  FIND(iwrite_at_c);
  FIND(read_all_begin_c);
  const size_t most = (size_t)INT_MAX + 100001, bytes = rank == 0 ? most : BYTES;
  const MPI_Offset first = rank == 0 ? 1000 : 1000 + (MPI_Offset)most + (MPI_Offset)rank * BYTES;
  const MPI_Count count = (MPI_Count)bytes;
  unsigned char* memory = repeated(bytes);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (size_t i = 0; i < PERIOD; ++i) memory[i] = byte_at(i);
  WAITED(iwrite_at_c(file, first, memory, count, MPI_BYTE, &request));
  int ok = moved(count);
  unsigned char last = 0;
  MPI_File_read_at(file, first + count - 1, &last, 1, MPI_BYTE, &status);
  report("written", ok && last == byte_at(bytes - 1));
  memset(memory, 0, PERIOD);
  MPI_File_seek(file, first, MPI_SEEK_SET);
  read_all_begin_c(file, memory, count, MPI_BYTE);
  MPI_File_read_all_end(file, memory, &status);
  MPI_Offset position = 0;
  MPI_File_get_position(file, &position);
  ok = moved(count) && position == first + count;
  for (size_t i = 0; i < PERIOD && i < bytes; ++i) ok = ok && memory[i] == byte_at(i);
  report("read", ok);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  MPI_File_open(MPI_COMM_WORLD, "large.dat", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                &file);
  if (argc > 1) {
    beyond();
  } else {
    look_at(77);
    nonblocking();
    split();
    blocking();
    shared();
  }
  MPI_File_close(&file);
  return finish();
}
