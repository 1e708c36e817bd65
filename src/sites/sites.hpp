// SPDX-License-Identifier: BSD-3-Clause
// What stands in a program's source where a call was made: from an ELF file and an offset in it to lines, by DWARF (also of
// separate debug files), and to a symbol.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct Dwfl;
struct Dwfl_Module;

namespace offpath::sites {

struct Frame {
  std::string function;
  std::string file;
  int line = 0;  // 0: not known
};

struct Site {
  std::vector<Frame>
      frames;          // the innermost first; more than one: each is inlined into the next. None: no debug information
  std::string symbol;  // with C++'s names demangled; empty: there is none
  uint64_t symbol_offset = 0;
};

// One file. Where it cannot be read, or is no ELF file, nothing is known of any place in it.
class Object {
 public:
  explicit Object(const std::string& path);

  // `offset`: of the return address of the call, from where the first byte of the file is loaded.
  Site find(uint64_t offset) const;

 private:
  struct End {
    void operator()(Dwfl* dwfl) const;
  };
  std::unique_ptr<Dwfl, End> dwfl_;
  Dwfl_Module* module_ = nullptr;
  uint64_t base_ = 0;  // of the module, as libdwfl places it
};

}  // namespace offpath::sites
