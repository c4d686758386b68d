#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "harness/base/files.h"

namespace rekernel {

/// A prompt. Prompts of one round have most of their text in common: it is kept and hashed once.
class PromptText {
 public:
  /// How several prompts begin.
  struct Beginning {
    explicit Beginning(std::string all) : text(std::move(all)) { hash.update(text); }
    std::string text;
    Sha256 hash;
  };

  PromptText() : PromptText(std::string()) {}
  PromptText(std::string text) : PromptText(std::make_shared<Beginning>(std::move(text)), "") {}
  PromptText(const char* text) : PromptText(std::string(text)) {}
  PromptText(std::shared_ptr<const Beginning> beginning, std::string rest)
      : beginning_(std::move(beginning)), rest_(std::move(rest)) {}

  std::size_t size() const { return beginning_->text.size() + rest_.size(); }
  std::string text() const { return beginning_->text + rest_; }
  /// sha256_hex of the text.
  std::string sha256() const {
    Sha256 hash = beginning_->hash;
    hash.update(rest_);
    return hash.hex();
  }

 private:
  std::shared_ptr<const Beginning> beginning_;
  std::string rest_;
};

}  // namespace rekernel
