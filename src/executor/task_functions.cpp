// SPDX-License-Identifier: BSD-3-Clause
#include "executor/task_functions.hpp"

#include "device/device_list.hpp"
#include "device/device_code.hpp"
#include "executor/images.hpp"
#include "executor/task_objects.hpp"
#include "executor/task_words.hpp"
#include "tasks/digest.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace offpath::executor {

using base::Result;
using base::Status;

namespace {

std::string declaration_of(const char* symbol) { return std::string("offpath_task_of_") + symbol; }

const char* word(const char* text) { return text == nullptr ? "" : text; }

struct Code {
  const void* base;
  uint64_t offset;
  bool is_code;
};

int look(dl_phdr_info* info, size_t, void* data) {
  auto& code = *static_cast<Code*>(data);
  const auto base = static_cast<uint64_t>(info->dlpi_addr);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0 || base != reinterpret_cast<uint64_t>(code.base)) continue;
    code.is_code |= code.offset >= part.p_vaddr && code.offset - part.p_vaddr < part.p_memsz;
  }
  return code.is_code ? 1 : 0;
}

// "+HEX": code that has no name, by where it lies in its object. Null: there is none.
offpath_task_function_t code_at(void* handle, const char* symbol) {
  char* end = nullptr;
  const uint64_t offset = strtoull(symbol + 1, &end, 16);
  link_map* map = nullptr;
  if (end == symbol + 1 || *end != '\0' || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return nullptr;
  Code code{reinterpret_cast<const void*>(map->l_addr), offset, false};
  dl_iterate_phdr(look, &code);
  return code.is_code ? reinterpret_cast<offpath_task_function_t>(map->l_addr + offset) : nullptr;
}

}  // namespace

Result<TaskFunction> TaskFunctions::find(uint32_t number) {
  if (number >= loaded_.size()) return Status::error(OFFPATH_ERR_ARGUMENT, "there is no function %u", number);
  if (loaded_[number].call != nullptr) return loaded_[number];
  const auto loaded = load(board_.function(number));
  note_objects();  // of what was loaded before it failed, too
  if (loaded.ok()) loaded_[number] = loaded.value();
  return loaded;
}

Result<void*> TaskFunctions::device_code(const std::string& file, const std::string& symbol) {
  auto known = device_code_.find(file);
  if (known == device_code_.end()) {
    const auto bytes = device::FileBytes::of(file);
    const std::string name = "code for devices of " + file.substr(file.rfind('/') + 1).substr(0, 200);
    std::vector<void*> opened;
    for (const auto image :
         device::device_code_in(bytes ? bytes->get() : std::span<const uint8_t>(), device::own_machine())) {
      const auto handle = open_image(image, name);
      if (!handle.ok()) return handle.status();
      opened.push_back(handle.value());
    }
    known = device_code_.emplace(file, std::move(opened)).first;
  }
  for (void* handle : known->second) {
    if (dlsym(handle, declaration_of(symbol.c_str()).c_str()) != nullptr || dlsym(handle, symbol.c_str()) != nullptr)
      return handle;
  }
  return Status::error(OFFPATH_ERR_ARGUMENT,
                       "'%s' exports no function '%.80s' for devices. Put it between 'omp declare target' and 'omp end "
                       "declare target', with its OFFPATH_TASK_FUNCTION",
                       shown(file).c_str(), symbol.c_str());
}

Result<TaskFunction> TaskFunctions::load(const tasks::FunctionPlace& place) {
  const char* library = board_.text(place.library);
  const char* symbol = board_.text(place.symbol);
  const char* signature = place.signature == 0 ? nullptr : board_.text(place.signature);
  if (library == nullptr || symbol == nullptr || (place.signature != 0 && signature == nullptr))
    return Status::error(OFFPATH_ERR_INTERNAL, "the board does not say which function is meant");
  const bool is_target = place.is_target != 0;
  const auto object = find_object(library, is_target ? Wanted::device_code : Wanted::object);
  if (!object.ok()) return object.status();
  void* handle = nullptr;
  if (is_target) {
    const auto opened = device_code(object.value(), symbol);
    if (!opened.ok()) return opened.status();
    handle = opened.value();
  } else {
    handle = dlopen(object->c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "an executor cannot load '%s': %.150s", shown(object.value()).c_str(),
                         word(dlerror()));
  }
  if (symbol[0] == '+') {
    if (signature != nullptr && tasks::digest_of(object.value()) != signature) {
      return Status::error(OFFPATH_ERR_ARGUMENT,
                           "'%s' is not the object that the program has loaded (code without a name is found in that "
                           "alone, and runs on no other kind of processor). Copy it there, or name the function",
                           shown(object.value()).c_str());
    }
    const TaskFunction unnamed{code_at(handle, symbol)};
    if (unnamed.call != nullptr) return unnamed;
    return Status::error(OFFPATH_ERR_ARGUMENT, "'%s' has no code at %.40s. Load the same object everywhere",
                         shown(library).c_str(), symbol);
  }
  const auto* declared = static_cast<const offpath_task_declaration_t*>(dlsym(handle, declaration_of(symbol).c_str()));
  if (declared == nullptr) {
    if (signature != nullptr && dlsym(handle, symbol) != nullptr) {
      return Status::error(OFFPATH_ERR_ARGUMENT,
                           "'%.60s' of '%s' has no signature to compare. Declare it by OFFPATH_TASK_FUNCTION", symbol,
                           shown(library).c_str());
    }
    auto* function = reinterpret_cast<offpath_task_function_t>(dlsym(handle, symbol));
    if (function != nullptr) return TaskFunction{function};
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "'%s' exports no function '%.80s'. Declare it by OFFPATH_TASK_FUNCTION, or export it",
                         shown(library).c_str(), symbol);
  }
  if (declared->struct_bytes < sizeof(*declared) || declared->api != OFFPATH_TASK_API ||
      declared->function == nullptr) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "'%.60s' of '%s' was built for another release of Offpath. Rebuild it",
                         symbol, shown(library).c_str());
  }
  if (signature != nullptr && strcmp(signature, word(declared->signature)) != 0) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "'%.40s' of '%s' has the signature '%.50s', not '%.50s'. Build caller and function together",
                         symbol, shown(library).c_str(), word(declared->signature), signature);
  }
  return TaskFunction{declared->function};
}

}  // namespace offpath::executor
