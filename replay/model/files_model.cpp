#include "replay/model/files_model.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/json.h"

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

constexpr std::string_view prompt_ending = ".prompt.md";
constexpr std::string_view reply_ending = ".reply.md";

struct UnusableFile {
  std::string name;
  std::string reason;
};

/// What stands between a search and its replies.
struct Waiting {
  std::vector<std::string> ids;  ///< of requests without a reply
  std::vector<UnusableFile> unusable;
};

bool is_work_of_an_editor(const std::string& name) {
  return name.starts_with('.') || name.starts_with('#') || name.ends_with('~') ||
         name.ends_with(".tmp") || name.ends_with(".swp") || name.ends_with(".part");
}

/// The missing reply that a file may have been meant for: the longest id with which its name
/// begins.
std::string meant_for(std::string name, const std::vector<std::string>& ids) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string best;
  for (const std::string& id : ids) {
    if (name.starts_with(id) && id.size() > best.size()) best = id;
  }
  return best.empty() ? "" : "; expected " + best + std::string(reply_ending);
}

/// Files that are neither a prompt nor the reply to one.
std::vector<std::string> misnamed_files(const fs::path& folder,
                                        const std::vector<std::string>& ids) {
  std::vector<std::string> lines;
  std::error_code status;
  for (fs::directory_iterator it(folder, status), end; !status && it != end; it.increment(status)) {
    const std::string name = it->path().filename().string();
    if (!it->is_regular_file(status) || is_work_of_an_editor(name)) continue;
    if (name.ends_with(prompt_ending)) continue;
    const bool reply = name.ends_with(reply_ending);
    const std::string id = reply ? name.substr(0, name.size() - reply_ending.size()) : "";
    if (reply && fs::exists(folder / (id + std::string(prompt_ending)), status)) continue;
    lines.push_back(one_line(name, 128) + ": no prompt has a reply of this name" +
                    meant_for(name, ids));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

Interruption waiting_for(const fs::path& folder, const Waiting& waiting) {
  const std::size_t count = waiting.ids.size() + waiting.unusable.size();
  std::string message = "waiting for " + std::to_string(count) +
                        (count == 1 ? " reply" : " replies") + " in " + folder.string() +
                        "; answer each prompt in the reply file beside it, then run the same "
                        "command again:";
  for (const std::string& id : waiting.ids) {
    message += "\n  " + id + std::string(prompt_ending) + " → " + id + std::string(reply_ending);
  }
  for (const UnusableFile& file : waiting.unusable) {
    message += "\n  " + file.name + ": " + file.reason +
               "; write a better one over it, or take it as it is with --as-is";
  }
  for (const std::string& line : misnamed_files(folder, waiting.ids)) message += "\n  " + line;
  return {Kind::waiting, message};
}

}  // namespace

std::optional<Interruption> FilesModel::ask(std::span<const ModelRequest> requests,
                                            const Arrived& arrived) {
  Waiting waiting;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string& id = requests[i].id;
    if (auto trouble =
            write_prompt(folder_ / (id + std::string(prompt_ending)), requests[i].prompt.text())) {
      return trouble;
    }
    const fs::path path = folder_ / (id + std::string(reply_ending));
    std::error_code status;
    if (!fs::exists(path, status)) {
      waiting.ids.push_back(id);
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
    const Reception reception = arrived(i, std::move(reply));
    if (reception.next == Reception::Next::stop) return std::nullopt;
    if (reception.next == Reception::Next::ask_again) {
      waiting.unusable.push_back({path.filename().string(), reception.reason});
    }
  }
  if (waiting.ids.empty() && waiting.unusable.empty()) return std::nullopt;
  return waiting_for(folder_, waiting);
}

}  // namespace rekernel
