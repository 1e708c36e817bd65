// SPDX-License-Identifier: BSD-3-Clause
#include "executor/device_libraries.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>

namespace offpath::executor {

namespace {

namespace fs = std::filesystem;

void open_all(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().find(".so.") == std::string::npos) continue;
    dlopen(entry->path().c_str(), RTLD_LAZY | RTLD_LOCAL);
  }
}

}  // namespace

void open_device_libraries() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (error) return;
    for (const char* libraries : {"lib", OFFPATH_LIBDIR}) {  // the build tree's, an installed copy's
      open_all(program.parent_path().parent_path() / libraries / "offpath-device");
    }
  });
}

}  // namespace offpath::executor
