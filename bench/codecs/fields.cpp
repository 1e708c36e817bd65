// SPDX-License-Identifier: BSD-3-Clause
#include "fields.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>

namespace fields {
namespace {

constexpr std::size_t kSide = 128;  // points of a plane in each direction

// Modes with an energy that falls as turbulence's does, and the time that passed before the field was taken.
template <class Number>
std::vector<Number> velocity(std::size_t count) {
  struct Mode {
    double x, y, z, phase, size;
  };
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> phase(0, 6.283185307179586);
  std::array<Mode, 24> modes{};
  for (Mode& mode : modes) {
    const auto wave = [&] { return static_cast<double>(1 + random() % 12) * 6.283185307179586 / kSide; };
    mode = {wave(), wave(), wave(), phase(random), 0};
    mode.size = std::pow((mode.x * mode.x + mode.y * mode.y + mode.z * mode.z) * kSide, -5.0 / 6);
  }
  std::vector<Number> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i % kSide), y = static_cast<double>(i / kSide % kSide),
               z = static_cast<double>(i / kSide / kSide);
    double sum = 0;
    for (const Mode& m : modes) sum += m.size * std::sin(m.x * x + m.y * y + m.z * z + m.phase);
    out[i] = static_cast<Number>(sum);
  }
  return out;
}

// A hot face; how far the heat has come after some sweeps.
std::vector<double> halo(std::size_t count) {
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i % kSide), y = static_cast<double>(i / kSide % kSide);
    const double there = std::exp(-y / 8) * (1 + std::cos(x * 6.283185307179586 / kSide));
    out[i] = there < 1e-4 ? 0 : there;
  }
  return out;
}

// Tiles of 32 x 32 of which two thirds hold nothing.
std::vector<double> tiles(std::size_t count) {
  std::mt19937_64 random(13);
  std::vector<double> out(count);
  for (std::size_t tile = 0; tile < count; tile += 1024) {
    if (random() % 3 != 0) continue;
    for (std::size_t i = tile; i < std::min(tile + 1024, count); ++i) out[i] = static_cast<double>(random() >> 11);
  }
  return out;
}

template <class Number>
std::vector<std::uint8_t> bytes_of(const std::vector<Number>& numbers, std::size_t bytes) {
  std::vector<std::uint8_t> out(bytes);
  std::memcpy(out.data(), numbers.data(), bytes);
  return out;
}

}  // namespace

std::vector<std::string> names() { return {"velocity", "halo", "tiles", "single", "text", "random"}; }

unsigned width_of(const std::string& name) { return name == "text" || name == "random" ? 1 : name == "single" ? 4 : 8; }

std::vector<std::uint8_t> make(const std::string& name, std::size_t bytes) {
  const std::size_t doubles = bytes / sizeof(double) + 1;
  if (name == "velocity") return bytes_of(velocity<double>(doubles), bytes);
  if (name == "single") return bytes_of(velocity<float>(2 * doubles), bytes);
  if (name == "halo") return bytes_of(halo(doubles), bytes);
  if (name == "tiles") return bytes_of(tiles(doubles), bytes);
  std::vector<std::uint8_t> out;
  std::mt19937_64 random(17);
  static const std::array<const char*, 8> kWords{"energy ",    "step ", "0.001 ", "residual ",
                                                 "iteration ", "norm ", "\n",     "rank "};
  while (name == "text" && out.size() < bytes) {
    const char* word = kWords[random() % kWords.size()];
    out.insert(out.end(), word, word + std::strlen(word));
  }
  while (name == "random" && out.size() < bytes) out.push_back(static_cast<std::uint8_t>(random()));
  out.resize(std::min(out.size(), bytes));
  return out;
}

}  // namespace fields
