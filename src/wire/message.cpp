// SPDX-License-Identifier: BSD-3-Clause
#include "wire/message.hpp"

#include <algorithm>
#include <bit>

namespace offpath::wire {
namespace {

constexpr uint8_t kMagic0 = 'O';
constexpr uint8_t kMagic1 = 'p';

// To and from the order of the wire.
template <typename T>
T little_endian(T value) {
  if constexpr (std::endian::native == std::endian::little) return value;
  auto* bytes = reinterpret_cast<uint8_t*>(&value);
  std::reverse(bytes, bytes + sizeof(T));
  return value;
}

// One description of each kind's fields serves both directions, so they cannot disagree.
template <typename Codec>
bool visit_fields(Kind kind, Codec&& codec) {
  switch (kind) {
    case Kind::hello:
    case Kind::request:
      return codec.team() && codec.route();
    case Kind::pull:
      return codec.team() && codec.route() && codec.tag() && codec.pull_id() && codec.bytes() && codec.codecs();
    case Kind::task:
      return codec.team() && codec.route() && codec.tag() && codec.status() && codec.codecs() && codec.task();
    case Kind::fetch:
      return codec.team() && codec.route() && codec.tag() && codec.pull_id() && codec.bytes() && codec.codecs() &&
             codec.chunks();
    case Kind::push:
      return codec.team() && codec.route() && codec.tag();
    case Kind::data:
      return codec.pull_id() && codec.bytes() && codec.offset();
    case Kind::coded:
      return codec.pull_id() && codec.bytes() && codec.offset() && codec.coding();
    case Kind::done:
      return codec.team() && codec.route() && codec.tag() && codec.status() && codec.decode_ns();
    case Kind::fail:
      return codec.pull_id() && codec.status();
    case Kind::lost:
    case Kind::reply:
      return codec.team() && codec.route() && codec.status();
    case Kind::ping:
    case Kind::pong:
      return codec.waited_ns();
    case Kind::batch:
      return true;
  }
  return false;
}

template <typename Derived>
struct Fields {
  Derived& self() { return static_cast<Derived&>(*this); }
  bool team() { return self().raw(self().message.team.bytes.data(), self().message.team.bytes.size()); }
  bool route() {
    return self().channel() && self().number(self().message.number) && self().number(self().message.from) &&
           self().number(self().message.to);
  }
  bool channel() { return self().number(self().message.channel); }
  bool tag() { return self().number(self().message.tag); }
  bool pull_id() { return self().number(self().message.pull_id); }
  bool bytes() { return self().number(self().message.bytes); }
  bool offset() { return self().number(self().message.offset); }
  bool codecs() { return self().number(self().message.codecs); }
  bool coding() {
    return self().number(self().message.length) && self().number(self().message.check) &&
           self().number(self().message.codec) && self().number(self().message.width);
  }
  bool task() {
    return self().word() && self().number(self().message.chunk_bytes) && self().number(self().message.digest) &&
           self().number(self().message.rate) && self().number(self().message.first) &&
           self().number(self().message.count);
  }
  bool word() { return self().number(self().message.word); }
  bool chunks() {
    return self().number(self().message.part) && self().number(self().message.first) &&
           self().number(self().message.count);
  }
  bool decode_ns() { return self().number(self().message.decode_ns); }
  bool waited_ns() { return self().number(self().message.waited_ns); }
  bool status() { return self().number(self().message.status); }
};

struct Writer : Fields<Writer> {
  explicit Writer(const Message& source, std::span<uint8_t> target) : message(source), out(target) {}
  Message message;
  std::span<uint8_t> out;
  size_t used = 0;
  bool raw(const uint8_t* data, size_t bytes) {
    memcpy(out.data() + used, data, bytes);
    used += bytes;
    return true;
  }
  bool number(Channel value) { return number(static_cast<uint8_t>(value)); }
  bool number(Word value) { return number(static_cast<uint8_t>(value)); }
  template <typename T>
  bool number(T value) {
    value = little_endian(value);
    return raw(reinterpret_cast<const uint8_t*>(&value), sizeof(T));
  }
};

struct Reader : Fields<Reader> {
  explicit Reader(std::span<const uint8_t> source) : in(source) {}
  Message message;
  std::span<const uint8_t> in;
  size_t used = 0;
  bool raw(uint8_t* data, size_t bytes) {
    if (in.size() - used < bytes) return false;
    memcpy(data, in.data() + used, bytes);
    used += bytes;
    return true;
  }
  bool number(Channel& value) {
    uint8_t byte = 0;
    if (!number(byte) || byte > static_cast<uint8_t>(Channel::answers)) return false;
    value = static_cast<Channel>(byte);
    return true;
  }
  bool number(Word& value) {
    uint8_t byte = 0;
    if (!number(byte) || byte < static_cast<uint8_t>(Word::armed) || byte > static_cast<uint8_t>(Word::fin))
      return false;
    value = static_cast<Word>(byte);
    return true;
  }
  template <typename T>
  bool number(T& value) {
    if (!raw(reinterpret_cast<uint8_t*>(&value), sizeof(T))) return false;
    value = little_endian(value);
    return true;
  }
};

}  // namespace

size_t encode(const Message& message, std::span<uint8_t, kMaxMessageBytes> out) {
  Writer writer(message, out);
  const uint8_t head[4] = {kMagic0, kMagic1, kVersion, static_cast<uint8_t>(message.kind)};
  writer.raw(head, sizeof(head));
  visit_fields(message.kind, writer);
  return writer.used;
}

base::Result<Message> decode(std::span<const uint8_t> in) {
  using base::Status;
  if (in.size() < 4 || in[0] != kMagic0 || in[1] != kMagic1) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "message of %zu bytes is not Offpath's", in.size());
  }
  if (in[2] != kVersion) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "message has version %u, this service speaks %u (the nodes run different "
                         "releases). Install the same release on all nodes",
                         in[2], kVersion);
  }
  Reader reader(in);
  reader.used = 4;
  reader.message.kind = static_cast<Kind>(in[3]);
  if (!visit_fields(reader.message.kind, reader) || reader.used != in.size()) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "message of kind %u has a wrong length of %zu bytes", in[3], in.size());
  }
  const Message& message = reader.message;
  if (message.bytes > kMaxBlockBytes || message.offset > message.bytes ||
      message.length > message.bytes - message.offset) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "message of kind %u names an impossible block", in[3]);
  }
  if (!base::is_known_code(message.status)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "message of kind %u has the unknown status %d", in[3], message.status);
  }
  return reader.message;
}

}  // namespace offpath::wire
