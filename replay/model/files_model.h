#pragma once

#include <filesystem>

#include "replay/model/model.h"

namespace rekernel {

/// Any chat window or person as the model: writes `<id>.prompt.md` into a folder and reads
/// `<id>.reply.md` from it. Where replies are missing, it writes every prompt that can be asked now
/// and waits, and also where a reply is unusable, which is named. A reply counts once its
/// file exists, so write it under another name and rename it. A folder that holds another prompt
/// under a name belongs to another search and is refused.
class FilesModel : public Model {
 public:
  explicit FilesModel(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                  const Arrived& arrived) override;
  bool keeps_replies() const override { return true; }

 private:
  std::filesystem::path folder_;
};

}  // namespace rekernel
