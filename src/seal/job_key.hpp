// SPDX-License-Identifier: BSD-3-Clause
// The key of a job, which its services prove to each other: made of the job's token, that whoever starts ranks carries from node to node,
// and of the secret that the user gave it, which no exchange of ours carries. docs/design/0035-job-secret.md
#pragma once

#include "base/result.hpp"
#include "seal/cipher.hpp"

#include <string>

namespace offpath::seal {

// No secret: the token. OFFPATH_ERR_ARGUMENT: one that can be guessed.
base::Result<Key> job_key(const Key& token, const std::string& secret);

// What anybody may know of it, and tells one job from another.
std::array<uint8_t, 8> name_of_job(const Key& key);

}  // namespace offpath::seal
