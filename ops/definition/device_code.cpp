#include "ops/definition/device_code.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "ops/definition/device_prelude.h"
#include "ops/definition/expression_code.h"
#include "ops/definition/portions.h"
#include "ops/definition/product_code.h"
#include "ops/definition/split.h"
#include "ops/definition/tile_code.h"
#include "ops/gemm.h"

namespace rekernel::definition {

namespace {

constexpr std::int64_t threads = 256;
/// A thread each is enough for so few terms, and lanes would have too little to share beyond.
constexpr std::int64_t few_terms = 32;
/// From here on all threads of a block share an element's terms, instead of a warp's.
constexpr std::int64_t many_terms = 2048;
/// With fewer elements than this, threads that work alone leave a device empty.
constexpr std::int64_t many_elements = std::int64_t{1} << 16;
/// A line of a scan is worth a block from this length on.
constexpr std::int64_t long_line = 512;

std::int64_t elements_of(const std::vector<Index>& indices, std::size_t without) {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i != without) product *= indices[i].extent;
  }
  return product;
}

/// Whether neighbours in the innermost index of a reduction lie side by side in what is read, and
/// neighbours of the left side do not.
bool reads_along_reduction(const Statement& statement, const Expression& reduction) {
  const std::string& inner = reduction.indices.back().name;
  const std::string last = statement.indices.empty() ? "" : statement.indices.back().name;
  int along = 0, across = 0;
  for_each(reduction, [&](const Expression& e) {
    if (e.op != Operator::read) return;
    const std::size_t subscripts = e.operands.size() - (e.has_otherwise ? 1 : 0);
    if (subscripts == 0) return;
    const Expression& place = e.operands[subscripts - 1];
    if (!last.empty() && mentions(place, last))
      ++across;
    else if (mentions(place, inner))
      ++along;
  });
  return along > 0 && across == 0;
}

/// How many threads work on an element of a statement together: 1, 32 or 256.
std::int64_t lanes_for(const CheckedStatement& checked, std::int64_t elements) {
  const Statement& statement = checked.statement;
  std::int64_t terms = 0;
  bool along = false;
  for (const Expression* reduction : top_level_reductions(statement.right)) {
    std::int64_t own = 1;
    for (const Index& index : reduction->indices) own *= index.extent;
    terms = std::max(terms, own);
    along |= reads_along_reduction(statement, *reduction);
  }
  if (terms <= few_terms) return 1;
  if (!along && elements >= many_elements) return 1;
  return terms >= many_terms ? threads : 32;
}

/// A statement's launch, whose grid is still to be counted.
struct PlainCode {
  KernelLaunch launch;
  std::int64_t elements = 0;  ///< or lines, where a loop runs along an index
  std::int64_t elements_of_a_block = 0;
};

class StatementCode {
 public:
  StatementCode(const Definition& definition, const CheckedStatement& checked, Purpose purpose,
                const Portions& portions, bool in_portions)
      : checked_(checked),
        statement_(checked.statement),
        purpose_(purpose),
        portions_(portions),
        in_portions_(in_portions),
        code_(definition, checked.statement, purpose, portions) {}

