// SPDX-License-Identifier: BSD-3-Clause
// Another process, held by a descriptor: unlike its number that is never somebody else's.
#pragma once

#include "base/fd.hpp"

#include <sys/types.h>

#include <string>

namespace offpath::base {

// Readable when the process has ended. Invalid: there is none, no descriptor is left, or the kernel is older than 5.3.
Fd open_process(pid_t process);
// Ends it whatever it does. `process`: its number, for kernels without such descriptors.
void kill_process(const Fd& descriptor, pid_t process);
// Where the program of this process lies, with a '/' at its end.
std::string own_folder();

}  // namespace offpath::base
