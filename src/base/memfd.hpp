// SPDX-License-Identifier: BSD-3-Clause
// Memfd: nameless shared memory, mapped here and passed to another process as a descriptor. Sealed against
// shrinking, so a mapping of it cannot fault because the other side truncated it.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/steady.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace offpath::base {

class Memfd {
 public:
  // Pages are allocated when first touched, so a generous size costs nothing.
  static Result<Memfd> create(const char* name, size_t bytes);
  // What is mapped here is the only way to write it: whoever gets the descriptor can only read.
  static Result<Memfd> create_read_only(const char* name, size_t bytes);
  // Maps a descriptor received from another process; refuses one that is not sealed or has another size.
  static Result<Memfd> adopt(Fd fd, size_t expected_bytes);

  Memfd() = default;
  Memfd(Memfd&& other) noexcept;
  Memfd& operator=(Memfd&& other) noexcept;
  ~Memfd();

  uint8_t* data() const { return data_; }
  bool holds(const void* address) const { return data_ <= address && address < data_ + bytes_; }
  size_t bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }
  struct Stretch {
    uint8_t* data = nullptr;
    size_t bytes = 0;
  };
  // These stretches of it stay mapped, for ever; they are in order.
  void unmap_but(std::span<const Stretch> kept);
  // The rest is unmapped, and so are its pages given back, if nobody else has them. Closes the descriptor, too.
  void keep_first(size_t bytes);
  // What is mapped stays.
  void close_descriptor() { fd_.reset(); }

 private:
  static Result<Memfd> create_with(const char* name, size_t bytes, int seals);
  static Result<Memfd> map(Fd fd, size_t bytes);
  void unmap();

  Fd fd_;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
  Steady steady_;
};

}  // namespace offpath::base
