/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files by nonblocking and split collective calls: pointers, views, datatypes, ends of files, statuses. Prints what every rank sees,
 * and a sum of each file. */
#include "files.h"

static void with_offsets(void) {
  const char* name = "offsets.dat";
  MPI_File file = open_new(name);
  MPI_Request requests[8];
  MPI_Status statuses[8];
  const size_t bytes = 100000;
  unsigned char* out = filled(rank, 8 * bytes);
  for (int i = 0; i < 8; ++i)
    MPI_File_iwrite_at(file, (MPI_Offset)((i * ranks + rank) * bytes), out + i * bytes, (int)bytes, MPI_BYTE,
                       &requests[i]);
  MPI_Waitall(8, requests, statuses);
  for (int i = 0; i < 8; ++i) show("iwrite_at", count_of(&statuses[i], MPI_BYTE), requests[i] == MPI_REQUEST_NULL);
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  unsigned char* in = calloc(1, bytes);
  const int next = (rank + 1) % ranks;
  MPI_File_iread_at(file, (MPI_Offset)((5 * ranks + next) * bytes), in, (int)bytes, MPI_BYTE, &requests[0]);
  int done = 0;
  while (!done) MPI_Test(&requests[0], &done, &statuses[0]);
  show("iread_at", count_of(&statuses[0], MPI_BYTE), sum_of(in, bytes));
  MPI_Offset size = 0;
  MPI_File_get_size(file, &size);
  show("size", (long)size, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_close(&file);
  show_file("offsets", name);
  free(in);
  free(out);
}

/* Some, and nothing. Open MPI 4 never ends such a read natively. */
static void at_the_end(void) {
  const size_t bytes = 100000;
  MPI_File file = open_new("end.dat");
  MPI_Request requests[1];
  MPI_Status statuses[1];
  unsigned char *out = filled(rank, bytes), *in = malloc(bytes);
  MPI_File_write_at(file, (MPI_Offset)((size_t)rank * bytes), out, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  const MPI_Offset end = (MPI_Offset)((size_t)ranks * bytes);
  memset(in, 5, bytes);
  MPI_File_iread_at(file, end - 30000, in, (int)bytes, MPI_BYTE, &requests[0]);
  MPI_Wait(&requests[0], &statuses[0]);
  show("end", count_of(&statuses[0], MPI_BYTE), sum_of(in, bytes));
  MPI_File_iread_at(file, end + 10, in, (int)bytes, MPI_BYTE, &requests[0]);
  MPI_Wait(&requests[0], &statuses[0]);
  show("behind", count_of(&statuses[0], MPI_BYTE), 0);
  MPI_File_close(&file);
  free(in);
  free(out);
}

/* It ends within an element, in memory of short stretches. MPICH claims to have read all. */
static void within_an_element(void) {
  const size_t bytes = 30010, room = 100000;
  MPI_File file = open_new("within.dat");
  MPI_Request request;
  MPI_Status status;
  MPI_Datatype element;
  unsigned char *in = malloc(room), *wanted = malloc(room);
  for (size_t i = 0; i < bytes; ++i) in[i] = value(3, i);
  if (rank == 0) MPI_File_write_at(file, 0, in, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_vector(500, 40, 100, MPI_BYTE, &element);
  MPI_Type_commit(&element);
  memset(in, 6, room), memset(wanted, 6, room);
  for (size_t i = 0; i < bytes; ++i) wanted[i / 20000 * 49940 + i % 20000 / 40 * 100 + i % 40] = value(3, i);
  MPI_File_iread_at(file, 0, in, 2, element, &request);
  MPI_Type_free(&element);
  MPI_Wait(&request, &status);
  show("within", count_of(&status, MPI_BYTE), memcmp(in, wanted, room) == 0);
  MPI_File_close(&file);
  free(in);
  free(wanted);
}

static void with_pointers(void) {
  const char* name = "pointers.dat";
  MPI_File file = open_new(name);
  MPI_Request requests[3];
  MPI_Status status;
  MPI_Offset position = -1;
  const int count = 20000;
  int* out = malloc(3 * (size_t)count * sizeof(int));
  for (int i = 0; i < 3 * count; ++i) out[i] = rank * 1000000 + i;
  MPI_File_set_view(file, (MPI_Offset)((size_t)rank * 4 * count * sizeof(int)), MPI_INT, MPI_INT, "native",
                    MPI_INFO_NULL);
  for (int i = 0; i < 3; ++i) {
    MPI_File_iwrite(file, out + i * count, count, MPI_INT, &requests[i]);
    MPI_File_get_position(file, &position);
    show("position", (long)position, i);
  }
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  MPI_File_write(file, out, 10, MPI_INT, &status); /* goes on where ours end */
  MPI_File_get_position(file, &position);
  show("position", (long)position, count_of(&status, MPI_INT));
  MPI_File_seek(file, -(MPI_Offset)(count + 10), MPI_SEEK_CUR);
  int* in = calloc((size_t)count + 10, sizeof(int));
  MPI_File_iread(file, in, count + 10, MPI_INT, &requests[0]);
  MPI_Wait(&requests[0], &status);
  MPI_File_get_position(file, &position);
  show("iread", count_of(&status, MPI_INT), in[0] + in[count + 9]);
  show("position", (long)position, 0);
  MPI_File_close(&file);
  show_file("pointers", name);
  free(in);
  free(out);
}

/* Each rank has every ranks-th block. */
static void with_views(int block, const char* name) {
  MPI_File file = open_new(name);
  MPI_Datatype blocks, filetype;
  MPI_Status status;
  MPI_Request request;
  const int each = 6, count = block * each;
  /* MPICH's exchange between ranks leaves anything in holes behind the end. */
  MPI_File_set_size(file, (MPI_Offset)(1000 + sizeof(double) * (size_t)(4 * count * ranks)));
  MPI_Type_vector(each, block, block * ranks, MPI_DOUBLE, &blocks);
  MPI_Type_create_resized(blocks, 0, (MPI_Aint)sizeof(double) * block * ranks * each, &filetype);
  MPI_Type_commit(&filetype);
  MPI_File_set_view(file, (MPI_Offset)(1000 + sizeof(double) * (size_t)(block * rank)), MPI_DOUBLE, filetype, "native",
                    MPI_INFO_NULL);
  double* out = malloc(sizeof(double) * (size_t)count);
  for (int i = 0; i < count; ++i) out[i] = rank * 1e6 + i;
  MPI_File_iwrite_at_all(file, 0, out, count, MPI_DOUBLE, &request);
  MPI_Wait(&request, &status);
  show("iwrite_at_all", count_of(&status, MPI_DOUBLE), 0);
  MPI_File_seek(file, count, MPI_SEEK_SET);
  MPI_File_iwrite_all(file, out, rank == 0 ? 0 : count, MPI_DOUBLE, &request); /* one has nothing */
  MPI_Wait(&request, &status);
  MPI_Offset position = 0;
  MPI_File_get_position(file, &position);
  show("iwrite_all", count_of(&status, MPI_DOUBLE), (long)position);
  MPI_File_write_at_all_begin(file, 2 * count, out, count, MPI_DOUBLE);
  MPI_File_write_at_all_end(file, out, &status);
  show("write_at_all", count_of(&status, MPI_DOUBLE), 0);
  MPI_File_seek(file, 3 * count, MPI_SEEK_SET);
  MPI_File_write_all_begin(file, out, count / 2, MPI_DOUBLE);
  MPI_File_write_all_end(file, out, MPI_STATUS_IGNORE);
  MPI_File_get_position(file, &position);
  show("write_all", (long)position, 0);
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_sync(file);
  double* in = calloc((size_t)count, sizeof(double));
  MPI_File_iread_at_all(file, count / 3, in, count / 2, MPI_DOUBLE, &request);
  MPI_Wait(&request, &status);
  show("iread_at_all", count_of(&status, MPI_DOUBLE), (long)in[count / 2 - 1]);
  MPI_File_seek(file, 5, MPI_SEEK_SET);
  MPI_File_iread_all(file, in, count - 5, MPI_DOUBLE, &request);
  MPI_Wait(&request, &status);
  show("iread_all", count_of(&status, MPI_DOUBLE), (long)in[0]);
  MPI_File_read_at_all_begin(file, 2 * count + 1, in, count - 1, MPI_DOUBLE);
  MPI_File_read_at_all_end(file, in, &status);
  show("read_at_all", count_of(&status, MPI_DOUBLE), (long)in[0]);
  MPI_File_seek(file, 0, MPI_SEEK_SET);
  MPI_File_read_all_begin(file, in, count, MPI_DOUBLE);
  MPI_File_read_all_end(file, in, &status);
  show("read_all", count_of(&status, MPI_DOUBLE), sum_of((unsigned char*)in, sizeof(double) * (size_t)count));
  MPI_File_close(&file);
  show_file(name, name);
  MPI_Type_free(&blocks);
  MPI_Type_free(&filetype);
  free(in);
  free(out);
}

/* Memory that is not contiguous, in long and in short stretches. */
static void with_types(void) {
  const char* name = "types.dat";
  MPI_File file = open_new(name);
  MPI_Request request;
  MPI_Status status;
  const int lengths[2] = {3000, 3};
  for (int kind = 0; kind < 2; ++kind) {
    MPI_Datatype type;
    const int blocks = kind == 0 ? 10 : 9000, length = lengths[kind], stride = length * 2;
    MPI_Type_vector(blocks, length, stride, MPI_INT, &type);
    MPI_Type_commit(&type);
    const size_t ints = (size_t)blocks * (size_t)stride;
    int *out = malloc(ints * sizeof(int)), *in = malloc(ints * sizeof(int));
    for (size_t i = 0; i < ints; ++i) out[i] = rank * 7 + (int)i, in[i] = -1;
    const MPI_Offset at = (MPI_Offset)(rank + kind * ranks) * 200000;
    MPI_File_iwrite_at(file, at, out, 1, type, &request);
    MPI_Wait(&request, &status);
    show("typed iwrite", count_of(&status, type), count_of(&status, MPI_INT));
    MPI_File_iread_at(file, at, in, 1, type, &request);
    MPI_Type_free(&type);
    MPI_Wait(&request, &status);
    show("typed iread", count_of(&status, MPI_INT), sum_of((unsigned char*)in, ints * sizeof(int)));
    free(in);
    free(out);
  }
  MPI_File_close(&file);
  show_file("types", name);
}

static int class_of(int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return class;
}

static void with_other_modes(void) {
  const char* name = "modes.dat";
  const int bytes = 50000;
  unsigned char* out = filled(rank, (size_t)bytes);
  MPI_File file = open_new(name);
  MPI_Request request;
  MPI_Status status;
  MPI_File_set_atomicity(file, 1);
  MPI_File_iwrite_at(file, (MPI_Offset)rank * bytes, out, bytes, MPI_BYTE, &request);
  MPI_Wait(&request, &status);
  show("atomic", count_of(&status, MPI_BYTE), 0);
  MPI_File_set_atomicity(file, 0);
  MPI_File_set_size(file, (MPI_Offset)ranks * bytes + 11);
  MPI_File_close(&file);
  show_file("modes", name);
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  int code = MPI_File_iwrite_at(file, 0, out, bytes, MPI_BYTE, &request);
  show("read only", code != MPI_SUCCESS, 0);
  MPI_File_iread(file, out, bytes, MPI_BYTE, &request);
  MPI_Wait(&request, &status);
  show("read", count_of(&status, MPI_BYTE), sum_of(out, (size_t)bytes));
  code = MPI_File_iread_at(file, -5, out, bytes, MPI_BYTE, &request);
  show("negative", class_of(code) == MPI_ERR_ARG, 0);
  MPI_File_close(&file);
  /* A file of one rank, and one that goes when it is closed. */
  char own[32];
  snprintf(own, sizeof(own), "own%d.dat", rank);
  MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_iwrite_at_all(file, 3, out, bytes, MPI_BYTE, &request);
  MPI_Wait(&request, &status);
  MPI_Offset size = 0;
  MPI_File_get_size(file, &size);
  show("own", count_of(&status, MPI_BYTE), (long)size);
  MPI_File_close(&file);
  show("gone", fopen(own, "rb") == NULL, 0);
  free(out);
}

/* Long stretches of one rank, short ones of another between them, at the same time: neither may undo what the other writes. */
static void beside_each_other(void) {
  const char* name = "beside.dat";
  const int block = 40000, gap = 2000, blocks = 64;
  MPI_File file = open_new(name);
  MPI_Request request;
  MPI_Datatype type, filetype;
  const int mine = rank == 0 ? block : gap, stride = block + gap;
  MPI_Type_vector(blocks, mine, stride, MPI_BYTE, &type);
  MPI_Type_create_resized(type, 0, (MPI_Aint)stride * blocks, &filetype);
  MPI_Type_commit(&filetype);
  MPI_File_set_view(file, rank == 0 ? 0 : block, MPI_BYTE, filetype, "native", MPI_INFO_NULL);
  unsigned char* out = filled(rank, (size_t)mine * blocks);
  for (int round = 0; round < 5 && rank < 2; ++round) {
    for (int i = 0; i < mine * blocks; ++i) out[i] = (unsigned char)(out[i] + 1);
    MPI_File_iwrite_at(file, 0, out, mine * blocks, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_File_close(&file);
  MPI_Type_free(&type);
  MPI_Type_free(&filetype);
  show_file("beside", name);
  free(out);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc > 1) { /* "ends", "within" */
    if (strcmp(argv[1], "ends") == 0)
      at_the_end();
    else
      within_an_element();
    MPI_Finalize();
    return 0;
  }
  with_offsets();
  with_pointers();
  with_views(5000, "long.dat");
  with_views(50, "short.dat");
  with_types();
  with_other_modes();
  beside_each_other();
  MPI_Finalize();
  return 0;
}