  /// Adds the kernel, which is called `kernel`, to the source.
  PlainCode write(const std::string& kernel, std::string& source) {
    const std::size_t along = checked_.scan         ? *checked_.scan
                              : checked_.recurrence ? *checked_.recurrence
                                                    : none;
    const std::int64_t elements = elements_of(statement_.indices, along);
    if (checked_.scan) {
      const bool is_last = along + 1 == statement_.indices.size();
      lanes_ = statement_.indices[along].extent >= long_line &&
                       (is_last || elements < many_elements / 16)
                   ? threads
                   : 1;
    } else {
      lanes_ = lanes_for(checked_, elements);
    }
    code_.set_lanes(lanes_);
    write_indices(along);
    if (checked_.scan) {
      write_scan(along);
    } else if (checked_.recurrence) {
      write_recurrence(along);
    } else {
      write_element();
    }
    source += "\n// " + statement_.text + "\n";
    source += "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(threads) + ") " +
              kernel + "(" + parameters() + ") {\n  using namespace problem;\n" + code_.lines() +
              "}\n";
    PlainCode plain;
    plain.launch.kernel = kernel;
    plain.launch.block = {threads, 1, 1};
    plain.launch.args = arguments();
    plain.elements = elements;
    plain.elements_of_a_block = threads / lanes_;
    return plain;
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// Which element this thread works on: its indices, all but the one that a loop runs along.
  void write_indices(std::size_t along) {
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < statement_.indices.size(); ++i) {
      if (i != along) own.push_back(i);
    }
    if (lanes_ == 1 && !in_portions_) put_reads_side_by_side(own);
    if (lanes_ > 1) code_.line("const int lane = threadIdx.x % " + std::to_string(lanes_) + ";");
    if (own.empty()) {
      code_.line(lanes_ == threads ? "if (blockIdx.x > 0) return;"
                                   : "if (blockIdx.x > 0 || threadIdx.x >= " +
                                         std::to_string(lanes_) + ") return;");
      return;
    }
    const std::string thread = lanes_ == threads ? "blockIdx.x"
                               : lanes_ == 1
                                   ? "1ll * blockIdx.x * blockDim.x + threadIdx.x"
                                   : "1ll * blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32";
    if (in_portions_) {
      std::int64_t inner = 1;
      for (std::size_t i = portions_.indices; i < statement_.indices.size(); ++i) {
        if (i != along) inner *= statement_.indices[i].extent;
      }
      code_.line("long long rest_ = first_item * " + std::to_string(inner) + " + " + thread + ";");
      code_.line("if (rest_ >= end_item * " + std::to_string(inner) + ") return;");
    } else {
      code_.line("long long rest_ = " + thread + ";");
    }
    for (std::size_t i = own.size(); i-- > 0;) {
      const Index& index = statement_.indices[own[i]];
      const std::string place = i > 0 ? "rest_ % " + index.extent_text : "rest_";
      code_.line("const index_t " + index.name + " = static_cast<index_t>(" + place + ");");
      if (i > 0) code_.line("rest_ /= " + index.extent_text + ";");
    }
    const Index& first = statement_.indices[own[0]];
    code_.line("if (" + first.name + " >= " + first.extent_text + ") return;");
  }

  /// The index last along which neighbouring threads find most of a reduction's reads side by side.
  void put_reads_side_by_side(std::vector<std::size_t>& own) const {
    const auto score = [&](std::size_t i) {
      int side_by_side = 0;
      const std::string& name = statement_.indices[i].name;
      for (const Expression* reduction : top_level_reductions(statement_.right)) {
        for_each(*reduction, [&](const Expression& e) {
          if (e.op != Operator::read || !mentions(e, name)) return;
          const Expression& last = e.operands[e.operands.size() - (e.has_otherwise ? 2 : 1)];
          side_by_side += mentions(last, name) ? 1 : -1;
        });
      }
      return side_by_side;
    };
    for (std::size_t i = 0; i + 1 < own.size(); ++i) {
      const bool better = score(own[i]) > score(own.back()) && score(own[i]) > 0 &&
                          statement_.indices[own[i]].extent >= 32;
      if (!better) continue;
      std::rotate(own.begin() + static_cast<std::ptrdiff_t>(i),
                  own.begin() + static_cast<std::ptrdiff_t>(i) + 1, own.end());
      i = 0;
    }
  }

  void write_element() {
    const std::string value = code_.expression(statement_.right);
    store(value);
  }

  void write_recurrence(std::size_t along) {
    const Index& index = statement_.indices[along];
    code_.line("for (index_t " + index.name + " = 0; " + index.name + " < " + index.extent_text +
               "; ++" + index.name + ") {");
    code_.open();
    store(code_.expression(statement_.right));
    if (lanes_ == threads) code_.line("__syncthreads();");
    if (lanes_ == 32) code_.line("__syncwarp();");
    code_.close();
  }

  void write_scan(std::size_t along) {
    const Expression& reduction = statement_.right;
    const Index& index = statement_.indices[along];
    const std::string& term = reduction.indices[0].name;
    const Bound bound = *bound_of(reduction.operands[1], term);
    const bool reversed = bound.op == Operator::greater || bound.op == Operator::greater_equal;
    const bool exclusive = bound.op == Operator::less || bound.op == Operator::greater;
    const std::string last = index.extent_text + " - 1 - step_";
    const std::string combine = code_.combiner(reduction.name);
    const std::string first = code_.first_value(reduction.name);
    if (lanes_ == 1) {
      code_.line("real sum_ = " + first + ";");
      code_.line("for (index_t step_ = 0; step_ < " + index.extent_text + "; ++step_) {");
      code_.open();
      code_.line("const index_t " + index.name + " = " + (reversed ? last : "step_") + ";");
      code_.line("const index_t " + term + " = " + index.name + ";");
      if (exclusive) store("sum_");
      code_.line("sum_ = " + combine + "(sum_, " + code_.real(reduction.operands[0]) + ");");
      if (!exclusive) store("sum_");
      code_.close();
      return;
    }
    code_.line("real carry_ = " + first + ";");
    code_.line("for (index_t start_ = 0; start_ < " + index.extent_text +
               "; start_ += blockDim.x) {");
    code_.open();
    code_.line("const index_t step_ = start_ + lane;");
    code_.line("const bool inside_ = step_ < " + index.extent_text + ";");
    code_.line("const index_t " + index.name + " = inside_ ? " + (reversed ? last : "step_") +
               " : 0;");
    code_.line("const index_t " + term + " = " + index.name + ";");
    const std::string body = code_.real(reduction.operands[0]);
    code_.line("const Scanned scanned_ = scan(inside_ ? " + body + " : " + first + ", " + first +
               ", [](real a, real b) { return " + combine + "(a, b); });");
    code_.line("if (inside_) {");
    code_.open();
    lanes_ = 1;  // each thread stores its own
    store(combine + "(carry_, " + (exclusive ? "scanned_.before" : "scanned_.here") + ")");
    lanes_ = threads;
    code_.close();
    code_.line("carry_ = " + combine + "(carry_, scanned_.all);");
    code_.close();
  }

  void store(const std::string& value) {
    std::string line = lanes_ > 1 ? "if (lane == 0) " : "";
    if (lanes_ > 1 && has_wide_copy()) line += "{ ";
    const std::string at = "[" + code_.place(statement_.name, own_places()) + "]";
    const std::string name = code_.target(statement_.name);
    line += name + at + " = " + code_.stored(statement_.name, value) + ";";
    if (has_wide_copy()) line += " " + statement_.name + "_wide" + at + " = " + value + ";";
    if (lanes_ > 1 && has_wide_copy()) line += " }";
    code_.line(line);
  }

  std::vector<std::string> own_places() const {
    std::vector<std::string> places;
    for (const Index& index : statement_.indices) places.push_back(index.name);
    return places;
  }

  bool has_wide_copy() const { return code_.has_wide_copy(statement_.name); }

  /// But for an input that is changed in place, which is its own target.
  std::vector<std::string> read_tensors() const {
    std::vector<std::string> names = tensors_read({&statement_.right}, statement_.name);
    if (purpose_ == Purpose::inputs) {
      std::erase_if(names,
                    [&](const std::string& name) { return "made_" + name == statement_.name; });
    }
    return names;
  }

  std::string parameters() const {
    std::string text = code_.parameters(read_tensors());
    text += (text.empty() ? "" : ", ") + code_.target_type(statement_.name) + "* " +
            code_.target(statement_.name);
    if (has_wide_copy()) text += ", real* " + statement_.name + "_wide";
    if (in_portions_) text += ", long long first_item, long long end_item";
    return text;
  }

  std::vector<Argument> arguments() const {
    std::vector<Argument> arguments = code_.arguments(read_tensors());
    arguments.push_back(BufferArgument{code_.target(statement_.name)});
    if (has_wide_copy()) arguments.push_back(BufferArgument{statement_.name + "_wide"});
    return arguments;
  }

  const CheckedStatement& checked_;
  const Statement& statement_;
  Purpose purpose_;
  const Portions& portions_;
  bool in_portions_;
  ExpressionCode code_;
  std::int64_t lanes_ = 1;
};

}  // namespace

