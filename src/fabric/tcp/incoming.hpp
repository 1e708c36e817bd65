// SPDX-License-Identifier: BSD-3-Clause
// What comes on a lane. Nothing of a frame is used before its tag was checked.
#pragma once

#include "fabric/tcp/frame.hpp"

#include <vector>

namespace offpath::fabric::tcp {

// Why reading stopped.
enum class Got {
  all,    // what there was
  more,   // there may be more, but others have their turn
  pause,  // the next payload's place is not named
  end,    // the other side has ended the connection
  wrong,  // a frame that is none, or is not the next one
  broken  // an error of the connection
};

// Short messages, whole.
class BriefIncoming {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void on_frame(const Frame& frame, Bytes payload) = 0;
  };
  static constexpr size_t kLongestBytes = kPrefixBytes + kBriefBytes + kTagBytes;

  // Through `scratch`, of at least twice the longest frame; it is used during the call only.
  // `ending`: the connection has ended behind what is there.
  Got read(int socket, bool ending, Opener& opener, std::span<uint8_t> scratch, Sink& sink);
  // The frames in front of `bytes`, which are opened in place; `used` bytes of it are theirs. False: a wrong one.
  static bool take(std::span<uint8_t> bytes, Opener& opener, Sink& sink, size_t& used);

 private:
  std::vector<uint8_t> rest_;  // the beginning of a frame
};

// Long payloads, to where they belong: one with a tag once this was checked, so nothing that somebody has changed
// reaches a program's memory, and a program that writes there meanwhile costs no connection.
class BulkIncoming {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void on_announced(const Frame& frame) = 0;  // answered by fetch() or drop()
    virtual void on_fetched(uint64_t context, bool success) = 0;
    virtual void on_bye() = 0;
  };

  // Of the payload that was announced.
  bool waits() const { return stage_ == Stage::waiting; }
  size_t announced_bytes() const { return frame_.payload_bytes; }
  void fetch(uint8_t* buffer, uint64_t context);
  void drop();
  Got read(int socket, bool ending, Opener& opener, Sink& sink);
  // The connection is gone: whether a payload was being fetched, which then never comes.
  bool give_up(uint64_t& context);

 private:
  enum class Stage { prefix, waiting, payload };

  // How much it asks for, too.
  ssize_t receive(int socket, size_t& asked);
  // What the bytes that are there complete.
  bool advance(Opener& opener, Sink& sink);
  // Wakes the owner when a worthwhile part has come. True: it would have been woken too late, look again.
  bool adapt_low_water(int socket);

  Stage stage_ = Stage::prefix;
  Frame frame_;
  size_t got_ = 0;  // in `prefix` of that; in `payload` of payload, tag and next prefix
  std::array<uint8_t, kPrefixBytes> prefix_;
  std::array<uint8_t, kTagBytes> tag_;
  uint8_t* buffer_ = nullptr;      // null: nobody wants it
  std::vector<uint8_t> unproven_;  // a payload with a tag; made once, as the kernel clears each page of it
  uint64_t context_ = 0;
  size_t low_water_ = 1;
};

}  // namespace offpath::fabric::tcp
