// SPDX-License-Identifier: BSD-3-Clause
// apps/kit: options that are members, what repeated times come to, files that cannot be written.
#include "apps/kit/clocks.hpp"
#include "apps/kit/options.hpp"
#include "apps/kit/report.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace {

enum class Way { near, far };
constexpr const char* kWays[] = {"near", "far"};

// An option of each kind.
struct Options : kit::Options {
  Options() : kit::Options("program", "Does things.") {}
  bool fast = flag(fast, "--fast", "hurries");
  std::string file = text(file, "--file", "is written");
  std::uint32_t count = number(count, "--count", 3, 0, 10, "of things");
  double share = real(share, "--share", 0.5, 0, 1, "of them");
  Numbers sizes = numbers(sizes, "--sizes", {1, 2}, 1, 100, "in bytes");
  std::string unit = word(unit, "--unit", "s", {"s", "ms"}, "of times");
  Way way = word(way, "--way", Way::far, kWays, "to go");
  std::vector<Way> ways = words(ways, "--ways", {Way::near, Way::far}, kWays, "to go");

 private:
  std::string check() override { return sizes.size() == count ? "too many sizes" : ""; }
};

std::optional<int> read(Options& options, std::vector<const char*> words) {
  words.insert(words.begin(), "program");
  return options.read(int(words.size()), const_cast<char**>(words.data()));
}

TEST(Kit, JsonIsWrittenAsItWasMade) {
  kit::Json json = {{"a", 1}, {"list", {1, 2.5, true}}, {"of", {{"text", "x\"y"}, {"none", {}}}}};
  json["a"] = -3;
  json["sizes"] = std::vector<std::uint64_t>{UINT64_MAX, 0};
  json["deep"]["er"] = std::string("z");
  for (int i = 0; i < 2; ++i) json["rows"].push_back({{"i", i}});
  json["empty"] = kit::Json::array();
  EXPECT_EQ(json.dump(),
            "{\"a\":-3,\"list\":[1,2.5,true],\"of\":{\"text\":\"x\\\"y\",\"none\":null},"
            "\"sizes\":[18446744073709551615,0],\"deep\":{\"er\":\"z\"},\"rows\":[{\"i\":0},{\"i\":1}],\"empty\":[]}");
  EXPECT_EQ(kit::Json({{"one", 1}}).dump(1), "{\n \"one\": 1\n}");
  EXPECT_EQ(kit::Json().dump(), "null");
}

TEST(Kit, OptionsThatAreNotGivenKeepTheirPresets) {
  Options options;
  EXPECT_EQ(read(options, {}), std::nullopt);
  EXPECT_TRUE(!options.fast && options.file.empty() && options.count == 3 && options.share == 0.5);
  EXPECT_TRUE(options.unit == "s" && options.way == Way::far && options.sizes == Options::Numbers({1, 2}));
  EXPECT_EQ(options.ways, (std::vector{Way::near, Way::far}));
}

TEST(Kit, OptionsThatAreGivenAreThere) {
  Options options;
  EXPECT_EQ(read(options, {"--fast", "--file", "a", "--count", "7", "--share", "0.25", "--sizes", "9", "--unit", "ms",
                           "--way", "near", "--ways", "far"}),
            std::nullopt);
  EXPECT_TRUE(options.fast && options.file == "a" && options.count == 7 && options.share == 0.25);
  EXPECT_TRUE(options.unit == "ms" && options.way == Way::near && options.sizes == Options::Numbers{9});
  EXPECT_EQ(options.ways, std::vector{Way::far});
}

TEST(Kit, WhatIsWrongEndsTheProgramAndIsSaidInOneLine) {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"--count", "11"}, {"--way", "about"}, {"--sizes", "1,2,3"}, {"--unknown"}}) {
    Options options;
    testing::internal::CaptureStderr();
    EXPECT_EQ(read(options, words), kit::kBadArguments) << words[0];
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("program: "), 0u) << said;
    EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
  }
  Options silent;  // another rank speaks
  const char* words[] = {"program", "--unknown"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(silent.read(2, const_cast<char**>(words), false), kit::kBadArguments);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Kit, HelpHasOptionsInTheirOrderWithTheirPresets) {
  Options options;
  testing::internal::CaptureStdout();
  EXPECT_EQ(read(options, {"--help", "--sizes", "1,2,3"}), 0);
  const std::string help = testing::internal::GetCapturedStdout();
  std::size_t at = 0;
  for (const char* part : {"Does things.", "--fast", "--file TEXT", "--count N=3", "--share X=0.5",
                           "--sizes N,N,...=1,2", "--unit WORD=s", "--way WORD=far", "--ways WORD,...=near,far"}) {
    const std::size_t found = help.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << " in " << help;
    at = found;
  }
}

TEST(Kit, TheEndSaysWhetherAllIsRight) {
  const Options options;
  EXPECT_EQ(options.end(true), 0);
  EXPECT_EQ(options.end(false), kit::kFailed);
  EXPECT_EQ(options.end(true, "not written"), kit::kFailed);
}

TEST(Kit, RepeatedTimesHaveAMedian) {
  const auto odd = kit::spread(std::vector<double>{3, 1, 2});
  EXPECT_TRUE(odd.median == 2 && odd.min == 1 && odd.max == 3);
  EXPECT_EQ(kit::spread(std::vector<double>{4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(kit::spread(std::vector<double>{}).max, 0);
}

TEST(Kit, FilesAreWrittenOrItIsSaid) {
  EXPECT_EQ(kit::write_json("", {}), "");
  EXPECT_NE(kit::write_json("/nowhere/a", {}).find("'/nowhere/a' was not written"), std::string::npos);
  kit::NumbersFile nowhere("/nowhere/a");
  const double numbers[] = {1, 2};
  nowhere.write(numbers, 2);
  EXPECT_NE(nowhere.close().find("Give --field a file"), std::string::npos);
  const std::string name = testing::TempDir() + "kit_test.numbers";
  kit::NumbersFile file(name);
  file.write(numbers, 2);
  EXPECT_EQ(file.close(), "");
  double back[2] = {};
  std::ifstream(name, std::ios::binary).read(reinterpret_cast<char*>(back), sizeof back);
  EXPECT_EQ(back[1], 2);
  std::remove(name.c_str());
  EXPECT_EQ(kit::hex(0x1f), "000000000000001f");
}

}  // namespace
