#include "harness/base/source_tokens.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace rekernel {

namespace {

constexpr char end_of_token = '\0';
constexpr std::string_view end_of_directive = "\n";

bool is_digit(char character) { return character >= '0' && character <= '9'; }

/// Whether an identifier can hold it; bytes beyond ASCII are letters.
bool is_word(char character) {
  return is_digit(character) || character == '_' || character == '$' ||
         (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         static_cast<unsigned char>(character) >= 0x80;
}

bool is_blank(char character) {
  return character == ' ' || character == '\t' || character == '\r' || character == '\v' ||
         character == '\f';
}

/// The longest first.
constexpr std::array<std::string_view, 27> operators = {
    "<<=", ">>=", "<=>", "->*", "...", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&",
    "||",  "+=",  "-=",  "*=",  "/=",  "%=", "&=", "|=", "^=", "->", ".*", "::", "##"};
constexpr std::array<std::string_view, 5> literal_prefixes = {"", "u8", "u", "U", "L"};

class CppLexer {
 public:
  explicit CppLexer(std::string_view source) : source_(source) {}

  std::string tokens() {
    while (at_ < source_.size()) step();
    end_line();
    return std::move(tokens_);
  }

 private:
  bool sees(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  char peek(std::size_t ahead) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  void emit(std::string_view token) {
    line_is_empty_ = false;
    if (dropped_) return;
    tokens_ += token;
    tokens_ += end_of_token;
  }
  void take(std::size_t length) {
    const std::string_view token = source_.substr(at_, length);
    at_ += token.size();
    emit(token);
  }

  void step() {
    if (is_blank(peek(0))) {
      ++at_;
    } else if (sees("\n")) {
      ++at_;
      end_line();
    } else if (const std::size_t length = splice(at_)) {
      at_ += length;
    } else if (sees("//")) {
      skip_line_comment();
    } else if (sees("/*")) {
      const std::size_t end = source_.find("*/", at_ + 2);
      at_ = end == std::string_view::npos ? source_.size() : end + 2;
    } else if (sees("#") && line_is_empty_) {
      begin_directive();
    } else {
      token();
    }
  }

  /// Length of a backslash and the end of a line; 0: there is none.
  std::size_t splice(std::size_t at) const {
    const std::string_view rest = source_.substr(at);
    return rest.starts_with("\\\n") ? 2 : rest.starts_with("\\\r\n") ? 3 : 0;
  }

  /// In a directive, a line is a unit of meaning.
  void end_line() {
    if (in_directive_) emit(end_of_directive);
    in_directive_ = dropped_ = false;
    line_is_empty_ = true;
  }

  void skip_line_comment() {
    while (at_ < source_.size() && source_[at_] != '\n') {
      at_ += std::max<std::size_t>(splice(at_), 1);
    }
  }

  void begin_directive() {
    std::size_t name = at_ + 1;
    while (name < source_.size() && is_blank(source_[name])) ++name;
    std::size_t end = name;
    while (end < source_.size() && is_word(source_[end])) ++end;
    const std::string_view directive = source_.substr(name, end - name);
    in_directive_ = true;
    dropped_ = directive == "include";
    emit("#");
    emit(directive);
    at_ = end;
    if (directive == "define") macro_name();
  }

  /// With a parenthesis right after it, a macro has parameters; after a blank, it is its text.
  void macro_name() {
    while (is_blank(peek(0))) ++at_;
    std::size_t length = 0;
    while (is_word(peek(length))) ++length;
    if (peek(length) == '(') ++length;
    take(length);
  }

  void token() {
    if (const std::size_t length = raw_string_length()) return take(length);
    if (const std::size_t length = literal_length()) return take(length);
    if (is_digit(peek(0)) || (peek(0) == '.' && is_digit(peek(1)))) return take(number_length());
    std::size_t length = 0;
    while (is_word(peek(length))) ++length;
    if (length > 0) return take(length);
    for (const std::string_view one : operators) {
      if (sees(one)) return take(one.size());
    }
    take(1);
  }

  /// The length of a raw string with its prefix; 0: none begins here.
  std::size_t raw_string_length() const {
    const std::string_view rest = source_.substr(at_);
    for (const std::string_view prefix : literal_prefixes) {
      if (!rest.starts_with(prefix) || !rest.substr(prefix.size()).starts_with("R\"")) continue;
      const std::size_t begin = prefix.size() + 2;
      const std::size_t open = rest.find('(', begin);
      if (open == std::string_view::npos) return rest.size();
      const std::string closing = ")" + std::string(rest.substr(begin, open - begin)) + "\"";
      const std::size_t end = rest.find(closing, open);
      return end == std::string_view::npos ? rest.size() : end + closing.size();
    }
    return 0;
  }

  /// The length of a string or a character with its prefix; 0: none begins here.
  std::size_t literal_length() const {
    const std::string_view rest = source_.substr(at_);
    for (const std::string_view prefix : literal_prefixes) {
      if (!rest.starts_with(prefix)) continue;
      const char quote = rest.size() > prefix.size() ? rest[prefix.size()] : '\0';
      if (quote != '"' && quote != '\'') continue;
      std::size_t end = prefix.size() + 1;
      while (end < rest.size() && rest[end] != quote && rest[end] != '\n') {
        const std::size_t joined = splice(at_ + end);
        end += joined > 0 ? joined : rest[end] == '\\' ? 2 : 1;
      }
      // A lone quote, in the text of an #error say, ends with its line.
      return std::min(end < rest.size() && rest[end] == quote ? end + 1 : end, rest.size());
    }
    return 0;
  }

  std::size_t number_length() const {
    constexpr std::string_view exponents = "eEpP";
    std::size_t length = 1;
    for (;; ++length) {
      const char next = peek(length);
      const bool is_sign =
          (next == '+' || next == '-') && exponents.find(peek(length - 1)) != exponents.npos;
      const bool separates = next == '\'' && is_word(peek(length + 1));
      if (!is_word(next) && next != '.' && !is_sign && !separates) return length;
    }
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::string tokens_;
  bool line_is_empty_ = true;  ///< no token of it was seen yet
  bool in_directive_ = false;
  bool dropped_ = false;  ///< the directive is left out
};

class PythonLexer {
 public:
  explicit PythonLexer(std::string_view source) : source_(source) {}

  std::string tokens() {
    while (at_ < source_.size()) step();
    end_line();
    return std::move(lines_);
  }

 private:
  void step() {
    const char character = source_[at_];
    if (character == '\n') {
      ++at_;
      end_line();
    } else if (character == '#') {
      at_ = std::min(source_.find('\n', at_), source_.size());
    } else if (character == '"' || character == '\'') {
      take_string(character);
    } else {
      line_ += character;
      ++at_;
    }
  }

  void take_string(char quote) {
    const std::string thrice(3, quote);
    const bool is_long = source_.substr(at_).starts_with(thrice);
    const std::string closing = is_long ? thrice : std::string(1, quote);
    std::size_t end = at_ + closing.size();
    while (end < source_.size() && !source_.substr(end).starts_with(closing) &&
           (is_long || source_[end] != '\n')) {
      end += source_[end] == '\\' ? 2 : 1;
    }
    end = std::min(end, source_.size());
    if (source_.substr(end).starts_with(closing)) end += closing.size();
    line_ += source_.substr(at_, end - at_);
    at_ = end;
  }

  void end_line() {
    while (!line_.empty() && is_blank(line_.back())) line_.pop_back();
    if (!line_.empty()) lines_ += line_ + end_of_token;
    line_.clear();
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::string line_;
  std::string lines_;
};

/// The length of the token, or of the white space, at the start of a text that is not empty.
std::size_t json_token_length(std::string_view text) {
  constexpr std::string_view punctuation = "{}[]:,";
  constexpr std::string_view blanks = " \t\r\n\v\f";
  const std::size_t all = text.size();
  if (blanks.find(text[0]) != std::string_view::npos) {
    return std::min(text.find_first_not_of(blanks), all);
  }
  if (punctuation.find(text[0]) != std::string_view::npos) return 1;
  if (text[0] != '"') {
    constexpr std::string_view ends = "{}[]:,\" \t\r\n\v\f";
    return std::min(text.find_first_of(ends), all);
  }
  for (std::size_t at = 1; at < all; ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at + 1;
  }
  return all;
}

}  // namespace

std::string cpp_tokens(std::string_view source) { return CppLexer(source).tokens(); }
std::string python_tokens(std::string_view source) { return PythonLexer(source).tokens(); }

std::string json_tokens(std::string_view text, std::span<const std::string_view> without) {
  std::string tokens;
  int depth = 0;
  bool is_key = false, is_left_out = false;
  while (!text.empty()) {
    const std::string_view token = text.substr(0, json_token_length(text));
    text.remove_prefix(token.size());
    const char first = token.front();
    if (is_blank(first) || first == '\n') continue;
    if (first == '{' || first == '[') ++depth;
    if (first == '}' || first == ']') --depth;
    if (depth == 0) is_left_out = false;
    if (depth == 1 && (first == ',' || first == '{')) {
      is_key = true;
      is_left_out = false;
    } else if (is_key) {
      is_key = false;
      is_left_out = std::any_of(without.begin(), without.end(), [&](std::string_view name) {
        return token == '"' + std::string(name) + '"';
      });
    }
    if (is_left_out || first == ',') continue;
    tokens += token;
    tokens += end_of_token;
  }
  return tokens;
}

}  // namespace rekernel
