// SPDX-License-Identifier: BSD-3-Clause
#include "json.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace kit {

using Text = nlohmann::ordered_json;

struct Json::Writer {
  Text operator()(std::monostate) const { return nullptr; }
  Text operator()(const auto& value) const { return value; }
  Text operator()(const Array& values) const {
    Text out = Text::array();
    for (const Json& value : values) out.push_back(std::visit(*this, value.value_));
    return out;
  }
  Text operator()(const Object& values) const {
    Text out = Text::object();
    for (const auto& [name, value] : values) out[name] = std::visit(*this, value.value_);
    return out;
  }
};

bool Json::names_a_value() const {
  const auto* const pair = std::get_if<Array>(&value_);
  return pair != nullptr && pair->size() == 2 && std::holds_alternative<std::string>(pair->front().value_);
}

Json::Json(std::initializer_list<Json> items) {
  if (!std::all_of(items.begin(), items.end(), [](const Json& item) { return item.names_a_value(); })) {
    value_ = Array(items);
    return;
  }
  auto& object = value_.emplace<Object>();
  for (const Json& item : items) {
    const auto& pair = std::get<Array>(item.value_);
    object.emplace_back(std::get<std::string>(pair[0].value_), pair[1]);
  }
}

Json& Json::operator[](const std::string& name) {
  if (std::holds_alternative<std::monostate>(value_)) value_ = Object{};
  auto& object = std::get<Object>(value_);
  const auto found = std::find_if(object.begin(), object.end(), [&](const auto& entry) { return entry.first == name; });
  return found != object.end() ? found->second : object.emplace_back(name, Json()).second;
}

void Json::push_back(Json value) {
  if (std::holds_alternative<std::monostate>(value_)) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(value));
}

std::string Json::dump(int indent) const { return std::visit(Writer{}, value_).dump(indent); }

}  // namespace kit
