// SPDX-License-Identifier: BSD-3-Clause
// Whose calls are taken for those of an MPI library that has found nothing: by the name of the caller's file.
#include "idle/idle_calls.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cerrno>

namespace {

int asked = 0;
int rest() {
  ++asked;
  errno = EINVAL;
  return 1;
}

struct Library {
  explicit Library(const char* file) : handle(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {}
  template <typename T>
  T* function(const char* name) const {
    return reinterpret_cast<T*>(dlsym(handle, name));
  }
  void* handle;
};

void look(const Library& library) {
  int rounds = 0;
  asked = 0;
  errno = 0;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(library.function<int(int*)>("look")(&rounds), 0);
  EXPECT_EQ(rounds, 3);
  EXPECT_EQ(errno, 0);
}

TEST(IdleCalls, AnMpiLibraryIsAskedToRest) {
  const Library mpi(OFFPATH_TEST_MPI_LIBRARY);
  ASSERT_NE(mpi.handle, nullptr) << dlerror();
  offpath_rest_in_idle_calls(&rest);
  look(mpi);
  EXPECT_EQ(asked, 6);
}

TEST(IdleCalls, NobodyElseIs) {
  const Library other(OFFPATH_TEST_OTHER_LIBRARY);
  ASSERT_NE(other.handle, nullptr) << dlerror();
  offpath_rest_in_idle_calls(&rest);
  look(other);
  EXPECT_EQ(sched_yield(), 0);
  EXPECT_EQ(asked, 0);
}

TEST(IdleCalls, NorIsAnybodyWhereNoFrontEndWantsIt) {
  const Library mpi(OFFPATH_TEST_MPI_LIBRARY);
  offpath_rest_in_idle_calls(nullptr);
  look(mpi);
  EXPECT_EQ(asked, 0);
}

TEST(IdleCalls, WithoutUcxItsWorkersHaveNothing) {
  const Library mpi(OFFPATH_TEST_MPI_LIBRARY);
  EXPECT_EQ(mpi.function<unsigned(void*)>("look_by_ucx")(nullptr), 1u);
}

}  // namespace