namespace {

/// What intermediate results may take together; beyond, statements run in portions.
constexpr std::int64_t most_intermediate_bytes = std::int64_t{1} << 30;

class ProgramCode {
 public:
  ProgramCode(const Definition& definition, Purpose purpose)
      : definition_(definition),
        purpose_(purpose),
        element_bytes_(purpose == Purpose::candidate ? sizeof(float) : sizeof(double)),
        portions_(portions_of(definition, element_bytes_, most_intermediate_bytes)) {}

  Program write() {
    const auto& statements = definition_.statements();
    for (std::size_t i = 0; i < statements.size();) {
      if (!portions_.has(i)) {
        const Writer writer = write_statement(i++);
        for (Step& step : writer(0, 0)) program_.steps.push_back(std::move(step));
        continue;
      }
      std::vector<Writer> writers;
      for (; portions_.has(i); ++i) writers.push_back(write_statement(i));
      for (std::int64_t first = 0; first < portions_.items; first += portions_.items_at_once) {
        const std::int64_t end = std::min(portions_.items, first + portions_.items_at_once);
        for (const Writer& writer : writers) {
          for (Step& step : writer(first, end)) program_.steps.push_back(std::move(step));
        }
      }
    }
    if (left_bytes_ > 0) {
      program_.workspaces.push_back({"product_left", left_bytes_});
      program_.workspaces.push_back({"product_right", right_bytes_});
    }
    program_.source = device_prelude(definition_, purpose_, kernels_) +
                      (left_bytes_ > 0 ? gemm_source() : "") + kernels_;
    return std::move(program_);
  }

