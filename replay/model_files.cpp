#include "replay/model_files.h"

#include <vector>

#include "harness/base/files.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
using Kind = Interruption::Kind;

std::optional<Interruption> write_prompt(const fs::path& path, const std::string& prompt) {
  std::error_code status;
  if (!fs::exists(path, status)) {
    const Result<Ok> written = write_file_atomically(path, prompt);
    if (!written) return Interruption{Kind::failed, written.error().message};
    return std::nullopt;
  }
  const Result<std::string> present = read_file(path);
  if (!present) return Interruption{Kind::failed, present.error().message};
  if (*present == prompt) return std::nullopt;
  return Interruption{Kind::failed,
                      path.string() +
                          ": holds another prompt than this search asks; choose another "
                          "exchange folder, or move the old files away"};
}

Interruption waiting_for(const std::vector<fs::path>& missing) {
  std::string message =
      "waiting for " + std::to_string(missing.size()) +
      (missing.size() == 1 ? " reply" : " replies") +
      "; answer each prompt in the reply file beside it, then run the same command "
      "again:";
  for (const fs::path& path : missing) {
    fs::path prompt = path;
    prompt.replace_extension().replace_extension(".prompt.md");
    message += "\n  " + prompt.string() + " → " + path.filename().string();
  }
  return {Kind::waiting, message};
}

}  // namespace

std::optional<Interruption> FilesModel::ask(std::span<const ModelRequest> requests,
                                            const Arrived& arrived) {
  std::vector<fs::path> missing;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (auto trouble =
            write_prompt(folder_ / (requests[i].id + ".prompt.md"), requests[i].prompt)) {
      return trouble;
    }
    const fs::path path = folder_ / (requests[i].id + ".reply.md");
    std::error_code status;
    if (!fs::exists(path, status)) {
      missing.push_back(path);
      continue;
    }
    ModelReply reply;
    const std::uintmax_t size = fs::file_size(path, status);
    if (!status && size > max_reply_bytes) {
      reply.failure = "the reply has " + std::to_string(size) + " bytes; at most " +
                      std::to_string(max_reply_bytes) + " are recorded";
    } else {
      Result<std::string> text = read_file(path, max_reply_bytes);
      if (!text) return Interruption{Kind::failed, text.error().message};
      reply.text = std::move(*text);
    }
    if (!arrived(i, std::move(reply))) return std::nullopt;
  }
  if (missing.empty()) return std::nullopt;
  return waiting_for(missing);
}

}  // namespace rekernel
