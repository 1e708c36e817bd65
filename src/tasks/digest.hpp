// SPDX-License-Identifier: BSD-3-Clause
// What a shared object is, for code in it that has no name: there a program and its executors must have the same one.
#pragma once

#include <optional>
#include <string>

namespace offpath::tasks {

// Of the file's bytes. None: it cannot be read.
std::optional<std::string> digest_of(const std::string& path);

}  // namespace offpath::tasks
