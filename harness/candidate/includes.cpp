// Which headers a candidate may include. The check reads characters, not tokens: it takes every
// directive for real, wherever it stands, and repeats itself for each way in which compilers are
// known to join lines, so that what it sees does not depend on agreeing with the compiler about
// comments and strings. What this refuses without need (prose about #include, say) is easily
// reworded.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "harness/base/json.h"
#include "harness/candidate/candidate.h"
#include "harness/candidate/pasting.h"

namespace rekernel {
namespace {

constexpr std::array allowed_headers = {"problem.h",      "cuda_fp16.h", "cuda_bf16.h",
                                        "cuda_fp8.h",     "mma.h",       "cooperative_groups.h",
                                        "cuda_pipeline.h"};
constexpr std::array allowed_folders = {"cooperative_groups/", "cuda/"};

std::string allow_list() {
  std::string text;
  for (const char* name : allowed_headers) text += std::string(name) + ", ";
  for (const char* name : allowed_folders) text += std::string(name) + "…, ";
  text.resize(text.size() - 2);
  return text;
}

/// The source as a compiler with these habits sees it after joining lines.
struct View {
  std::string text;
  std::vector<std::size_t> lines;  ///< line number of every character
};

View make_view(std::string_view source, bool trigraphs, bool blanks_before_newline) {
  View view;
  view.text.reserve(source.size());
  view.lines.reserve(source.size());
  std::size_t line = 1;
  for (std::size_t i = 0; i < source.size(); ++i) {
    char c = source[i];
    if (trigraphs && source.substr(i, 3) == "\?\?=") c = '#', i += 2;
    if (trigraphs && source.substr(i, 3) == "\?\?/") c = '\\', i += 2;
    if (c == '\\') {
      std::size_t next = i + 1;
      const auto blank = [&](char d) {
        return d == '\r' || (blanks_before_newline && (d == ' ' || d == '\t'));
      };
      while (next < source.size() && blank(source[next])) ++next;
      if (next < source.size() && source[next] == '\n') {
        ++line;
        i = next;
        continue;
      }
    }
    view.text += c;
    view.lines.push_back(line);
    if (c == '\n') ++line;
  }
  return view;
}

/// Whether such a view can differ from the plain one.
bool has_trigraphs(std::string_view source) {
  return source.find("\?\?") != std::string_view::npos;
}
bool has_blanks_behind_backslash(std::string_view source) {
  return source.find("\\ ") != std::string_view::npos ||
         source.find("\\\t") != std::string_view::npos ||
         source.find("\\\r") != std::string_view::npos;
}

constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$';
}

/// For every position, where the text goes on after the blanks and block comments there.
/// Characters outside ASCII count as blanks: some are. All positions at once, from the end, since a
/// source of comment openings would otherwise be searched to its end for each of them.
std::vector<std::size_t> positions_behind_blanks(std::string_view text, bool newlines) {
  const auto is_at = [&](std::size_t i, char first, char second) {
    return i + 1 < text.size() && text[i] == first && text[i + 1] == second;
  };
  std::vector<std::size_t> behind(text.size() + 1, text.size());
  std::size_t comment_end = text.size();  // of a comment that opens at i
  for (std::size_t i = text.size(); i-- > 0;) {
    const char c = text[i];
    const bool blank = c == ' ' || c == '\t' || c == '\r' || (newlines && c == '\n') ||
                       static_cast<unsigned char>(c) >= 0x80;
    if (is_at(i + 2, '*', '/')) comment_end = i + 4;
    if (blank) {
      behind[i] = behind[i + 1];
    } else if (is_at(i, '/', '*')) {
      behind[i] = behind[comment_end];
    } else {
      behind[i] = i;
    }
  }
  return behind;
}

std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(at, end - at);
}

/// Every word, wherever it stands.
Words words_of(std::string_view text) {
  Words words;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_word(text[i])) continue;
    const std::string_view found = word_at(text, i);
    words.emplace(found);
    i += found.size() - 1;
  }
  return words;
}

class Scanner {
 public:
  explicit Scanner(const View& view)
      : text_(view.text),
        lines_(view.lines),
        behind_blanks_(positions_behind_blanks(text_, false)) {}

  /// The first thing to refuse, as "line 3: …".
  std::optional<std::string> refusal() {
    for (std::size_t i = 0; i < text_.size() && !refusal_; ++i) {
      if (text_[i] == '#') check_directive(i, i + 1);
      if (text_[i] == '%' && at(i + 1) == ':') check_directive(i, i + 2);
      if (text_[i] == '\\') check_escape(i);
      if (is_word(text_[i]) && (i == 0 || !is_word(text_[i - 1]))) check_word(i);
      const bool dot = text_[i] == '.' && text_.substr(i, 8) == ".include";
      if (dot || (text_[i] == 'i' && text_.substr(i, 6) == "incbin")) {
        refuse(i, "assembler directives that read files are not allowed");
      }
    }
    return refusal_;
  }

 private:
  void refuse(std::size_t at, const std::string& why) {
    if (!refusal_) refusal_ = "line " + std::to_string(lines_[at]) + ": " + why;
  }

  std::string_view word(std::size_t at) const { return word_at(text_, at); }

  char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\n'; }

  /// Behind blanks and block comments.
  std::size_t skip_blanks(std::size_t i) const { return i < text_.size() ? behind_blanks_[i] : i; }

