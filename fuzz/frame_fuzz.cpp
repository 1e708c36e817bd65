// SPDX-License-Identifier: BSD-3-Clause
// What strangers and members of a job can say to the fabric tcp. decode: any bytes are refused, or a frame that encodes
// to the same bytes. Frames with a proper tag and any content: taken whole, inside what is there, or refused. Handshakes:
// nobody gets through without the key.
#include "fabric/tcp/address.hpp"
#include "fabric/tcp/incoming.hpp"
#include "target.hpp"

#include <algorithm>

using namespace offpath::fabric;
using namespace offpath::fabric::tcp;
namespace seal = offpath::seal;

namespace {

using Data = std::vector<uint8_t>;

class Sink : public BriefIncoming::Sink {
 public:
  explicit Sink(std::span<const uint8_t> inside) : inside_(inside) {}
  void on_frame(const Frame& frame, Bytes payload) override {
    FUZZ_REQUIRE(frame.header_bytes <= kMaxHeaderBytes && payload.size() == frame.payload_bytes);
    FUZZ_REQUIRE(payload.data() >= inside_.data());
    FUZZ_REQUIRE(payload.data() + payload.size() <= inside_.data() + inside_.size());
  }

 private:
  std::span<const uint8_t> inside_;
};

void decode_once(Lane lane, std::span<const uint8_t> in) {
  if (in.size() < kFrameBytes) return;
  const auto frame = decode(lane, in.first<kFrameBytes>());
  if (!frame) return;
  std::array<uint8_t, kFrameBytes> again;
  encode(*frame, again);
  FUZZ_REQUIRE(std::equal(again.begin(), again.end(), in.begin()));
}

// `seals`: as a member of the job would say it, whatever it says; else as it comes.
void take(Security security, Data bytes, bool seals) {
  constexpr seal::Key kKey{5};
  Sealer sealer(kKey, seal::Suite::chacha, security);
  Opener opener(kKey, seal::Suite::chacha, security);
  for (size_t at = 0; seals && at + kPrefixBytes <= bytes.size(); at += kPrefixBytes) {
    seal_prefix(sealer, std::span(bytes).subspan(at).first<kPrefixBytes>());
  }
  Sink sink(bytes);
  size_t used = 0;
  BriefIncoming::take(bytes, opener, sink, used);
  FUZZ_REQUIRE(used <= bytes.size());
}

void shake_hands(const Data& bytes) {
  using seal::Stage;
  seal::Responder responder(seal::Secret{1}, EndpointId{2});
  seal::Initiator initiator(seal::Secret{1}, seal::Greeting{});
  for (size_t at = 0; at + responder.wants() <= bytes.size() && responder.stage() != Stage::failed;) {
    const size_t wanted = responder.wants();
    responder.take(Bytes(bytes).subspan(at, wanted));
    at += wanted;
    FUZZ_REQUIRE(responder.stage() != Stage::judging);
  }
  for (size_t at = 0; at + initiator.wants() <= bytes.size() && initiator.stage() != Stage::failed;) {
    const size_t wanted = initiator.wants();
    initiator.take(Bytes(bytes).subspan(at, wanted));
    at += wanted;
    FUZZ_REQUIRE(initiator.stage() != Stage::done);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const Data exact(data, data + bytes);
  for (const Lane lane : {Lane::brief, Lane::bulk}) decode_once(lane, exact);
  for (const Security security : {Security::auth, Security::encrypt}) {
    for (const bool seals : {false, true}) take(security, exact, seals);
  }
  shake_hands(exact);
  if (const auto address = EndpointAddress::decode(exact)) {
    FUZZ_REQUIRE(!address->places.empty() && address->places.size() <= kMaxPlaces && address->encode() == exact);
  }
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  std::vector<Data> out;
  for (const uint32_t payload : {0U, 1U, 30U, 120U, 9000U}) {
    Frame frame;
    frame.header_bytes = 40;
    frame.payload_bytes = payload;
    Data bytes(kPrefixBytes + std::min<size_t>(payload, 500));
    encode(frame, std::span(bytes).first<kFrameBytes>());
    out.push_back(bytes);
  }
  out.push_back(seal::Initiator(seal::Secret{1}, seal::Greeting{}).greet());
  EndpointAddress address;
  address.places.resize(2);
  for (Place& place : address.places) place.port = 9;
  out.push_back(address.encode());
  return out;
}
