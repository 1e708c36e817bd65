// SPDX-License-Identifier: BSD-3-Clause
// Lines from DWARF with libdw, which is opened when something has crashed and not before: a program that does not crash
// does not need it.
#include "device/region_name.hpp"

#if __has_include(<elfutils/libdw.h>)
#include <elfutils/libdw.h>

#include <dlfcn.h>
#include <libelf.h>

#include <cstring>
#include <vector>

namespace offpath::device {
namespace {

// libelf comes with libdw, so all is found in one handle.
class Libdw {
 public:
  Libdw() : handle_(dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) return;
    complete_ = find(elf_version_, "elf_version") && find(elf_memory_, "elf_memory") && find(elf_end_, "elf_end") &&
                find(elf_nextscn_, "elf_nextscn") && find(gelf_getshdr_, "gelf_getshdr") &&
                find(elf_getdata_, "elf_getdata") && find(gelf_getsym_, "gelf_getsym") &&
                find(elf_strptr_, "elf_strptr") && find(begin_, "dwarf_begin_elf") && find(end_, "dwarf_end") &&
                find(units_, "dwarf_get_units") && find(haspc_, "dwarf_haspc") && find(getsrc_, "dwarf_getsrc_die") &&
                find(linesrc_, "dwarf_linesrc") && find(lineno_, "dwarf_lineno");
  }
  Libdw(const Libdw&) = delete;
  Libdw& operator=(const Libdw&) = delete;
  bool complete() const { return complete_; }

  // FILE:LINE of an address, or only FILE.
  enum class Form { file, file_and_line };
  std::string line(Elf* elf, uint64_t address, Form form) const {
    Dwarf* dwarf = begin_(elf, DWARF_C_READ, nullptr);
    if (dwarf == nullptr) return "";
    std::string text;
    // One by one: compilers do not write the index of addresses by default.
    Dwarf_Line* found = nullptr;
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die;
    while (found == nullptr && units_(dwarf, unit, &unit, nullptr, nullptr, &die, nullptr) == 0) {
      if (haspc_(&die, address) == 1) found = getsrc_(&die, address);
    }
    const char* file = found == nullptr ? nullptr : linesrc_(found, nullptr, nullptr);
    int number = 0;
    if (file != nullptr && lineno_(found, &number) == 0) {
      const char* slash = strrchr(file, '/');
      text = slash == nullptr ? file : slash + 1;
      if (form == Form::file_and_line) text += ":" + std::to_string(number);
    }
    end_(dwarf);
    return text;
  }

  uint64_t address_of(Elf* elf, const std::string& symbol) const {
    for (Elf_Scn* section = elf_nextscn_(elf, nullptr); section != nullptr; section = elf_nextscn_(elf, section)) {
      GElf_Shdr header;
      if (gelf_getshdr_(section, &header) == nullptr || header.sh_entsize == 0) continue;
      if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
      Elf_Data* data = elf_getdata_(section, nullptr);
      if (data == nullptr) continue;
      GElf_Sym entry;
      for (int i = 0; gelf_getsym_(data, i, &entry) != nullptr; ++i) {
        const char* name = elf_strptr_(elf, header.sh_link, entry.st_name);
        if (name != nullptr && symbol == name && entry.st_value != 0) return entry.st_value;
      }
    }
    return 0;
  }

  // A copy: libelf may write into what it is given.
  template <typename Use>
  std::string with(std::span<const uint8_t> image, Use use) const {
    if (!complete_ || elf_version_(EV_CURRENT) == EV_NONE) return "";
    std::vector<char> bytes(image.begin(), image.end());
    Elf* elf = elf_memory_(bytes.data(), bytes.size());
    if (elf == nullptr) return "";
    std::string text = use(elf);
    elf_end_(elf);
    return text;
  }

 private:
  template <typename Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    return function != nullptr;
  }

  void* handle_;
  bool complete_ = false;
  decltype(&::elf_version) elf_version_ = nullptr;
  decltype(&::elf_memory) elf_memory_ = nullptr;
  decltype(&::elf_end) elf_end_ = nullptr;
  decltype(&::elf_nextscn) elf_nextscn_ = nullptr;
  decltype(&::gelf_getshdr) gelf_getshdr_ = nullptr;
  decltype(&::elf_getdata) elf_getdata_ = nullptr;
  decltype(&::gelf_getsym) gelf_getsym_ = nullptr;
  decltype(&::elf_strptr) elf_strptr_ = nullptr;
  decltype(&::dwarf_begin_elf) begin_ = nullptr;
  decltype(&::dwarf_end) end_ = nullptr;
  decltype(&::dwarf_get_units) units_ = nullptr;
  decltype(&::dwarf_haspc) haspc_ = nullptr;
  decltype(&::dwarf_getsrc_die) getsrc_ = nullptr;
  decltype(&::dwarf_linesrc) linesrc_ = nullptr;
  decltype(&::dwarf_lineno) lineno_ = nullptr;
};

const Libdw& libdw() {
  static const auto* library = new Libdw;
  return *library;
}

}  // namespace

std::string source_line(std::span<const uint8_t> image, uint64_t address) {
  return libdw().with(image, [&](Elf* elf) { return libdw().line(elf, address, Libdw::Form::file_and_line); });
}

std::string source_file(std::span<const uint8_t> image, const std::string& symbol) {
  return libdw().with(image, [&](Elf* elf) {
    const uint64_t address = libdw().address_of(elf, symbol);
    return address == 0 ? std::string() : libdw().line(elf, address, Libdw::Form::file);
  });
}

}  // namespace offpath::device

#else

namespace offpath::device {
std::string source_line(std::span<const uint8_t>, uint64_t) { return ""; }
std::string source_file(std::span<const uint8_t>, const std::string&) { return ""; }
}  // namespace offpath::device

#endif
