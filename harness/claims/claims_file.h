#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// Where a claim's program lies below the folder of sources: a file, or one key of a line of JSON
/// in it.
struct ClaimSource {
  std::string file;
  int line = 0;     ///< from 1; 0: the whole file
  std::string key;  ///< of that line's object
  std::string sha256;
};

/// A figure that was published.
struct ClaimedFigure {
  std::string quantity;  ///< "speedup over torch.matmul, offline mode"
  double value = 0;
  std::string unit;  ///< "x": times as fast as `over`; "ms": a time
  std::string over;  ///< pytorch_eager, pytorch_compile, library, or a reference's id; empty of ms
};

struct Claim {
  std::string name;
  /// An id, a file (".json") beside the file of claims, or a program of KernelBench's (".py") below
  /// the folder of sources.
  std::string problem;
  std::vector<std::pair<std::string, std::int64_t>> axes;  ///< that differ from the problem's own
  ClaimSource source;
  /// A Python file beside the file of claims that runs in the program's place and finds it as the
  /// module `claimed_program`: where a program does not say its inputs.
  std::string wrapper;
  std::vector<std::string> compile;    ///< a command with placeholders; empty: none
  std::vector<std::string> arguments;  ///< of the program; the same placeholders
  std::string function;                ///< of a Python program with several
  std::vector<ClaimedFigure> claimed;
};

/// A list of programs and of what was claimed of them. It holds none of their code.
struct ClaimsFile {
  std::filesystem::path folder;  ///< that the file lies in
  std::string name;
  std::string title;
  std::string repository;  ///< an address
  std::string revision;
  std::string licence;
  std::string device;                ///< on which it was claimed: "NVIDIA H100 80GB HBM3"
  std::string method;                ///< how the claim was measured, in words
  std::vector<std::string> compile;  ///< of claims that say none
  /// Python programs are called once before any is captured, several at a time, so that what they
  /// compile at their first call is there then.
  bool rehearse = false;
  std::vector<Claim> claims;
};

/// Errors name the file, the key and what was expected.
Result<ClaimsFile> parse_claims(const std::string& text, const std::string& where);
Result<ClaimsFile> read_claims(const std::filesystem::path& file);

/// All that a claim says, as one line of JSON: what a row is the answer to.
std::string claim_text(const Claim& claim);

/// The program's text. Errors say that it is not there, or is another than the claim's SHA-256.
Result<std::string> source_of(const Claim& claim, const std::filesystem::path& sources);

}  // namespace rekernel
