// SPDX-License-Identifier: BSD-3-Clause
// Which file an executor loads for the shared object that a program names: the program may run on another machine, with
// another processor and other folders.
//
//   the first of these that is there and built for this processor:
//     NAME in each folder of OFFPATH_TASK_FOLDERS (with colons between them)
//     the path as the program says it
//     NAME in a folder beside it that has the name of the processor, as `uname -m` says it: lib/aarch64/libscale.so
//     of Offpath's own objects, liboffpath*: NAME among this installation's libraries
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>

namespace offpath::executor {

// For code for devices it is the first that holds some for this processor, whatever processor the file itself is for.
enum class Wanted : uint8_t { object, device_code };

// A name without '/' that is in none of the folders is left to the system's loader. Errors say what is there instead.
base::Result<std::string> find_object(const std::string& library, Wanted wanted = Wanted::object);
// Of a path as an error says it: of a long one the end, which has the name.
std::string shown(const std::string& path);

}  // namespace offpath::executor
