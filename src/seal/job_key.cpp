// SPDX-License-Identifier: BSD-3-Clause
#include "seal/job_key.hpp"

#include <sodium.h>

#include <algorithm>

namespace offpath::seal {

base::Result<Key> job_key(const Key& token, const std::string& secret) {
  constexpr size_t kShortest = 16;
  if (secret.empty()) return token;
  if (secret.size() < kShortest) {
    return base::Status::error(
        OFFPATH_ERR_ARGUMENT,
        "OFFPATH_JOB_SECRET has %zu characters (it could be guessed). Give it %zu or more random "
        "ones, the same for all ranks",
        secret.size(), kShortest);
  }
  Key of_secret;
  crypto_generichash(of_secret.data(), of_secret.size(), reinterpret_cast<const uint8_t*>(secret.data()), secret.size(),
                     nullptr, 0);
  return derive(of_secret, 'j', token);
}

std::array<uint8_t, 8> name_of_job(const Key& key) {
  std::array<uint8_t, 8> name;
  const Key whole = derive(key, 'n');
  std::copy_n(whole.begin(), name.size(), name.begin());
  return name;
}

}  // namespace offpath::seal
