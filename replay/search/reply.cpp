#include "replay/search/reply.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cctype>
#include <optional>

#include "harness/base/json.h"
#include "replay/trajectory/event.h"
#include "replay/trajectory/settings.h"

namespace rekernel {
namespace {

namespace json = boost::json;

constexpr std::size_t max_title_bytes = 120;
constexpr std::array code_marks = {"cuda", "cu", "c++", "cpp", "c"};

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)); };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

/// A fenced block of Markdown.
struct Block {
  std::string mark;  ///< the first word after the opening fence, in lower case
  std::string text;
  bool closed = false;
};

/// The length of the fence with which a line begins, at most three blanks in; 0 if it has none.
std::size_t fence_length(std::string_view line, char& character) {
  std::size_t begin = 0;
  while (begin < 3 && begin < line.size() && line[begin] == ' ') ++begin;
  if (begin >= line.size() || (line[begin] != '`' && line[begin] != '~')) return 0;
  character = line[begin];
  std::size_t end = begin;
  while (end < line.size() && line[end] == character) ++end;
  return end - begin >= 3 ? end - begin : 0;
}

std::string mark_of(std::string_view line) {
  line = trimmed(line);
  line.remove_prefix(std::min(line.find_first_not_of("`~"), line.size()));
  line = trimmed(line);
  std::string mark(line.substr(0, line.find_first_of(" \t{,:")));
  std::transform(mark.begin(), mark.end(), mark.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return mark;
}

std::vector<Block> fenced_blocks(std::string_view reply) {
  std::vector<Block> blocks;
  bool open = false;
  std::size_t open_length = 0;
  char open_character = 0;
  for (std::size_t begin = 0; begin < reply.size();) {
    const std::size_t newline = reply.find('\n', begin);
    const std::size_t end = newline == std::string_view::npos ? reply.size() : newline;
    std::string_view line = reply.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    char character = 0;
    const std::size_t length = fence_length(line, character);
    if (!open && length > 0) {
      blocks.push_back({mark_of(line), "", false});
      open = true;
      open_length = length;
      open_character = character;
    } else if (open && length >= open_length && character == open_character &&
               mark_of(line).empty()) {
      blocks.back().closed = true;
      open = false;
    } else if (open) {
      blocks.back().text += line;
      blocks.back().text += '\n';
    }
    begin = end + 1;
  }
  return blocks;
}

bool is_code(const Block& block) {
  return std::find(code_marks.begin(), code_marks.end(), block.mark) != code_marks.end();
}

bool is_json(const Block& block) { return block.mark == "json"; }

template <class Predicate>
Result<Block*> only_block(std::vector<Block>& blocks, Predicate matches, const char* name) {
  const auto count = std::count_if(blocks.begin(), blocks.end(), matches);
  if (count != 1) {
    return Error{"the reply has " + (count == 0 ? "no" : std::to_string(count)) + " " + name +
                 (count == 0 ? " block" : " blocks") + "; expected exactly one"};
  }
  Block& block = *std::find_if(blocks.begin(), blocks.end(), matches);
  if (!block.closed) {
    return Error{std::string("the reply's ") + name + " block is not closed: it was cut off"};
  }
  if (trimmed(block.text).empty())
    return Error{std::string("the reply's ") + name + " block is empty"};
  return &block;
}

Result<Ok> check_bytes(std::string_view reply) {
  if (trimmed(reply).empty()) return Error{"the reply is empty"};
  if (!is_utf8(reply)) return Error{"the reply is not UTF-8 text"};
  return Ok{};
}

std::optional<Idea> idea_from_json(const json::value& value) {
  if (const json::string* text = value.if_string()) {
    if (trimmed(*text).empty()) return std::nullopt;
    return idea_from_text(std::string(*text));
  }
  const json::object* object = value.if_object();
  if (!object) return std::nullopt;
  const auto text_of = [&](const char* key) -> std::string_view {
    const json::value* member = object->if_contains(key);
    return member && member->is_string() ? trimmed(member->get_string()) : std::string_view();
  };
  const std::string_view text = text_of("idea");
  const std::string_view title = text_of("title");
  if (text.empty() && title.empty()) return std::nullopt;
  if (title.empty()) return idea_from_text(std::string(text));
  return Idea{printable(title, max_title_bytes),
              printable(text.empty() ? title : text, max_idea_bytes - 8)};
}

/// Nothing if the text is no JSON list of ideas.
std::optional<std::vector<Idea>> ideas_from_json(std::string_view text) {
  const Result<json::value> value = parse_json(text, "ideas");
  if (!value || !value->is_array()) return std::nullopt;
  std::vector<Idea> ideas;
  for (const json::value& entry : value->get_array()) {
    if (auto idea = idea_from_json(entry)) ideas.push_back(std::move(*idea));
  }
  return ideas;
}

/// The text after "3. " or "3) " if the line begins so, "**" round the number or not.
std::optional<std::string_view> numbered(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" *#"), line.size()));
  std::size_t digits = 0;
  while (digits < line.size() && std::isdigit(static_cast<unsigned char>(line[digits]))) ++digits;
  if (digits == 0 || digits > 3 || digits + 1 >= line.size()) return std::nullopt;
  if (line[digits] != '.' && line[digits] != ')') return std::nullopt;
  std::string_view rest = line.substr(digits + 1);
  if (!rest.starts_with(' ') && !rest.starts_with('*')) return std::nullopt;
  return trimmed(rest);
}

