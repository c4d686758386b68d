#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "ops/result.h"
#include "replay/model/model.h"

namespace rekernel {

/// Answers with the replies of a trajectory, by request id: the same words on another GPU, or
/// judged by another evaluator. Prompts may differ from the recorded ones, since they show other
/// times.
class RecordedModel : public Model {
 public:
  static Result<std::unique_ptr<RecordedModel>> load(const std::filesystem::path& trajectory);
  std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                  const Arrived& arrived) override;
  bool keeps_replies() const override { return true; }

 private:
  std::filesystem::path path_;
  std::map<std::string, ModelReply> replies_;
};

}  // namespace rekernel
