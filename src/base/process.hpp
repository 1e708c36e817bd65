// SPDX-License-Identifier: BSD-3-Clause
// Another process, held by a descriptor: unlike its number that is never somebody else's.
#pragma once

#include "base/fd.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

namespace offpath::base {

// Readable when the process has ended. Invalid: there is none, no descriptor is left, or the kernel is older than 5.3.
Fd open_process(pid_t process);
// Ends it whatever it does. `process`: its number, for kernels without such descriptors.
void kill_process(const Fd& descriptor, pid_t process);
// Of a child: whether a signal has stopped it, for now. One that a debugger holds is not meant.
bool is_stopped(pid_t child);
// Where the program of this process lies, with a '/' at its end.
std::string own_folder();
// The words of a command, which have spaces between them. No shell reads them.
std::vector<std::string> words_of(const std::string& command);
// The same; of an empty one: the program of that name beside this process's.
std::vector<std::string> words_of(const std::string& command, const std::string& beside);

}  // namespace offpath::base
