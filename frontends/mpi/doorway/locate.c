/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mpi/doorway/doorway.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* The names of the loaded objects, one behind the other. Mapped: this must not depend on the heap this early. */
typedef struct names {
  char* text;
  size_t used; /* wanted, if it exceeds the capacity */
  size_t capacity;
} names_t;

enum { FIRST_CAPACITY = 64 * 1024 };

static int remember_name(struct dl_phdr_info* info, size_t size, void* argument) {
  (void)size;
  names_t* names = argument;
  const char* name = info->dlpi_name;
  if (name == NULL || *name == '\0') return 0;
  const size_t length = strlen(name) + 1;
  if (names->used + length <= names->capacity) memcpy(names->text + names->used, name, length);
  names->used += length;
  return 0;
}

static void forget_names(names_t* names) {
  if (names->text != NULL) munmap(names->text, names->capacity);
  *names = (names_t){NULL, 0, 0};
}

/* Other threads may load objects meanwhile: until all names fit. */
static void read_names(names_t* names) {
  size_t wanted = FIRST_CAPACITY;
  do {
    forget_names(names);
    void* text = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED) return;
    *names = (names_t){text, 0, wanted};
    dl_iterate_phdr(remember_name, names);
    wanted = 2 * names->used;
  } while (names->used > names->capacity);
}

static void* base_of(const void* address) {
  Dl_info info;
  return address != NULL && dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

/* By its name: it may be of any MPI, with that one's symbols inside but handles of its own. */
static int is_standard_abi(const char* name) {
  const char* slash = strrchr(name, '/');
  static const char abi[] = "libmpi_abi.so";
  return strncmp(slash == NULL ? name : slash + 1, abi, sizeof(abi) - 1) == 0;
}

static offpath_mpi_kind_t kind_of(void* handle, const char* name) {
  if (is_standard_abi(name)) return OFFPATH_MPI_STANDARD_ABI;
  if (dlsym(handle, "ompi_mpi_comm_world") != NULL) return OFFPATH_MPI_OPENMPI;
  if (dlsym(handle, "MPIR_Err_create_code") != NULL) return OFFPATH_MPI_MPICH;
  return OFFPATH_MPI_NONE;
}

/* Is this object the MPI library? Keeps it open then. */
static int open_mpi(const char* name, const void* own_base, offpath_loaded_mpi_t* mpi) {
  void* handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) return 0;
  const struct link_map* map = NULL;
  const void* symbol = dlsym(handle, "PMPI_Init_thread"); /* also looks into what the object depends on */
  void* base = base_of(symbol);
  if (symbol != NULL && base != own_base && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && base_of(map->l_ld) == base) {
    const offpath_mpi_kind_t kind = kind_of(handle, name);
    if (kind != OFFPATH_MPI_NONE) {
      *mpi = (offpath_loaded_mpi_t){kind, handle, base};
      return 1;
    }
  }
  dlclose(handle);
  return 0;
}

offpath_loaded_mpi_t offpath_locate_mpi(void) {
  offpath_loaded_mpi_t mpi = {OFFPATH_MPI_NONE, NULL, NULL};
  const void* own_base = base_of((const void*)&offpath_locate_mpi);
  names_t names = {NULL, 0, 0};
  read_names(&names);
  /* Not inside the callback: dlopen and dl_iterate_phdr take the same lock. */
  for (size_t at = 0; at < names.used; at += strlen(names.text + at) + 1) {
    if (open_mpi(names.text + at, own_base, &mpi)) break;
  }
  forget_names(&names);
  return mpi;
}

int offpath_uses_pmpi(const void* function) {
  Dl_info info;
  struct link_map* map = NULL;
  if (dladdr1(function, &info, (void**)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) return 0;
  uintptr_t names = 0;
  size_t bytes = 0;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) names = entry->d_un.d_ptr;
    if (entry->d_tag == DT_STRSZ) bytes = entry->d_un.d_val;
  }
  if (names < map->l_addr) names += map->l_addr; /* some loaders leave it as it is in the file */
  static const char pmpi[] = "\0PMPI_";
  return names != 0 && memmem((const void*)names, bytes, pmpi, sizeof(pmpi) - 1) != NULL;
}
