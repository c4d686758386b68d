#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "harness/records/record.h"
#include "ops/result.h"

namespace rekernel {

/// Who says that something was measured. A record that does not contradict itself can still be
/// invented: only a signature tells who answers for it.
struct Signer {
  enum class Kind { unsigned_, known, unknown, invalid };
  Kind kind = Kind::unsigned_;
  std::string name;  ///< of a known one, as the file of allowed signers has it

  /// "unsigned", a name, "unknown signer", "invalid signature"
  std::string text() const;
};

/// results/allowed_signers, in the format of ssh-keygen(1).
std::filesystem::path allowed_signers_path(const std::filesystem::path& root);

/// An armoured SSH signature of the text in the namespace "rekernel", by ssh-keygen -Y sign. `key`:
/// a private key, or a public one whose private key an agent holds.
Result<std::string> sign(std::string_view text, const std::filesystem::path& key);
/// Who signed the text, by ssh-keygen -Y verify. The error means that it could not be asked.
Result<Signer> signer_of(std::string_view text, const std::string& signature,
                         const std::filesystem::path& allowed_signers);

/// What a row's signature is of: the device and the row without its signature, so that rows keep
/// theirs when files are merged.
std::string signed_text(const Bench& bench, const BenchRow& row);
/// Signs the row of `kernel` ("softmax/online") if it is there and has no signature yet; how many.
Result<int> sign_row(Bench& bench, const std::filesystem::path& key, const std::string& kernel);
/// Fills in every row's `signer`. The error names the rows to which their signature does not
/// belong.
Result<Ok> identify_signers(Bench& bench, const std::string& where,
                            const std::filesystem::path& allowed_signers);
/// load_bench, with the signers by the allowed ones of `root`.
Result<Bench> load_bench_of(const std::filesystem::path& root, const std::filesystem::path& path);

/// Who signed a trajectory, by the file beside it with ".sig" after its name.
Result<Signer> signer_of_file(const std::filesystem::path& path,
                              const std::filesystem::path& allowed_signers);

}  // namespace rekernel
