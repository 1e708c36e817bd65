// SPDX-License-Identifier: BSD-3-Clause
#include "sites/sites.hpp"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <span>

namespace offpath::sites {

namespace {

constexpr Dwfl_Callbacks kCallbacks{nullptr, dwfl_standard_find_debuginfo, dwfl_offline_section_address, nullptr};

template <typename T>
using Allocated = std::unique_ptr<T, decltype(&free)>;

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

// Without its parameters, as lines say more.
std::string demangled(const char* symbol) {
  int status = 0;
  const Allocated<char> plain(abi::__cxa_demangle(symbol, nullptr, nullptr, &status), free);
  if (plain == nullptr) return symbol;
  std::string name = plain.get();
  int depth = 0;  // of brackets, from the end
  for (size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')' || name[at] == '>') ++depth;
    if (name[at] == '<') --depth;
    if (name[at] == '(' && --depth == 0) return name.substr(0, at);
  }
  return name;
}

// Where the file's first byte is in the addresses that the file speaks of.
std::optional<uint64_t> first_address(Elf* elf) {
  size_t count = 0;
  if (elf == nullptr || elf_getphdrnum(elf, &count) != 0) return std::nullopt;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  GElf_Phdr part;
  for (size_t i = 0; i < count; ++i) {
    if (gelf_getphdr(elf, static_cast<int>(i), &part) != nullptr && part.p_type == PT_LOAD)
      return part.p_vaddr & ~(page - 1);
  }
  return std::nullopt;
}

// Compilers that write no index of addresses have their units looked through.
Dwarf_Die* unit_of(Dwfl_Module* module, uint64_t address, Dwarf_Addr* bias) {
  if (Dwarf_Die* unit = dwfl_module_addrdie(module, address, bias)) return unit;
  for (Dwarf_Die* unit = dwfl_module_nextcu(module, nullptr, bias); unit != nullptr;
       unit = dwfl_module_nextcu(module, unit, bias)) {
    if (dwarf_haspc(unit, address - *bias) == 1) return unit;
  }
  return nullptr;
}

std::string function_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  return text_of(dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attribute)));
}

uint64_t number_of(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 ? value : 0;
}

// Where an inlined function is called.
Frame call_of(Dwarf_Die* unit, Dwarf_Die* inlined) {
  Frame frame;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  const uint64_t file = number_of(inlined, DW_AT_call_file);
  if (dwarf_getsrcfiles(unit, &files, &count) == 0 && file < count)
    frame.file = text_of(dwarf_filesrc(files, file, nullptr, nullptr));
  frame.line = static_cast<int>(number_of(inlined, DW_AT_call_line));
  return frame;
}

std::vector<Frame> frames_of(Dwarf_Die* unit, uint64_t address, Frame innermost) {
  std::vector<Frame> frames{std::move(innermost)};
  Dwarf_Die* around = nullptr;
  if (dwarf_getscopes(unit, address, &around) <= 0) return frames;
  const Allocated<Dwarf_Die> at(around, free);
  Dwarf_Die* all = nullptr;  // those that the innermost one lies in
  const int count = dwarf_getscopes_die(at.get(), &all);
  const Allocated<Dwarf_Die> scopes(all, free);
  for (Dwarf_Die& scope : std::span(all, count < 0 ? 0 : static_cast<size_t>(count))) {
    const int tag = dwarf_tag(&scope);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    frames.back().function = function_of(&scope);
    if (tag == DW_TAG_subprogram) break;
    frames.push_back(call_of(unit, &scope));
  }
  return frames;
}

}  // namespace

void Object::End::operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }

Object::Object(const std::string& path) : dwfl_(dwfl_begin(&kCallbacks)) {
  if (dwfl_ == nullptr) return;
  Dwfl_Module* module = dwfl_report_offline(dwfl_.get(), path.c_str(), path.c_str(), -1);
  if (dwfl_report_end(dwfl_.get(), nullptr, nullptr) != 0 || module == nullptr) return;
  GElf_Addr bias = 0;
  const auto first = first_address(dwfl_module_getelf(module, &bias));
  if (!first) return;
  base_ = bias + *first;
  module_ = module;
}

Site Object::find(uint64_t offset) const {
  Site site;
  if (module_ == nullptr || offset == 0) return site;
  // The return address is behind the call; the byte before it belongs to the call's line.
  const uint64_t address = base_ + offset - 1;
  GElf_Sym symbol;
  GElf_Off into = 0;
  if (const char* name = dwfl_module_addrinfo(module_, address, &into, &symbol, nullptr, nullptr, nullptr)) {
    site.symbol = demangled(name);
    site.symbol_offset = into + 1;
  }
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = unit_of(module_, address, &bias);
  Dwarf_Line* line = unit == nullptr ? nullptr : dwarf_getsrc_die(unit, address - bias);
  if (line == nullptr) return site;
  Frame innermost;
  innermost.file = text_of(dwarf_linesrc(line, nullptr, nullptr));
  dwarf_lineno(line, &innermost.line);
  site.frames = frames_of(unit, address - bias, std::move(innermost));
  return site;
}

}  // namespace offpath::sites
