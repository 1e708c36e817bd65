// SPDX-License-Identifier: BSD-3-Clause
#include "executor/task_words.hpp"

#include "executor/instruction.hpp"
#include "executor/last_words.hpp"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

namespace offpath::executor {

namespace {

struct Object {
  uint64_t begin, end, base;
  char name[sizeof(tasks::LastWords::object)];
};
constexpr size_t kMaxObjects = 512;
Object objects[kMaxObjects];
std::atomic<size_t> objects_count{0};
tasks::LastWords* words = nullptr;
std::atomic_flag said;

void copy_end(char (&to)[sizeof(Object::name)], const char* from) {
  const size_t length = strlen(from), kept = std::min(length, sizeof(to) - 1);
  memcpy(to, from + (length - kept), kept);
  to[kept] = '\0';
}

// What was loaded from a nameless file has a name all the same (images.hpp).
std::string name_of(const char* path) {
  constexpr std::string_view kNameless = "/memfd:", kGone = " (deleted)";
  char target[300];
  const ssize_t length = readlink(path, target, sizeof(target));  // no link: its path is its name
  const std::string_view name(target, length > 0 ? static_cast<size_t>(length) : 0);
  if (!name.starts_with(kNameless) || !name.ends_with(kGone)) return path;
  return std::string(name.substr(kNameless.size(), name.size() - kNameless.size() - kGone.size()));
}

int note(dl_phdr_info* info, size_t, void*) {
  const size_t count = objects_count;
  if (count == kMaxObjects) return 1;
  Object object{UINT64_MAX, 0, info->dlpi_addr, ""};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    object.begin = std::min<uint64_t>(object.begin, info->dlpi_addr + part.p_vaddr);
    object.end = std::max<uint64_t>(object.end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  for (size_t i = 0; i < count; ++i) {
    if (objects[i].begin == object.begin) return 0;
  }
  copy_end(object.name, name_of(info->dlpi_name).c_str());
  objects[count] = object;
  objects_count = count + 1;
  return 0;
}

void on_signal(int number, siginfo_t* info, void* context) {
  if (!said.test_and_set()) {
    const uint64_t instruction = instruction_of(context);
    words->signal = number;
    words->address = reinterpret_cast<uint64_t>(info->si_addr);
    words->offset = instruction;
    for (size_t i = 0; i < objects_count; ++i) {
      if (instruction < objects[i].begin || instruction >= objects[i].end) continue;
      words->offset = instruction - objects[i].base;
      memcpy(words->object, objects[i].name, sizeof(objects[i].name));
    }
    words->said.store(1, std::memory_order_release);
  }
  signal(number, SIG_DFL);
  raise(number);
}

void on_exit_called(int status, void*) {
  if (said.test_and_set()) return;
  words->exit_status = status;
  words->is_exit = 1;
  words->said.store(1, std::memory_order_release);
}

}  // namespace

void note_objects() { dl_iterate_phdr(note, nullptr); }

void leave_last_words(tasks::LastWords& where) {
  words = &where;
  note_objects();
  prepare_thread();
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigaction(number, &action, nullptr);
  on_exit(on_exit_called, nullptr);
}

}  // namespace offpath::executor
