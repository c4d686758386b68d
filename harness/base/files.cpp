#include "harness/base/files.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>

#include "harness/base/environment.h"
#include "harness/base/file_descriptor.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

constexpr const char* no_sha256 = "OpenSSL has no SHA-256";

/// Looked up once: that takes as long as hashing a line.
const EVP_MD* sha256() {
  struct Free {
    void operator()(EVP_MD* algorithm) const { EVP_MD_free(algorithm); }
  };
  static const std::unique_ptr<EVP_MD, Free> algorithm(EVP_MD_fetch(nullptr, "SHA256", nullptr));
  if (!algorithm) throw std::runtime_error(no_sha256);
  return algorithm.get();
}

std::string hex_digits(const unsigned char* bytes, std::size_t size) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

}  // namespace

Error system_error(const fs::path& path, const std::string& what) {
  return Error{path.string() + ": " + what + ": " + std::strerror(errno)};
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Result<std::string> read_file(const fs::path& path, std::size_t max_bytes) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return system_error(path, "cannot be opened");
  struct stat status;
  if (::fstat(file.get(), &status) != 0) return system_error(path, "cannot be examined");
  if (!S_ISREG(status.st_mode)) return Error{path.string() + ": not a regular file"};

  // The size that was reported is a hint only: some files have size 0 and content all the same.
  std::string content;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path, "cannot be read");
    if (count == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(count));
    if (content.size() > max_bytes) {
      return Error{path.string() + ": larger than " + std::to_string(max_bytes) + " bytes"};
    }
  }
}

Result<Ok> write_file_atomically(const fs::path& path, std::string_view content) {
  if (path.has_parent_path()) {
    std::error_code ignored;  // opening the file reports what matters
    fs::create_directories(path.parent_path(), ignored);
  }
  // A process of the same number, on another machine, may write the same file on a shared system.
  fs::path temporary = path;
  temporary += ".tmp." + random_digits();
  {
    const FileDescriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.get() < 0) return system_error(path, "cannot be written");
    if (!write_all(file.get(), content) || ::fsync(file.get()) != 0) {
      const Error error = system_error(path, "cannot be written");
      ::unlink(temporary.c_str());
      return error;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const Error error = system_error(path, "cannot be replaced");
    ::unlink(temporary.c_str());
    return error;
  }
  return Ok{};
}

std::string random_digits() {
  std::random_device device;
  std::string digits;
  while (digits.size() < 16) digits += "0123456789abcdef"[device() % 16];
  return digits;
}

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, sha256(), nullptr) != 1) {
    throw std::runtime_error(no_sha256);
  }
  return hex_digits(digest.data(), size);
}

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};

  State() {
    if (!context || EVP_DigestInit_ex(context.get(), sha256(), nullptr) != 1) {
      throw std::runtime_error(no_sha256);
    }
  }
  State(const State& other) {
    if (!context || EVP_MD_CTX_copy_ex(context.get(), other.context.get()) != 1) {
      throw std::runtime_error(no_sha256);
    }
  }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::Sha256(const Sha256& other) : state_(std::make_unique<State>(*other.state_)) {}
Sha256& Sha256::operator=(const Sha256& other) {
  if (this != &other) state_ = std::make_unique<State>(*other.state_);
  return *this;
}
Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  if (EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) != 1) {
    throw std::runtime_error(no_sha256);
  }
}

std::string Sha256::hex() const {
  const State last(*state_);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(last.context.get(), digest.data(), &size) != 1) {
    throw std::runtime_error(no_sha256);
  }
  return hex_digits(digest.data(), size);
}

fs::path cache_directory() {
  if (const std::string own = environment("REKERNEL_CACHE"); !own.empty()) return fs::absolute(own);
  // The base directory specification asks to ignore relative paths.
  if (const std::string base = environment("XDG_CACHE_HOME"); base.starts_with('/')) {
    return fs::path(base) / "rekernel";
  }
  if (const std::string home = environment("HOME"); home.starts_with('/')) {
    return fs::path(home) / ".cache" / "rekernel";
  }
  // Everybody may write to the temporary folder: never trust one there that is somebody else's.
  fs::path shared = fs::temp_directory_path() / ("rekernel-" + std::to_string(::getuid()));
  ::mkdir(shared.c_str(), 0700);
  struct stat status;
  const bool ours = ::lstat(shared.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
                    status.st_uid == ::getuid() && (status.st_mode & 022) == 0;
  if (!ours) shared += "-" + std::to_string(::getpid());
  return shared;
}

}  // namespace rekernel