std::vector<Idea> ideas_from_list(std::string_view reply) {
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin < reply.size();) {
    const std::size_t end = std::min(reply.find('\n', begin), reply.size());
    const std::string_view line = reply.substr(begin, end - begin);
    if (const auto text = numbered(line)) {
      texts.emplace_back(*text);
    } else if (!texts.empty() && !trimmed(line).empty()) {
      texts.back() += " " + std::string(trimmed(line));
    }
    begin = end + 1;
  }
  std::vector<Idea> ideas;
  for (const std::string& text : texts) {
    if (!trimmed(text).empty()) ideas.push_back(idea_from_text(text));
  }
  return ideas;
}

/// The reply's plan with what the search knows better.
std::string completed_plan(json::object given, const CandidateFrame& frame) {
  std::string name = frame.id;
  std::replace(name.begin(), name.end(), '.', '_');
  json::object plan(given.size() + 6);
  plan.emplace("schema", 1);
  plan.emplace("problem", frame.problem);
  plan.emplace("name", std::move(name));
  const auto put_own_or = [&](const char* key, const std::string& otherwise) {
    json::value* own = given.if_contains(key);
    plan.emplace(key, own ? std::move(*own) : json::value(otherwise));
  };
  put_own_or("idea", frame.idea);
  put_own_or("arch", frame.arch);
  json::object& origin = plan["origin"].emplace_object();
  origin.emplace("trajectory", "trajectories/" + frame.trajectory + ".jsonl");
  origin.emplace("candidate", frame.id);
  for (auto& member : given) plan.emplace(member.key(), std::move(member.value()));
  return pretty_json(plan);
}

}  // namespace

Idea idea_from_text(const std::string& text) {
  std::string words = printable(trimmed(text), max_idea_bytes - 8);
  std::string title = words.substr(0, words.find_first_of("\n.:;"));
  title.erase(std::remove(title.begin(), title.end(), '*'), title.end());
  return {shortened(trimmed(title), max_title_bytes), std::move(words)};
}

Result<std::vector<Idea>> parse_ideas(std::string_view reply) {
  if (Result<Ok> bytes = check_bytes(reply); !bytes) return bytes.error();
  std::vector<Idea> ideas;
  for (const Block& block : fenced_blocks(reply)) {
    if (!is_json(block) && !block.mark.empty()) continue;
    if (auto found = ideas_from_json(block.text); found && ideas.empty()) ideas = std::move(*found);
  }
  if (ideas.empty()) ideas = ideas_from_json(trimmed(reply)).value_or(std::vector<Idea>{});
  if (ideas.empty()) ideas = ideas_from_list(reply);
  if (ideas.empty()) {
    return Error{"the reply has neither a JSON list of ideas nor a numbered list"};
  }
  return ideas;
}

Result<KernelReply> parse_kernel_reply(std::string_view reply) {
  if (Result<Ok> bytes = check_bytes(reply); !bytes) return bytes.error();
  std::vector<Block> blocks = fenced_blocks(reply);
  const Result<Block*> code = only_block(blocks, is_code, "cuda");
  if (!code) return code.error();
  const Result<Block*> plan = only_block(blocks, is_json, "json");
  if (!plan) return plan.error();
  Result<json::value> value = parse_json((*plan)->text, "the reply's json block");
  if (!value) return value.error();
  if (!value->is_object()) return Error{"the reply's json block: expected an object, the plan"};
  return KernelReply{std::move((*code)->text), std::move(value->get_object())};
}

Result<Candidate> candidate_from_reply(KernelReply reply, const CandidateFrame& frame) {
  return parse_candidate(completed_plan(std::move(reply.plan), frame), std::move(reply.source),
                         frame.id + "/kernel.json");
}

}  // namespace rekernel
