// SPDX-License-Identifier: BSD-3-Clause
#include "seal/seal.hpp"

#include "base/environment.hpp"

#include <cstring>
#include <iterator>

namespace offpath::seal {
namespace {

Nonce nonce_of(uint64_t number) {
  Nonce nonce{};
  for (size_t i = 0; i < 8; ++i) nonce[4 + i] = static_cast<uint8_t>(number >> (8 * i));
  return nonce;
}

constexpr const char* kNames[] = {"auth", "encrypt", "user-data-unprotected"};
constexpr const char* kFull = "full";

}  // namespace

const char* name_of(Security security) {
  const auto index = static_cast<size_t>(security) - 1;
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

base::Result<Security> parse_security(const std::string& text) {
  if (text.empty() || text == kFull) return Security::auth;
  for (const Security security : {Security::auth, Security::encrypt, Security::user_data_unprotected}) {
    if (text == name_of(security)) return security;
  }
  return base::Status::error(OFFPATH_ERR_NO_SERVICE,
                             "OFFPATH_FABRIC_SECURITY='%.40s' is not known (services need it to reach each other). "
                             "Leave it out or set it to one of: auth, encrypt, user-data-unprotected",
                             text.c_str());
}

base::Result<Security> wanted_security() { return parse_security(base::Environment::text("OFFPATH_FABRIC_SECURITY")); }

void Sealer::seal(Bytes bytes, uint8_t* out, uint8_t* tag) {
  const Nonce nonce = nonce_of(number_++);
  if (hides_) return cipher_.close(out, tag, bytes, {}, nonce);
  if (out != bytes.data()) memcpy(out, bytes.data(), bytes.size());
  uint8_t none = 0;
  cipher_.close(&none, tag, {&none, 0}, {out, bytes.size()}, nonce);
}

bool Opener::open(std::span<uint8_t> bytes, const uint8_t* tag) {
  const Nonce nonce = nonce_of(number_++);
  if (hides_) return cipher_.open(bytes.data(), tag, bytes, {}, nonce);
  uint8_t none = 0;
  return cipher_.open(&none, tag, {&none, 0}, bytes, nonce);
}

}  // namespace offpath::seal
