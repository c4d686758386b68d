#include "harness/base/base64.h"

#include <openssl/evp.h>

#include <algorithm>

namespace rekernel {

namespace {

const unsigned char* data_of(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // OpenSSL ends it with a NUL
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), data_of(bytes),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  const auto padding = static_cast<std::size_t>(std::count(text.begin(), text.end(), '='));
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), data_of(text),
                                     static_cast<int>(text.size()));
  if (length < 0 || static_cast<std::size_t>(length) < padding) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(length) - padding);  // OpenSSL counts zeros for padding
  // It also takes blanks around the text, and bits that no bytes have.
  if (base64(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace rekernel
