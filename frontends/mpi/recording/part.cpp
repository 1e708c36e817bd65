// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/part.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace offpath::mpi::recording {
namespace {

size_t words_of(size_t length) { return (length + sizeof(uint64_t) - 1) / sizeof(uint64_t); }

// On this node's disk: a long recording has no room in memory. It is gone with the process.
int open_nameless() {
  const char* const chosen = secure_getenv("TMPDIR");
  for (const char* folder : {chosen, "/tmp", "/var/tmp"}) {
    if (folder == nullptr) continue;
    std::string name = std::string(folder) + "/offpath-recording-XXXXXX";
    const int file = mkostemp(name.data(), O_CLOEXEC);
    if (file < 0) continue;
    unlink(name.c_str());
    return file;
  }
  return -1;
}

constexpr size_t kNoteBytes = 24;  // blanks behind the header's object

// Written over the blanks: that works where the disk is full.
void note_failure(int file, int error) {
  char begin[4096];
  const ssize_t length = pread(file, begin, sizeof(begin), 0);
  const void* const newline = length <= 0 ? nullptr : memchr(begin, '\n', static_cast<size_t>(length));
  if (newline == nullptr) return;
  const auto note_at = static_cast<const char*>(newline) - begin - static_cast<ptrdiff_t>(kNoteBytes) - 1;
  if (note_at < 0 || begin[note_at] != '}') return;
  char note[kNoteBytes];
  const int bytes = snprintf(note, sizeof(note), ", \"errno\": %d}", error);
  (void)!pwrite(file, note, static_cast<size_t>(bytes), note_at);
}

}  // namespace

bool write_to_part(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      note_failure(file, written == 0 ? ENOSPC : errno);
      return false;
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

void Part::open(const std::string& path) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  in_place_ = file_ >= 0;
  if (!in_place_) file_ = open_nameless();
  if (ok()) buffer_.reserve(kWriteBytes + kWriteBytes / 16);
}

void Part::write_header(const std::string& object) {
  const std::string line = object + std::string(kNoteBytes, ' ') + '\n';
  append(line.data(), line.size());
  flush();
}

void Part::finish() { flush(); }

size_t Part::read(std::span<std::byte> room) {
  if (file_ < 0 || in_place_) return 0;
  size_t done = 0;
  for (ssize_t got = 1; got > 0 && done < room.size(); done += static_cast<size_t>(std::max<ssize_t>(got, 0))) {
    got = pread(file_, room.data() + done, room.size() - done, read_bytes_ + static_cast<int64_t>(done));
  }
  read_bytes_ += static_cast<int64_t>(done);
  return done;
}

void Part::drop() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

void Part::flush() {
  if (ok() && !buffer_.empty()) failed_ = !write_to_part(file_, std::as_bytes(std::span(buffer_)));
  buffer_.clear();
}

void Part::append_text(const char* text, size_t length) {
  append(text, length);
  buffer_.resize(buffer_.size() + words_of(length) * sizeof(uint64_t) - length);
}

uint16_t Part::text(const char* literal) {
  uint32_t number = literals_.find(literal);
  if (number == 0) number = literals_.add(literal, text(std::string_view(literal)));
  return static_cast<uint16_t>(number);
}

uint16_t Part::text(std::string_view any) {
  const auto fresh = static_cast<uint16_t>(texts_.size() + 1);
  const auto [it, is_new] = texts_.try_emplace(std::string(any), fresh);
  if (is_new) {
    const RecordHead head{static_cast<uint8_t>(Tag::text), 0, fresh, static_cast<uint32_t>(words_of(any.size()))};
    append(&head, sizeof(head));
    append_text(any.data(), any.size());
  }
  return it->second;
}

namespace {

// Where the object of an address lies. The program's own name is what it was started as, which says little elsewhere.
std::string object_path(const link_map* map, const char* name) {
  char path[PATH_MAX];
  if (map == nullptr || map->l_name == nullptr || map->l_name[0] == '\0') {
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
    if (length > 0 && static_cast<size_t>(length) < sizeof(path)) return {path, static_cast<size_t>(length)};
  } else if (name[0] != '/' && realpath(name, path) != nullptr) {
    return path;
  }
  return name;
}

}  // namespace

// A call site is the file that holds the caller and the offset in it: symbols are looked up offline.
uint32_t Part::site(const void* address) {
  uint32_t number = sites_.find(address);
  if (number != 0) return number;
  number = sites_.add(address);
  Dl_info info;
  link_map* map = nullptr;
  const int known = address == nullptr ? 0 : dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP);
  if (known == 0 || info.dli_fname == nullptr) return number;
  const auto offset = static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase);
  const SiteBody body{number, static_cast<uint64_t>(offset)};
  const std::string path = object_path(map, info.dli_fname);
  const RecordHead head{static_cast<uint8_t>(Tag::site), 0, 0,
                        static_cast<uint32_t>(sizeof(body) / sizeof(uint64_t) + words_of(path.size()))};
  append(&head, sizeof(head));
  append(&body, sizeof(body));
  append_text(path.data(), path.size());
  return number;
}

}  // namespace offpath::mpi::recording
