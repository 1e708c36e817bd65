// SPDX-License-Identifier: BSD-3-Clause
// Other processes: held by a descriptor, which unlike a number is never somebody else's; and what /proc says of them.
#pragma once

#include "base/fd.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace offpath::base {

// Readable when the process has ended. Invalid: there is none, no descriptor is left, or the kernel is older than 5.3.
Fd open_process(pid_t process);
// Ends it whatever it does. `process`: its number, for kernels without such descriptors.
void kill_process(const Fd& descriptor, pid_t process);
// Of a child: whether a signal has stopped it, for now. One that a debugger holds is not meant.
bool is_stopped(pid_t child);
// How a process stands to others, as the kernel says now. Nothing: there is none of that number.
struct Kinship {
  char state;  // as ps has it: Z is a zombie
  pid_t parent, session;
};
std::optional<Kinship> kinship_of(pid_t process);
// Those that live, and zombies.
std::vector<pid_t> children_of(pid_t parent);
// Closes all descriptors from `first` on. Also between fork and exec.
void close_from(int first);
// Of a small file, such as one of /proc. Empty: it cannot be read.
std::string text_of_file(const std::string& path);
// Where the program of this process lies, with a '/' at its end.
std::string own_folder();
// The words of a command, which have spaces between them. No shell reads them.
std::vector<std::string> words_of(const std::string& command);
// The same; of an empty one: the program of that name beside this process's.
std::vector<std::string> words_of(const std::string& command, const std::string& beside);

}  // namespace offpath::base
