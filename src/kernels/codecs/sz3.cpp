// SPDX-License-Identifier: BSD-3-Clause
// SZ3's prediction by interpolation, with a quantizer and a coding of its results of our own. SZ3's decoders believe what
// they read: lengths, counts, trees. Of what comes from the wire it gets nothing here but values: numbers of steps, of which there
// are as many as numbers are wanted, and the numbers that no step reaches, whose end the quantizer looks for. Which
// element it touches when follows from their count alone.
//
// The frame: length of the coded steps (4 bytes), count of the others (4), the steps (zstd over byte planes), the others.
// Compiled without contraction: who decodes must come to the very bytes that who encodes has seen.
#include "kernels/codecs/numbers.hpp"

// clang-format off
#if OFFPATH_HAS_SZ3
#include "base/bytes.hpp"
#include "kernels/codecs/shuffle.hpp"

#include <sstream>  // the next one needs it
#include <SZ3/utils/Config.hpp>
#include <SZ3/utils/BlockwiseIterator.hpp>
#include <SZ3/decomposition/InterpolationDecomposition.hpp>

#include <cmath>
#include <cstring>
#endif
// clang-format on

namespace offpath::codecs {

std::unique_ptr<NumberCodec> make_sz3();

#if OFFPATH_HAS_SZ3
namespace {

constexpr int kRadius = 32768;  // steps are -kRadius + 1 to kRadius - 1; 0 stands for a number that none reaches
constexpr size_t kHeadBytes = 8;

template <class T>
struct Others {
  std::vector<T> values;
  size_t next = 0;
  bool missing = false;
};

template <class T>
class Quantizer : public SZ3::concepts::QuantizerInterface<T, int> {
 public:
  Quantizer(double tolerance, Others<T>& others) : tolerance_(tolerance), others_(&others) {}
  double get_eb() const { return tolerance_; }
  void set_eb(double tolerance) { tolerance_ = tolerance; }

  int quantize_and_overwrite(T& data, T predicted) override {
    const double steps = (static_cast<double>(data) - static_cast<double>(predicted)) / (2 * tolerance_);
    if (std::fabs(steps) < kRadius - 1) {  // not where it is no number
      const int index = static_cast<int>(steps < 0 ? steps - 0.5 : steps + 0.5) + kRadius;
      const T restored = step_to(predicted, index);
      if (std::fabs(static_cast<double>(restored) - static_cast<double>(data)) <= tolerance_) {
        data = restored;
        return index;
      }
    }
    return force_save_unpred(data);
  }
  T recover(T predicted, int index) override { return index == 0 ? recover_unpred() : step_to(predicted, index); }
  int force_save_unpred(T value) override {
    others_->values.push_back(value);
    return 0;
  }
  T recover_unpred() {
    if (others_->next < others_->values.size()) return others_->values[others_->next++];
    others_->missing = true;
    return 0;
  }
  void save(SZ3::uchar*&) const override {}
  void load(const SZ3::uchar*&, size_t&) override {}
  std::pair<int, int> get_out_range() const override { return {0, 2 * kRadius}; }

 private:
  T step_to(T predicted, int index) const {
    return static_cast<T>(static_cast<double>(predicted) + 2 * tolerance_ * (index - kRadius));
  }
  double tolerance_;
  Others<T>* others_;
};

template <class T>
using Prediction = SZ3::InterpolationDecomposition<T, 1, Quantizer<T>>;

// Small steps, in either direction, as small numbers.
uint16_t folded(int index) {
  if (index == 0) return 0;
  const int step = index - kRadius;
  return static_cast<uint16_t>((step < 0 ? -2 * step - 1 : 2 * step) + 1);
}
int unfolded(uint16_t code) {
  if (code == 0) return 0;
  const int step = code - 1;
  return (step % 2 == 0 ? step / 2 : -(step + 1) / 2) + kRadius;
}

class Sz3 : public NumberCodec {
 public:
  size_t encode(Elements elements, double tolerance, Bytes in, Room out) override try {
    return elements == Elements::float32 ? encode_all<float>(tolerance, in, out)
                                         : encode_all<double>(tolerance, in, out);
  } catch (...) {  // the library's, or there is no memory
    return 0;
  }
  bool decode(Elements elements, double tolerance, Bytes in, Room out) override try {
    return elements == Elements::float32 ? decode_all<float>(tolerance, in, out)
                                         : decode_all<double>(tolerance, in, out);
  } catch (...) {
    return false;
  }