  void check_directive(std::size_t hash, std::size_t behind) {
    const std::size_t begin = skip_blanks(behind);
    const std::string_view name = word(begin);
    if (name == "include") {
      check_header(hash, begin + name.size());
    } else if (name == "include_next" || name == "import" || name == "embed") {
      refuse(hash, "#" + std::string(name) + " is not allowed");
    } else if (name == "pragma") {
      const std::string_view pragma = word(skip_blanks(begin + name.size()));
      if (pragma != "unroll" && pragma != "nounroll" && pragma != "once" &&
          !pragma.starts_with("nv_")) {
        refuse(hash, "only #pragma unroll, nounroll, once and nv_… are allowed");
      }
    }
  }

  void check_header(std::size_t hash, std::size_t behind) {
    const std::size_t open = skip_blanks(behind);
    const char closing = at(open) == '<' ? '>' : '"';
    std::size_t close = open + 1;
    while (at(close) != '\n' && at(close) != closing) ++close;
    const std::size_t end = skip_blanks(close + 1);
    const bool complete = (at(open) == '<' || at(open) == '"') && at(close) == closing &&
                          (at(end) == '\n' || text_.substr(end, 2) == "//");
    if (!complete) {
      refuse(hash, "#include takes <name> or \"name\" and nothing else on its line");
      return;
    }
    const std::string name(text_.substr(open + 1, close - open - 1));
    if (!allowed(name)) {
      refuse(hash,
             "the header \"" + one_line(name, 60) + "\" is not on the allow-list: " + allow_list());
    }
  }

  static bool allowed(std::string_view name) {
    if (std::find(allowed_headers.begin(), allowed_headers.end(), name) != allowed_headers.end()) {
      return true;
    }
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return (is_word(c) && c != '$') || c == '/' || c == '.';
    });
    return plain && name.find("..") == std::string_view::npos &&
           name.find("//") == std::string_view::npos &&
           std::any_of(allowed_folders.begin(), allowed_folders.end(), [&](const char* folder) {
             return name.starts_with(folder) && !name.ends_with('/');
           });
  }

  /// Letters spelled as universal character names could make up any of the words above.
  void check_escape(std::size_t i) {
    const std::string_view rest = text_.substr(i + 1);
    const auto ascii = [&](std::string_view zeros) {
      return rest.starts_with(zeros) && rest.size() > zeros.size() && rest[zeros.size()] < '8';
    };
    if (ascii("u00") || ascii("U000000") || rest.starts_with("u{") || rest.starts_with("N{")) {
      refuse(i, "universal character names of this kind are not allowed");
    }
  }

  void check_word(std::size_t i) {
    const std::string_view name = word(i);
    if (name == "__has_include" || name == "__has_include_next" || name == "__has_embed" ||
        name == "_Pragma" || name == "__pragma") {
      refuse(i, std::string(name) + " is not allowed");
    }
    if (name != "import") return;
    if (behind_lines_.empty()) behind_lines_ = positions_behind_blanks(text_, true);
    const char next = at(behind_lines_[i + name.size()]);
    if (next == '<' || next == '"') refuse(i, "import is not allowed");
  }

  std::string_view text_;
  const std::vector<std::size_t>& lines_;
  std::vector<std::size_t> behind_blanks_;
  std::vector<std::size_t> behind_lines_;  ///< newlines count as blanks; made when it is needed
  std::optional<std::string> refusal_;
};

/// Error unless the text holds printable characters, tabs and newlines only: others may be blanks
/// or line ends to a compiler.
Result<Ok> check_characters(std::string_view source, const std::string& where) {
  std::size_t line = 1;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(source[i]);
    if (c == '\n') ++line;
    const bool line_end = c == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
    if ((c < 0x20 && c != '\n' && c != '\t' && !line_end) || c == 0x7F) {
      return Error{where + ": line " + std::to_string(line) + ": control character " +
                   std::to_string(c)};
    }
  }
  return Ok{};
}

/// Whether a source can paste words: it has the operator, or names macros of the headers, some of
/// which paste (`_CCCL_PP_CAT`). Theirs begin with an underscore and a capital.
bool can_paste(std::string_view text) {
  if (text.find("##") != std::string::npos || text.find("%:%:") != std::string::npos) return true;
  for (std::size_t i = 0; (i = text.find('_', i)) != std::string::npos; ++i) {
    const bool capital = i + 1 < text.size() && text[i + 1] >= 'A' && text[i + 1] <= 'Z';
    if (capital && (i == 0 || !is_word(text[i - 1]))) return true;
  }
  return false;
}

/// The words of the plan's macros can be pasted like those of the source.
Result<Ok> check_pasting(const View& view, const std::map<std::string, std::string>& defines,
                         const std::string& where) {
  if (!can_paste(view.text)) return Ok{};
  Words words = words_of(view.text);
  for (const auto& [name, value] : defines) words.insert({name, value});
  if (const auto found = pasted_word(words)) {
    return Error{where + ": its words can be pasted to " + std::string(*found) +
                 ", which is not allowed"};
  }
  return Ok{};
}

}  // namespace

Result<Ok> check_includes(std::string_view source, const std::string& where,
                          const std::map<std::string, std::string>& defines) {
  if (auto characters = check_characters(source, where); !characters) return characters;
  for (const bool trigraphs : {false, true}) {
    for (const bool blanks_before_newline : {false, true}) {
      // Most sources look the same in every way.
      if (trigraphs && !has_trigraphs(source)) continue;
      if (blanks_before_newline && !trigraphs && !has_blanks_behind_backslash(source)) continue;
      const View view = make_view(source, trigraphs, blanks_before_newline);
      if (const auto refusal = Scanner(view).refusal()) return Error{where + ": " + *refusal};
      if (auto pasting = check_pasting(view, defines, where); !pasting) return pasting;
    }
  }
  return Ok{};
}

}  // namespace rekernel
