// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/factory.hpp"

#include <iterator>

namespace offpath::fabric {

#define FABRIC(name) base::Result<std::unique_ptr<Context>> open_##name();
#include "fabric/fabrics.def"
#undef FABRIC

namespace {

struct Entry {
  const char* name;
  base::Result<std::unique_ptr<Context>> (*open)();
};

#define FABRIC(name) {#name, open_##name},
constexpr Entry kEntries[] = {
#include "fabric/fabrics.def"
};
#undef FABRIC

}  // namespace

base::Result<Made> make(const std::string& name) {
  std::string names;
  for (const Entry& entry : kEntries) {
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
    if (!name.empty() && name != entry.name) continue;
    auto context = entry.open();
    if (!context.ok()) return context.status();
    return Made{entry.name, std::move(context.value())};
  }
  return base::Status::error(OFFPATH_ERR_NO_SERVICE,
                             "there is no fabric '%.40s' (services need one to reach each other). Leave OFFPATH_FABRIC "
                             "out or set it to one of: %s",
                             name.c_str(), names.c_str());
}

}  // namespace offpath::fabric
