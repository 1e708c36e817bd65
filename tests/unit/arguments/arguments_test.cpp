// SPDX-License-Identifier: BSD-3-Clause
#include "arguments/arguments.hpp"

#include <gtest/gtest.h>

namespace arguments {
namespace {

// A program with an option of each kind.
struct Program {
  Program() {
    app.version("program 1.2");
    app.flag("--fast", fast, "hurries");
    app.text("--file", file, "is written");
    app.number("--count", count, 0, 10, "of things");
    app.real("--share", share, 0, 1, "of them");
    app.numbers("--sizes", sizes, 1, 100, "in bytes");
    app.word("--way", way, {{"near", 1}, {"far", 2}}, "to go");
    app.words("--ways", ways, {{"near", 1}, {"far", 2}}, "to go");
  }
  std::string parse(std::vector<const char*> words) {
    words.insert(words.begin(), "program");
    return app.parse(static_cast<int>(words.size()), words.data());
  }

  Arguments app{"program", "Does things."};
  bool fast = false;
  std::string file = "out";
  uint32_t count = 3;
  double share = 0.5;
  std::vector<int64_t> sizes = {1, 2};
  int way = 1;
  std::vector<int> ways = {1};
};

TEST(Arguments, ValuesKeepWhatTheyHad) {
  Program program;
  EXPECT_EQ(program.parse({}), "");
  EXPECT_EQ(program.app.help(), "");
  EXPECT_TRUE(!program.fast && program.file == "out" && program.count == 3 && program.way == 1);
}

TEST(Arguments, EachKindIsRead) {
  Program program;
  EXPECT_EQ(program.parse({"--fast", "--file", "-x", "--count=7", "--share", "1e-1", "--sizes", "1,100", "--way", "far",
                           "--ways", "far,near", "--count", "8"}),
            "");
  EXPECT_TRUE(program.fast && program.file == "-x" && program.share == 0.1);
  EXPECT_EQ(program.count, 8u);  // the last one
  EXPECT_EQ(program.sizes, (std::vector<int64_t>{1, 100}));
  EXPECT_EQ(program.way, 2);
  EXPECT_EQ(program.ways, (std::vector<int>{2, 1}));
}

TEST(Arguments, WhatIsNotUsableIsRefusedInOneLine) {
  const std::vector<std::vector<const char*>> wrong = {
      {"--count", "11"},   {"--count", "-1"},  {"--count", "1x"}, {"--count", ""},     {"--file", ""},
      {"--share", "2"},    {"--share", "nan"}, {"--sizes", "0"},  {"--sizes", "1,,2"}, {"--way", "near,far"},
      {"--ways", "about"}, {"--unknown"},      {"word"},          {"--fast=yes"},      {"--file"}};
  for (const auto& words : wrong) {
    Program program;
    const std::string problem = program.parse(words);
    EXPECT_FALSE(problem.empty()) << words[0];
    EXPECT_EQ(problem.find('\n'), std::string::npos) << problem;
  }
  Program program;
  EXPECT_EQ(program.parse({"--count", "11"}),
            "--count '11' is not usable (needed: a whole number from 0 to 10). Give another value");
}

TEST(Arguments, HelpAndVersionComeInsteadOfDoingAnything) {
  Program program;
  EXPECT_EQ(program.parse({"--help", "--unknown"}), "");
  const std::string help = program.app.help();
  for (const char* part : {"Does things.", "Usage: program", "--count N=3", "--way WORD=near", "to go (near, far)"})
    EXPECT_NE(help.find(part), std::string::npos) << part;
  EXPECT_EQ(Program().parse({"--version"}), "");
  Program other;
  EXPECT_EQ(other.parse({"--version"}), "");
  EXPECT_EQ(other.app.help(), "program 1.2\n");
}

TEST(Arguments, WhatGoesTogetherIsSaid) {
  const auto parse = [](std::vector<const char*> words) {
    Program program;
    program.app.required("--count");
    program.app.needs("--file", "--way");
    program.app.excludes("--fast", "--share");
    return program.parse(std::move(words));
  };
  EXPECT_EQ(parse({"--count", "1", "--file", "a", "--way", "far", "--fast"}), "");
  EXPECT_NE(parse({}).find("--count is missing"), std::string::npos);
  EXPECT_NE(parse({"--count", "1", "--file", "a"}).find("without --way"), std::string::npos);
  EXPECT_NE(parse({"--count", "1", "--fast", "--share", "1"}).find("both"), std::string::npos);
}

TEST(Arguments, OtherWordsAreTaken) {
  Program program;
  std::vector<std::string> links;
  program.app.others("links", links, "two names");
  EXPECT_EQ(program.parse({"a=b", "--count", "1", "c=d"}), "");
  EXPECT_EQ(links, (std::vector<std::string>{"a=b", "c=d"}));
  Program none;
  none.app.others("links", links, "two names");
  EXPECT_NE(none.parse({}).find("links is missing"), std::string::npos);
  EXPECT_NE(none.parse({"-a"}).find("unknown option"), std::string::npos);
}

}  // namespace
}  // namespace arguments
