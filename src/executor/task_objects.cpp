// SPDX-License-Identifier: BSD-3-Clause
#include "executor/task_objects.hpp"

#include "base/environment.hpp"
#include "base/fd.hpp"
#include "base/process.hpp"
#include "device/device_list.hpp"
#include "device/device_code.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace offpath::executor {

using base::Fd;
using base::Result;
using base::Status;

std::string shown(const std::string& path) {
  constexpr size_t kMost = 60;
  return path.size() <= kMost ? path : "..." + path.substr(path.size() - (kMost - 3));
}

namespace {

std::vector<std::string> folders_in(const std::string& text) {
  std::vector<std::string> folders;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) folders.push_back(text.substr(begin, end - begin) + "/");
    begin = end + 1;
  }
  return folders;
}

// The processor that it is built for. 0: what is there is no shared object, for the loader to say; none: nothing is there.
std::optional<uint32_t> machine_of(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  Elf64_Ehdr head{};
  const bool is_elf = pread(file.get(), &head, sizeof(head), 0) == sizeof(head) && head.e_ident[EI_MAG0] == ELFMAG0 &&
                      head.e_ident[EI_MAG1] == ELFMAG1;
  return is_elf ? head.e_machine : 0;
}

Status nothing_there(const std::string& library) {
  return Status::error(OFFPATH_ERR_ARGUMENT,
                       "an executor cannot load '%s': it is not on the executor's machine. Put it there, or name its "
                       "folder there in OFFPATH_TASK_FOLDERS",
                       shown(library).c_str());
}

Result<std::string> find_device_code(const std::vector<std::string>& places, const std::string& library) {
  std::string without;  // a file that holds none for this processor
  for (const std::string& place : places) {
    const auto file = device::FileBytes::of(place);
    if (!file) continue;
    if (!device::device_code_in(file->get(), device::own_machine()).empty()) return place;
    if (without.empty()) without = place;
  }
  if (without.empty()) return nothing_there(library);
  return Status::error(
      OFFPATH_ERR_ARGUMENT,
      "'%s' holds no code for devices of the executor's machine, which is %s. Build it with OpenMP's target "
      "regions for that (offpath-cc -fopenmp-targets=...)",
      shown(without).c_str(), device::machine_name(device::own_machine()));
}

std::string name_of_this_machine() {
  utsname about{};
  uname(&about);
  return about.machine;
}

}  // namespace

Result<std::string> find_object(const std::string& library, Wanted wanted) {
  const size_t slash = library.rfind('/');
  const std::string name = slash == std::string::npos ? library : library.substr(slash + 1);
  const std::string beside = library.substr(0, library.size() - name.size());
  const std::string machine = name_of_this_machine();
  std::vector<std::string> places;
  for (const std::string& folder : folders_in(base::Environment::text("OFFPATH_TASK_FOLDERS")))
    places.push_back(folder + name);
  if (slash != std::string::npos) {
    places.push_back(library);
    places.push_back(beside + machine + "/" + name);
  }
  if (name.rfind("liboffpath", 0) == 0) {
    for (const char* libraries : {"lib", OFFPATH_LIBDIR})  // the build tree's, an installed copy's
      places.push_back(base::own_folder() + "../" + libraries + "/" + name);
  }
  if (wanted == Wanted::device_code) return find_device_code(places, library);
  std::string foreign;  // for another processor
  uint32_t foreign_machine = 0;
  for (const std::string& place : places) {
    const auto built_for = machine_of(place);
    if (!built_for) continue;
    if (*built_for == 0 || *built_for == device::own_machine()) return place;
    if (!foreign.empty()) continue;
    foreign = place;
    foreign_machine = *built_for;
  }
  if (!foreign.empty()) {
    const std::string proper = slash == std::string::npos ? "a file in a folder of OFFPATH_TASK_FOLDERS"
                                                          : shown(beside + machine + "/" + name);
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "an executor cannot load '%s': it is built for %s, and the executor's machine is %s. Put one "
                         "for that there as %s",
                         shown(foreign).c_str(), device::machine_name(foreign_machine), machine.c_str(),
                         proper.c_str());
  }
  if (slash == std::string::npos) return name;
  return nothing_there(library);
}

}  // namespace offpath::executor
