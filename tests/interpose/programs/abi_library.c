/* SPDX-License-Identifier: BSD-3-Clause */
static int initialized;

void MPIR_Err_create_code(void) {}

int PMPI_Init(int* argc, char*** argv) {
  (void)argc, (void)argv;
  initialized = 1;
  return 0;
}
int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }

int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  *provided = required;
  return PMPI_Init(argc, argv);
}
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Initialized(int* flag) {
  *flag = initialized;
  return 0;
}
