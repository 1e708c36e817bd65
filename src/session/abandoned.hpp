// SPDX-License-Identifier: BSD-3-Clause
// Folders that runs made in working directories, for what their ranks hand in, and were killed before they removed them.
// Only the node where a run was knows that it is dead: there its runtime folder has a record for each such folder, a file
// of this name's end. It says the kernel's boot id and the folder, a line each, and whoever made it holds a lock on it for
// as long as the run goes on (python/offpath/base/abandoned.py writes them, and does the same as this).
#pragma once

#include <string>

namespace offpath::session {

inline constexpr const char* kRecordEnd = ".run";
inline constexpr const char* kRunFolderBegin = ".offpath-";  // of a folder's name: nothing else is ever removed

// Whether there are any records; of whom is not looked at.
bool has_records(const std::string& runtime_folder);
// Removes folders whose run on this node has ended, and their records. May take as long as the file systems they are on.
void remove_abandoned_folders(const std::string& runtime_folder);

}  // namespace offpath::session