 private:
  static SZ3::Config config_for(size_t count) {
    SZ3::Config config(count);
    config.interpAlgo = SZ3::INTERP_ALGO_CUBIC;
    config.interpDirection = 0;
    config.interpAnchorStride = 0;
    config.interpAlpha = config.interpBeta = 2;  // powers of two are the same everywhere
    return config;
  }

  template <class T>
  size_t encode_all(double tolerance, Bytes in, Room out) {
    const size_t count = in.size() / sizeof(T);
    std::vector<T> values(count);
    std::memcpy(values.data(), in.data(), in.size());
    Others<T> others;
    const SZ3::Config config = config_for(count);
    Prediction<T> prediction(config, Quantizer<T>(tolerance, others));
    const std::vector<int> steps = prediction.compress(config, values.data());
    const size_t others_bytes = others.values.size() * sizeof(T);
    if (out.size() <= kHeadBytes + others_bytes) return 0;
    codes_.resize(2 * count), planes_.resize(2 * count);
    for (size_t i = 0; i < count; ++i) base::ByteWriter(codes_.data() + 2 * i).number(folded(steps[i]));
    shuffle(codes_.data(), planes_.data(), planes_.size(), 2);
    const size_t coded = zstd_->encode(planes_, out.subspan(kHeadBytes, out.size() - kHeadBytes - others_bytes));
    if (coded == 0) return 0;
    base::ByteWriter head(out.data());
    head.number(static_cast<uint32_t>(coded));
    head.number(static_cast<uint32_t>(others.values.size()));
    if (others_bytes > 0) std::memcpy(out.data() + kHeadBytes + coded, others.values.data(), others_bytes);
    return kHeadBytes + coded + others_bytes;
  }

  template <class T>
  bool decode_all(double tolerance, Bytes in, Room out) {
    if (in.size() < kHeadBytes) return false;
    const size_t count = out.size() / sizeof(T);
    base::ByteReader head(in.data());
    const size_t coded = head.number<uint32_t>(), others_count = head.number<uint32_t>();
    if (others_count > count || kHeadBytes + coded + others_count * sizeof(T) != in.size()) return false;
    codes_.resize(2 * count), planes_.resize(2 * count);
    if (!zstd_->decode(in.subspan(kHeadBytes, coded), planes_)) return false;
    unshuffle(planes_.data(), codes_.data(), codes_.size(), 2);
    std::vector<int> steps(count);
    for (size_t i = 0; i < count; ++i) steps[i] = unfolded(base::ByteReader(codes_.data() + 2 * i).number<uint16_t>());
    Others<T> others;
    others.values.resize(others_count);
    if (others_count > 0) std::memcpy(others.values.data(), in.data() + kHeadBytes + coded, others_count * sizeof(T));
    const SZ3::Config config = config_for(count);
    Prediction<T> prediction(config, Quantizer<T>(tolerance, others));
    load(prediction, config);
    std::vector<T> values(count);
    prediction.decompress(config, steps, values.data());
    if (others.missing || others.next != others_count) return false;
    std::memcpy(out.data(), values.data(), out.size());
    return true;
  }

  // What a prediction would read of its own from the wire; it is known here.
  template <class T>
  static void load(Prediction<T>& prediction, const SZ3::Config& config) {
    uint8_t head[64];
    SZ3::uchar* end = head;
    SZ3::write(static_cast<size_t>(config.num), end);
    SZ3::write(SZ3::uint{32}, end);  // its block, as compress() sets it
    SZ3::write(static_cast<int>(config.interpAlgo), end);
    SZ3::write(static_cast<int>(config.interpDirection), end);
    SZ3::write(static_cast<size_t>(config.interpAnchorStride), end);
    SZ3::write(static_cast<double>(config.interpAlpha), end);
    SZ3::write(static_cast<double>(config.interpBeta), end);
    const SZ3::uchar* begin = head;
    size_t bytes = static_cast<size_t>(end - head);
    prediction.load(begin, bytes);
  }

  const std::unique_ptr<Codec> zstd_ = make_codec(CodecId::zstd, 0);
  std::vector<uint8_t> codes_, planes_;
};

}  // namespace

std::unique_ptr<NumberCodec> make_sz3() { return std::make_unique<Sz3>(); }
#else
std::unique_ptr<NumberCodec> make_sz3() { return nullptr; }
#endif

}  // namespace offpath::codecs
