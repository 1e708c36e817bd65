// SPDX-License-Identifier: BSD-3-Clause
// Seals: what proves that bytes are the next ones of their connection, and hides them where that was asked for. Pure. Each
// direction of each connection has a key (handshake.hpp), the number of what was sealed with it is the nonce.
// docs/design/0034-authentication.md
#pragma once

#include "base/result.hpp"
#include "seal/cipher.hpp"

#include <string>

namespace offpath::seal {

// OFFPATH_FABRIC_SECURITY.
enum class Security : uint8_t {
  auth = 1,                  // nothing can be changed; all can be read
  encrypt = 2,               // nor read
  user_data_unprotected = 3  // user data between services can be changed
};
const char* name_of(Security security);
// Empty: the default. `full` means auth, too: it was another one when auth had exceptions.
base::Result<Security> parse_security(const std::string& text);
// That variable of this process.
base::Result<Security> wanted_security();

// Keys of a connection, as one of its sides has them.
struct Session {
  Key out{}, in{};
  Suite suite = Suite::chacha;
};

class Sealer {
 public:
  Sealer(const Key& key, Suite suite, Security security) : cipher_(key, suite), hides_(security == Security::encrypt) {}
  // To `out`, which may be where they are: as many bytes; to `tag`: kTagBytes.
  void seal(Bytes bytes, uint8_t* out, uint8_t* tag);

 private:
  Cipher cipher_;
  bool hides_;
  uint64_t number_ = 0;
};

class Opener {
 public:
  Opener(const Key& key, Suite suite, Security security) : cipher_(key, suite), hides_(security == Security::encrypt) {}
  // In place. False: they are not the next ones of this connection, which is of no use any more then.
  bool open(std::span<uint8_t> bytes, const uint8_t* tag);
  // Instead, of what nobody wants.
  void pass() { ++number_; }
  // To open again, in another copy, what was opened.
  uint64_t number() const { return number_; }
  void go_back_to(uint64_t number) { number_ = number; }

 private:
  Cipher cipher_;
  bool hides_;
  uint64_t number_ = 0;
};

}  // namespace offpath::seal
