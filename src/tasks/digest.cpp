// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/digest.hpp"

#include "base/fd.hpp"
#include "base/hash.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

namespace offpath::tasks {

std::optional<std::string> digest_of(const std::string& path) {
  const base::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  std::vector<uint8_t> bytes(size_t{1} << 16);
  uint64_t hash = base::kHashOfNothing;
  ssize_t got;
  while ((got = read(file.get(), bytes.data(), bytes.size())) > 0)
    hash = base::hash_on(hash, std::span(bytes).first(static_cast<size_t>(got)));
  if (got < 0) return std::nullopt;
  char text[32];
  snprintf(text, sizeof(text), "object %016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace offpath::tasks
