// SPDX-License-Identifier: BSD-3-Clause
// The same random mutations of the seeds each time. Usage: fuzz_X [runs [seed]]
#include "target.hpp"

#include <random>

int main(int argc, char** argv) {
  const unsigned long runs = argc > 1 ? strtoul(argv[1], nullptr, 10) : 20000;
  std::mt19937_64 random(argc > 2 ? strtoul(argv[2], nullptr, 10) : 1);
  const auto seeds = fuzz_seeds();
  for (unsigned long run = 0; run < runs; ++run) {
    std::vector<uint8_t> input = seeds[random() % seeds.size()];
    for (uint64_t left = random() % 8; left > 0; --left) {
      const size_t at = input.empty() ? 0 : random() % input.size();
      const auto here = input.begin() + static_cast<std::ptrdiff_t>(at);
      switch (random() % 6) {
        case 0:
          input.insert(here, static_cast<uint8_t>(random()));
          break;
        case 1:
          input.resize(at);
          break;
        case 2:
          if (!input.empty()) input[at] ^= static_cast<uint8_t>(1 << random() % 8);
          break;
        case 3:
          if (!input.empty()) input[at] = random() % 2 == 0 ? 0xFF : 0;
          break;
        case 4:
          for (size_t i = at; i < input.size() && i < at + 8; ++i) input[i] = static_cast<uint8_t>(random());
          break;
        default: {
          const auto& other = seeds[random() % seeds.size()];
          input.insert(here, other.begin(), other.end());
        }
      }
    }
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  printf("%lu runs\n", runs);
}
