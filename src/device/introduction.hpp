// SPDX-License-Identifier: BSD-3-Clause
// How a client of a starter says who it is and what it wants, and hears the answer: proven by a key that both know
// (connect.hpp), or by MUNGE, which says which user it is. Nobody else reads or changes either.
#pragma once

#include "device/connect.hpp"

#include <optional>
#include <string>
#include <vector>

namespace offpath::device {

struct Answered {
  Connection connection;
  std::string answer;
};
// The client's part; the key is the one of OFFPATH_DEVICE_KEY_FILE, and without one, or with `none`, it is MUNGE.
base::Result<Answered> introduce(const DeviceEntry& entry, Purpose purpose, const std::string& request, int timeout_ms);

// The starter's part, on an accepted connection: until somebody is proven nothing is done for him but what take() does.
class Introduction {
 public:
  enum class Stage : uint8_t {
    hears,       // more must come
    proven,      // he knows the key
    credential,  // he says that MUNGE names him, and all of what it has sealed is there: hear_request() opens it
    refused
  };
  // `key`: none, nobody is let in by it. `munge`: users that MUNGE names are believed.
  Introduction(const std::optional<Key>& key, bool munge);

  // Takes what has come on a socket, and answers; never blocks.
  Stage take(int socket);
  Stage stage() const { return stage_; }
  // He has said something that only somebody with the key can say, if nobody repeats it.
  bool has_greeted() const { return responder_ && responder_->stage() == seal::Stage::proof; }
  // What he wants, where that is no region; blocks for at most timeout_ms with each part.
  base::Status hear_request(int socket, int timeout_ms);
  Purpose purpose() const { return purpose_; }
  // Not for regions.
  const std::string& request() const { return request_; }
  // Whom MUNGE has named.
  std::optional<uid_t> user() const { return user_; }
  // Only where the key was proven.
  const seal::Session& session() const { return responder_->session(); }
  seal::Security security() const { return responder_->greeting().security; }
  base::Status answer(int socket, const std::string& text);
  // What is said behind that: sealed, but to whom MUNGE has named.
  Line line(int socket) const {
    if (line_) return *line_;
    return stage_ == Stage::proven ? Line(socket, session(), security()) : Line(socket);
  }

 private:
  bool names_munge() const;
  size_t wanted() const;
  Stage take_words();

  Stage stage_ = Stage::hears;
  bool munge_;
  std::optional<seal::Responder> responder_;
  std::vector<uint8_t> got_;
  seal::Words says_;
  Purpose purpose_{};
  std::optional<Line> line_;
  std::string request_, nonce_;
  std::optional<uid_t> user_;
};

}  // namespace offpath::device
