// SPDX-License-Identifier: BSD-3-Clause
// Where an executor finds the shared object that a program on another machine names.
#include "executor/task_objects.hpp"

#include "base/process.hpp"

#include <gtest/gtest.h>

#include <elf.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace offpath::executor {
namespace {

namespace fs = std::filesystem;

class Objects : public ::testing::Test {
 protected:
  Objects() {
    char name[] = "/tmp/offpath-objects-XXXXXX";
    root_ = mkdtemp(name);
    utsname about{};
    uname(&about);
    own_ = about.machine;
  }
  ~Objects() override {
    unsetenv("OFFPATH_TASK_FOLDERS");
    fs::remove_all(root_);
  }
  // A file like an object that was built for some processor.
  std::string make(const std::string& path, uint16_t machine) {
    fs::create_directories(fs::path(root_ + "/" + path).parent_path());
    Elf64_Ehdr head{};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_machine = machine;
    std::ofstream(root_ + "/" + path, std::ios::binary).write(reinterpret_cast<const char*>(&head), sizeof(head));
    return root_ + "/" + path;
  }
  uint16_t own() const { return own_ == "aarch64" ? EM_AARCH64 : EM_X86_64; }
  uint16_t other() const { return own_ == "aarch64" ? EM_X86_64 : EM_AARCH64; }
  void expect(const std::string& library, const std::string& found) {
    const auto result = find_object(library);
    ASSERT_TRUE(result.ok()) << result.status().text();
    EXPECT_EQ(result.value(), found);
  }
  void expect_refused(const std::string& library, const char* says) {
    const auto result = find_object(library);
    ASSERT_FALSE(result.ok()) << result.value();
    EXPECT_NE(strstr(result.status().text(), says), nullptr) << result.status().text();
  }
  std::string root_, own_;
};

TEST_F(Objects, ThePathItself) {
  expect_refused(root_ + "/lib/libf.so", "it is not on the executor's machine");
  expect(make("lib/libf.so", own()), root_ + "/lib/libf.so");
  std::ofstream(root_ + "/script.so") << "INPUT(libf.so)";
  expect(root_ + "/script.so", root_ + "/script.so");  // the loader says what is wrong with it
  expect("libm.so.6", "libm.so.6");
}

TEST_F(Objects, OneForThisProcessorBesideIt) {
  const std::string named = make("lib/libf.so", other());
  expect_refused(named, own_ == "aarch64" ? "it is built for x86_64, and the executor's machine is aarch64"
                                          : "it is built for aarch64, and the executor's machine is x86_64");
  make("lib/" + own_ + "/libf.so", other());
  expect_refused(named, "it is built for");
  expect(named, make("lib/" + own_ + "/libf.so", own()));
  fs::remove(named);
  expect(named, root_ + "/lib/" + own_ + "/libf.so");
  expect(make("lib/libf.so", own()), named);
}

TEST_F(Objects, OfALongPathTheEndIsSaid) {
  const std::string folder = std::string(100, 'a') + "/" + std::string(100, 'b'), end = "b/libf.so': it is ";
  expect_refused(make(folder + "/libf.so", other()), (end + "built for").c_str());
  expect_refused(root_ + "/" + folder + "/libf.so", ("b/" + own_ + "/libf.so").c_str());
  expect_refused(root_ + "/" + std::string(100, 'c') + "/" + std::string(100, 'b') + "/libf.so", (end + "not").c_str());
}

TEST_F(Objects, FoldersOfThisMachineComeFirst) {
  const std::string named = make("lib/libf.so", own());
  setenv("OFFPATH_TASK_FOLDERS", ("/nowhere::" + root_ + "/here:" + root_ + "/there").c_str(), 1);
  expect(named, named);
  const std::string there = make("there/libf.so", own());
  expect(named, there);
  expect("libf.so", there);
  make("here/libf.so", other());
  expect(named, there);
  fs::remove(there);
  expect_refused("libf.so", "as a file in a folder of OFFPATH_TASK_FOLDERS");
  expect(named, (make("here/libf.so", own())));
}

TEST_F(Objects, ThoseOfThisInstallation) {
  const std::string libraries = base::own_folder() + "../lib";
  const bool made = fs::create_directory(libraries);
  std::ofstream(libraries + "/liboffpath_of_a_test.so") << "an object";
  expect("/opt/elsewhere/lib/liboffpath_of_a_test.so", libraries + "/liboffpath_of_a_test.so");
  fs::rename(libraries + "/liboffpath_of_a_test.so", libraries + "/libof_a_test.so");
  expect_refused("/opt/elsewhere/lib/libof_a_test.so", "it is not on the executor's machine");
  fs::remove(libraries + "/libof_a_test.so");
  if (made) fs::remove(libraries);
}

}  // namespace
}  // namespace offpath::executor