 private:
  /// The launches of a statement for items from a first one up to an end.
  using Writer = std::function<std::vector<Step>(std::int64_t, std::int64_t)>;

  Writer write_statement(std::size_t number) {
    const CheckedStatement& checked = definition_.statements()[number];
    const bool in_portions = portions_.has(number);
    add_workspaces(checked);
    if (purpose_ == Purpose::truth) {
      if (std::optional<ProductCode> product =
              product_code(definition_, checked, portions_, in_portions)) {
        kernels_ += product->source;
        left_bytes_ = std::max(left_bytes_, product->left_bytes);
        right_bytes_ = std::max(right_bytes_, product->right_bytes);
        return [code = std::move(*product)](std::int64_t first, std::int64_t end) {
          return code.steps(first, end);
        };
      }
    }
    const std::string kernel = "make_" + checked.statement.name;
    if (purpose_ == Purpose::candidate) {
      if (const std::optional<TileCode> tiles =
              tile_code(definition_, checked, portions_, in_portions, kernel, kernels_)) {
        return [tiles = *tiles, in_portions](std::int64_t first, std::int64_t end) {
          KernelLaunch launch = tiles.launch;
          launch.grid[2].count = in_portions ? tiles.matrices * (end - first) : tiles.matrices;
          if (in_portions) launch.args.push_back(ScalarArgument{first});
          return std::vector<Step>{std::move(launch)};
        };
      }
    }
    StatementCode code(definition_, checked, purpose_, portions_, in_portions);
    const PlainCode plain = code.write(kernel, kernels_);
    return [plain, in_portions, items = portions_.items](std::int64_t first, std::int64_t end) {
      KernelLaunch launch = plain.launch;
      std::int64_t elements = plain.elements;
      if (in_portions) {
        elements = elements / items * (end - first);
        launch.args.push_back(ScalarArgument{first});
        launch.args.push_back(ScalarArgument{end});
      }
      launch.grid[0].count = (elements + plain.elements_of_a_block - 1) / plain.elements_of_a_block;
      return std::vector<Step>{std::move(launch)};
    };
  }

  void add_workspaces(const CheckedStatement& checked) {
    const std::string& name = checked.statement.name;
    const TensorInfo& tensor = *definition_.find(name);
    const ExpressionCode types(definition_, checked.statement, purpose_, portions_);
    if (tensor.role == TensorInfo::Role::intermediate) {
      const std::int64_t of_an_item = portions_.item_elements(name);
      const std::int64_t elements =
          of_an_item > 0 ? of_an_item * portions_.items_at_once : tensor.elements();
      program_.workspaces.push_back({name, elements * types.target_bytes(name)});
    } else if (types.has_wide_copy(name)) {
      program_.workspaces.push_back(
          {name + "_wide", tensor.elements() * std::int64_t{sizeof(float)}});
    }
  }

  const Definition& definition_;
  Purpose purpose_;
  std::int64_t element_bytes_;
  Portions portions_;
  Program program_;
  std::string kernels_;
  std::int64_t left_bytes_ = 0;
  std::int64_t right_bytes_ = 0;
};

}  // namespace

Program device_program(const Definition& definition, Purpose purpose) {
  const Definition sliced = with_slices(definition);
  return ProgramCode(sliced, purpose).write();
}

}  // namespace rekernel::definition
