#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/definition/definition.h"
#include "ops/definition/device_code.h"
#include "ops/definition/portions.h"

namespace rekernel::definition {

/// "__half": what device code calls the type.
std::string element_type(DType dtype);

/// Whether an index or an offset can pass 2^31.
bool needs_long_indices(const Definition& definition);

/// The tensors that expressions read, but for `own`, in the order in which they stand there.
std::vector<std::string> tensors_read(const std::vector<const Expression*>& expressions,
                                      const std::string& own);

/// Writes the device code of one statement's expressions. Reductions become loops before the line
/// that needs them, so that an expression's text is good only where it was asked for.
class ExpressionCode {
 public:
  ExpressionCode(const Definition& definition, const Statement& statement, Purpose purpose,
                 const Portions& portions)
      : definition_(definition),
        statement_(statement),
        purpose_(purpose),
        portions_(portions),
        long_indices_(needs_long_indices(definition)) {}

  /// The text that stands for a reduction which something else computes.
  void replace(const Expression& reduction, const std::string& text) {
    replaced_ = &reduction;
    replacement_ = text;
  }

  /// How many threads share the terms of reductions that stand in no other.
  void set_lanes(std::int64_t lanes) { lanes_ = lanes; }

  /// The text of a value, in the type of the expression.
  std::string expression(const Expression& e);
  /// The same, as a real.
  std::string real(const Expression& e);

  void line(const std::string& text);
  void open() { ++depth_; }
  void close();
  /// After a closing brace: a semicolon.
  void end_statement() { lines_.insert(lines_.size() - 1, ";"); }
  const std::string& lines() const { return lines_; }

  /// Where an element of a tensor lies, from the texts of its indices.
  std::string place(const std::string& tensor, const std::vector<std::string>& places) const;

  // How a tensor that is read, or the one that is written, is called and typed here.
  std::string source(const std::string& tensor) const;
  std::string source_type(const std::string& tensor) const;
  std::string target(const std::string& tensor) const;
  std::string target_type(const std::string& tensor) const;
  std::int64_t target_bytes(const std::string& tensor) const;
  /// A value as the tensor holds it.
  std::string stored(const std::string& tensor, const std::string& value) const;
  /// Whether a candidate keeps an output of narrow type as reals too, for a later statement.
  bool has_wide_copy(const std::string& tensor) const;

  /// Tensors as parameters of a kernel, and as the arguments of its launch.
  std::string parameters(const std::vector<std::string>& tensors) const;
  std::vector<Argument> arguments(const std::vector<std::string>& tensors) const;

  std::string first_value(const std::string& reducer) const;
  std::string combiner(const std::string& reducer) const;

 private:
  std::string read(const Expression& e);
  std::string call(const Expression& e);
  std::string reduction(const Expression& e);
  std::string binary(const Expression& e);
  std::string number(const Expression& e) const;
  std::string fresh(const std::string& like) { return like + std::to_string(++count_) + "_"; }
  std::string loaded(const std::string& tensor, const std::string& at) const;

  void open_loops(const Expression& e, bool shared, bool blocked, const std::string& sum);
  void open_loop(const Expression& e, const Index& index, const std::string& first,
                 const std::string& step, std::vector<bool>& used,
                 const std::vector<std::string>& later);
  void open_flat_loop(const Expression& e);
  void close_loops(int loops);

  const Definition& definition_;
  const Statement& statement_;
  Purpose purpose_;
  const Portions& portions_;
  bool long_indices_;
  const Expression* replaced_ = nullptr;
  std::string replacement_;
  std::int64_t lanes_ = 1;
  std::string lines_;
  int depth_ = 1;
  int count_ = 0;
  int nesting_ = 0;  ///< reductions around the present place
};

}  // namespace rekernel::definition
