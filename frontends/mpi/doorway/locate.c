/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "doorway.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

enum { MAX_OBJECTS = 512, NAMES_BYTES = 64 * 1024 };

/* Static: the resolver runs once at a time, and must not depend on the heap this early. */
static char names[NAMES_BYTES];
static size_t names_used;

static int remember_name(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size;
  (void)unused;
  const char* name = info->dlpi_name;
  if (name == NULL || *name == '\0') return 0;
  const size_t length = strlen(name) + 1;
  if (names_used + length > sizeof(names)) return 1;
  memcpy(names + names_used, name, length);
  names_used += length;
  return 0;
}

static void* base_of(const void* address) {
  Dl_info info;
  return address != NULL && dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

static offpath_mpi_kind_t kind_of(void* handle) {
  if (dlsym(handle, "ompi_mpi_comm_world") != NULL) return OFFPATH_MPI_OPENMPI;
  if (dlsym(handle, "MPIR_Err_create_code") != NULL) return OFFPATH_MPI_MPICH;
  return OFFPATH_MPI_NONE;
}

offpath_loaded_mpi_t offpath_locate_mpi(void) {
  offpath_loaded_mpi_t mpi = {OFFPATH_MPI_NONE, NULL, NULL};
  const void* own_base = base_of((const void*)&offpath_locate_mpi);
  names_used = 0;
  dl_iterate_phdr(remember_name, NULL);
  /* Not inside the callback: dlopen and dl_iterate_phdr take the same lock. */
  for (const char* name = names; name < names + names_used; name += strlen(name) + 1) {
    void* handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) continue;
    const struct link_map* map = NULL;
    const void* symbol = dlsym(handle, "PMPI_Init_thread"); /* also looks into what the object depends on */
    void* base = base_of(symbol);
    if (symbol != NULL && base != own_base && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 &&
        base_of(map->l_ld) == base) {
      mpi.kind = kind_of(handle);
      if (mpi.kind != OFFPATH_MPI_NONE) {
        mpi.handle = handle;
        mpi.base = base;
        return mpi;
      }
    }
    dlclose(handle);
  }
  return mpi;
}
