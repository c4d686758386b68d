#include "harness/records/signature.h"

#include <unistd.h>

#include <boost/json.hpp>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/process/tool.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

constexpr const char* name_space = "rekernel";
constexpr std::string_view armour_begin = "-----BEGIN SSH SIGNATURE-----\n";
constexpr std::string_view armour_end = "-----END SSH SIGNATURE-----\n";

/// ssh-keygen takes signatures from files alone.
class TemporaryFile {
 public:
  static Result<TemporaryFile> of(const std::string& content) {
    std::string path = (fs::temp_directory_path() / "rekernel-signature-XXXXXX").string();
    const int file = ::mkstemp(path.data());
    if (file < 0) return Error{path + ": cannot be made"};
    ::close(file);
    TemporaryFile made(path);
    if (Result<Ok> written = write_file_atomically(path, content); !written) {
      return written.error();
    }
    return made;
  }
  TemporaryFile(TemporaryFile&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// A row holds the signature without what surrounds it, on one line.
std::string without_armour(std::string_view armoured) {
  const std::size_t begin = armoured.find(armour_begin);
  const std::size_t end = armoured.find(armour_end);
  if (begin == std::string_view::npos || end == std::string_view::npos) return "";
  std::string line;
  for (const char character :
       armoured.substr(begin + armour_begin.size(), end - begin - armour_begin.size())) {
    if (character != '\n') line += character;
  }
  return line;
}

std::string armoured(const std::string& line) {
  constexpr std::size_t width = 70;
  std::string text(armour_begin);
  for (std::size_t at = 0; at < line.size(); at += width) text += line.substr(at, width) + "\n";
  return text + std::string(armour_end);
}

/// What ssh-keygen says of these words, with this standard input.
Result<ToolOutcome> ask_ssh_keygen(const std::vector<std::string>& words,
                                   std::string_view input = {}) {
  constexpr std::chrono::seconds patience{60};
  ToolCommand tool;
  tool.arguments = {"ssh-keygen"};
  tool.arguments.insert(tool.arguments.end(), words.begin(), words.end());
  tool.input = input;
  tool.deadline = patience;
  return run_tool(tool);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::string Signer::text() const {
  switch (kind) {
    case Kind::unsigned_:
      return "unsigned";
    case Kind::known:
      return name;
    case Kind::unknown:
      return "unknown signer";
    case Kind::invalid:
      return "invalid signature";
  }
  return "";
}

fs::path allowed_signers_path(const fs::path& root) { return root / "results" / "allowed_signers"; }

Result<std::string> sign(std::string_view text, const fs::path& key) {
  const Result<ToolOutcome> made =
      ask_ssh_keygen({"-q", "-Y", "sign", "-f", key.string(), "-n", name_space}, text);
  if (!made) return made.error();
  if (!made->good()) {
    return Error{key.string() + ": ssh-keygen signs nothing: " + made->last_words};
  }
  return made->output;
}

Result<Signer> signer_of(std::string_view text, const std::string& signature,
                         const fs::path& allowed_signers) {
  const Result<TemporaryFile> file = TemporaryFile::of(signature);
  if (!file) return file.error();
  Result<ToolOutcome> asked =
      ask_ssh_keygen({"-Y", "check-novalidate", "-n", name_space, "-s", file->path()}, text);
  if (!asked) return asked.error();
  if (!asked->good()) return Signer{Signer::Kind::invalid, ""};
  std::error_code ignored;
  if (!fs::exists(allowed_signers, ignored)) return Signer{Signer::Kind::unknown, ""};
  asked =
      ask_ssh_keygen({"-Y", "find-principals", "-s", file->path(), "-f", allowed_signers.string()});
  if (!asked) return asked.error();
  const std::string name = first_line(asked->output);
  if (!asked->good() || name.empty()) return Signer{Signer::Kind::unknown, ""};
  // The file may allow the key in other namespaces only, or have let it expire.
  asked = ask_ssh_keygen({"-Y", "verify", "-f", allowed_signers.string(), "-I", name, "-n",
                          name_space, "-s", file->path()},
                         text);
  if (!asked) return asked.error();
  if (!asked->good()) return Signer{Signer::Kind::unknown, ""};
  return Signer{Signer::Kind::known, name};
}

std::string signed_text(const Bench& bench, const BenchRow& row) {
  BenchRow unsigned_row = row;
  unsigned_row.signature.clear();
  Bench alone = bench;
  alone.rows = {std::move(unsigned_row)};
  const boost::json::object record = to_json(alone);
  return pretty_json(
      boost::json::object{{"device", record.at("device")}, {"row", record.at("rows").at(0)}});
}

Result<int> sign_row(Bench& bench, const fs::path& key, const std::string& kernel) {
  int signatures = 0;
  for (BenchRow& row : bench.rows) {
    if (!row.signature.empty() || row.problem + "/" + row.kernel != kernel) continue;
    const Result<std::string> signature = sign(signed_text(bench, row), key);
    if (!signature) return signature.error();
    row.signature = without_armour(*signature);
    ++signatures;
  }
  return signatures;
}

Result<Ok> identify_signers(Bench& bench, const std::string& where,
                            const fs::path& allowed_signers) {
  std::vector<std::string> invalid;
  for (std::size_t i = 0; i < bench.rows.size(); ++i) {
    BenchRow& row = bench.rows[i];
    row.signer = Signer{}.text();
    if (row.signature.empty()) continue;
    const Result<Signer> signer =
        signer_of(signed_text(bench, row), armoured(row.signature), allowed_signers);
    if (!signer) return signer.error();
    row.signer = signer->text();
    if (signer->kind == Signer::Kind::invalid) {
      invalid.push_back(where + ": rows[" + std::to_string(i) + "] (" + row.problem + "/" +
                        row.kernel + "): signature: not of this row on this device");
    }
  }
  if (!invalid.empty()) return Error{joined(invalid, "\n")};
  return Ok{};
}

Result<Bench> load_bench_of(const fs::path& root, const fs::path& path) {
  Result<Bench> bench = load_bench(path);
  if (!bench) return bench;
  const Result<Ok> known = identify_signers(*bench, path.string(), allowed_signers_path(root));
  if (!known) return known.error();
  return bench;
}

Result<Signer> signer_of_file(const fs::path& path, const fs::path& allowed_signers) {
  const fs::path beside = path.string() + ".sig";
  std::error_code ignored;
  if (!fs::exists(beside, ignored)) return Signer{};
  const Result<std::string> signature = read_file(beside, 1 << 16);
  if (!signature) return signature.error();
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  return signer_of(*text, *signature, allowed_signers);
}

}  // namespace rekernel
