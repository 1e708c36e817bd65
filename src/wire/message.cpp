// SPDX-License-Identifier: BSD-3-Clause
#include "wire/message.hpp"

#include "base/fields.hpp"

namespace offpath::wire {
namespace {

constexpr uint8_t kMagic0 = 'O';
constexpr uint8_t kMagic1 = 'p';

// Serves both directions.
template <typename Codec, typename Of>
bool fields(Codec& codec, Of& m) {
  const auto route = [&] { return codec(m.team.bytes, m.channel, m.number, m.from, m.to); };
  switch (m.kind) {
    case Kind::hello:
    case Kind::request:
      return route();
    case Kind::pull:
      return route() && codec(m.tag, m.pull_id, m.bytes, m.offset, m.codecs);
    case Kind::task:
      return route() && codec(m.tag, m.status, m.codecs, m.word, m.chunk_bytes, m.digest, m.rate, m.first, m.count);
    case Kind::fetch:
      return route() && codec(m.tag, m.pull_id, m.bytes, m.codecs, m.part, m.first, m.count);
    case Kind::push:
      return route() && codec(m.tag);
    case Kind::arrived:
      return route() && codec(m.tag, m.count);
    case Kind::data:
      return codec(m.pull_id, m.bytes, m.offset);
    case Kind::coded:
      return codec(m.pull_id, m.bytes, m.offset, m.length, m.check, m.codec, m.width);
    case Kind::done:
      return route() && codec(m.tag, m.status, m.decode_ns);
    case Kind::fail:
      return codec(m.pull_id, m.status);
    case Kind::lost:
    case Kind::gone:
    case Kind::reply:
      return route() && codec(m.status);
    case Kind::ping:
    case Kind::pong:
      return codec(m.waited_ns);
    case Kind::batch:
      return true;
  }
  return false;
}

bool has_known_words(const Message& message) {
  return message.channel <= Channel::answers && message.word >= Word::armed && message.word <= Word::fin;
}

}  // namespace

size_t encode(const Message& message, std::span<uint8_t, kMaxMessageBytes> out) {
  base::FieldWriter writer(out.data());
  writer(kMagic0, kMagic1, kVersion, message.kind);
  fields(writer, message);
  return static_cast<size_t>(writer.end() - out.data());
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
  base::Result<Message> out = Message{};
  Message& message = out.value();
  message.kind = static_cast<Kind>(in[3]);
  base::FieldReader reader(in.subspan(4));
  if (!fields(reader, message) || !reader.ended() || !has_known_words(message)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "message of kind %u has a wrong length of %zu bytes", in[3], in.size());
  }
  if (message.bytes > kMaxBlockBytes || message.offset > message.bytes ||
      message.length > message.bytes - message.offset) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "message of kind %u names an impossible block", in[3]);
  }
  if (!base::is_known_code(message.status)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "message of kind %u has the unknown status %d", in[3], message.status);
  }
  return out;
}

}  // namespace offpath::wire
