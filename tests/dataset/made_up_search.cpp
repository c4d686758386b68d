// made_up_search FILE ROUNDS IDEAS BRANCHES: records a search by the tests' fakes, for scale.py.

#include <cstdlib>
#include <iostream>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

/// Every round has ideas enough, and every reply holds a kernel of its own.
class ManyReplies : public Model {
 public:
  explicit ManyReplies(int ideas) {
    list_ = "[";
    for (int i = 0; i < ideas; ++i) {
      list_ += std::string(i > 0 ? "," : "") + R"({"title": "Idea )" + std::to_string(i) +
               R"(", "idea": "Load four floats at once."})";
    }
    list_ += "]";
  }
  std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                  const Arrived& arrived) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ModelReply reply;
      reply.text =
          requests[i].id.ends_with(".ideas") ? list_ : testing::kernel_reply(requests[i].id);
      if (arrived(i, std::move(reply)).next == Reception::Next::stop) break;
    }
    return std::nullopt;
  }

 private:
  std::string list_;
};

int run(char** arguments) {
  const int ideas = std::atoi(arguments[3]);
  Header header = testing::small_header(std::atoi(arguments[2]), ideas, std::atoi(arguments[4]));
  header.settings.prompt_tokens = 8000;
  ManyReplies model(ideas);
  testing::FakeEvaluator evaluator;
  const SearchEnd end = testing::run_on_file(arguments[1], header, model, evaluator);
  if (end.interruption) {
    std::cerr << end.interruption->message << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace rekernel

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: made_up_search FILE ROUNDS IDEAS BRANCHES\n";
    return 2;
  }
  return rekernel::run(argv);
}
