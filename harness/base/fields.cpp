#include "harness/base/fields.h"

#include <charconv>

namespace rekernel {

void append_field(std::string& bytes, std::string_view field) {
  bytes += std::to_string(field.size());
  bytes += ':';
  bytes += field;
}

std::optional<std::string> take_field(std::string_view& bytes) {
  std::string_view rest = bytes;
  std::size_t size = 0;
  const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
  if (code != std::errc()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  if (!rest.starts_with(':') || rest.size() - 1 < size) return std::nullopt;
  std::string field(rest.substr(1, size));
  bytes = rest.substr(1 + size);
  return field;
}

std::string joined_fields(const Fields& fields) {
  std::string bytes;
  for (const std::string& field : fields) append_field(bytes, field);
  return bytes;
}

std::optional<Fields> split_fields(std::string_view bytes) {
  Fields fields;
  while (!bytes.empty()) {
    auto field = take_field(bytes);
    if (!field) return std::nullopt;
    fields.push_back(*std::move(field));
  }
  return fields;
}

}  // namespace rekernel
