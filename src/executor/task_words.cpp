// SPDX-License-Identifier: BSD-3-Clause
#include "executor/task_words.hpp"

#include "executor/images.hpp"
#include "executor/last_words.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

namespace offpath::executor {

namespace {

struct Object {
  Extent extent;
  char name[sizeof(tasks::LastWords::object)];
};
constexpr size_t kMaxObjects = 512;
Object objects[kMaxObjects];
std::atomic<size_t> objects_count{0};
tasks::LastWords* words = nullptr;

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
  Object object{extent_of(*info), ""};
  for (size_t i = 0; i < count; ++i) {
    if (objects[i].extent.begin == object.extent.begin) return 0;
  }
  copy_end(object.name, name_of(info->dlpi_name).c_str());
  objects[count] = object;
  objects_count = count + 1;
  return 0;
}

void note_crash(int signal, uint64_t address, uint64_t instruction) {
  words->signal = signal;
  words->address = address;
  words->offset = instruction;
  for (size_t i = 0; i < objects_count; ++i) {
    if (!objects[i].extent.holds(instruction)) continue;
    words->offset = instruction - objects[i].extent.base;
    memcpy(words->object, objects[i].name, sizeof(objects[i].name));
  }
  words->said.store(1, std::memory_order_release);
}

void note_exit(int status) {
  words->exit_status = status;
  words->is_exit = 1;
  words->said.store(1, std::memory_order_release);
}

}  // namespace

void note_objects() { dl_iterate_phdr(note, nullptr); }

void leave_words_on_board(tasks::LastWords& where) {
  words = &where;
  note_objects();
  prepare_thread();
  leave_last_words(note_crash, note_exit);
}

}  // namespace offpath::executor
