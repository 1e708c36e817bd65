// SPDX-License-Identifier: BSD-3-Clause
#include "session/abandoned.hpp"

#include "base/fd.hpp"
#include "base/node.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

namespace offpath::session {
namespace {

using base::Fd;

std::vector<std::string> records_in(const std::string& runtime_folder) {
  std::vector<std::string> found;
  DIR* const names = opendir(runtime_folder.c_str());
  while (const dirent* entry = names == nullptr ? nullptr : readdir(names)) {
    const std::string_view name = entry->d_name;
    if (name.ends_with(kRecordEnd)) found.push_back(runtime_folder + "/" + entry->d_name);
  }
  if (names != nullptr) closedir(names);
  return found;
}

// Empty: somebody wrote only a part of it, or it is another kernel's, of which nothing is known (then `foreign`).
std::string folder_in(const Fd& record, bool& foreign) {
  char text[PATH_MAX + 128];
  const ssize_t bytes = read(record.get(), text, sizeof(text));
  const std::string_view all(text, bytes > 0 ? static_cast<size_t>(bytes) : 0);
  const size_t first = all.find('\n'), second = first == all.npos ? first : all.find('\n', first + 1);
  foreign = second != all.npos && all.substr(0, first) != base::boot_id();
  return second == all.npos || foreign ? "" : std::string(all.substr(first + 1, second - first - 1));
}

// Whether nothing of it is left.
bool remove_folder(const std::string& folder) {
  const size_t slash = folder.rfind('/');
  if (folder.empty() || folder[0] != '/' || folder.compare(slash + 1, strlen(kRunFolderBegin), kRunFolderBegin) != 0)
    return true;  // no run has written that
  struct stat info {};
  if (lstat(folder.c_str(), &info) != 0) return errno == ENOENT || errno == ENOTDIR;
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid()) return true;
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  return !error;
}

}  // namespace

bool has_records(const std::string& runtime_folder) { return !records_in(runtime_folder).empty(); }

void remove_abandoned_folders(const std::string& runtime_folder) {
  for (const std::string& path : records_in(runtime_folder)) {
    const Fd record(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!record.valid() || flock(record.get(), LOCK_EX | LOCK_NB) != 0) continue;  // its run goes on
    bool foreign = false;
    const std::string folder = folder_in(record, foreign);
    if (!foreign && remove_folder(folder)) unlink(path.c_str());
  }
}

}  // namespace offpath::session
