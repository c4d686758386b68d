#include "harness/project/candidates.h"

#include <algorithm>
#include <set>

#include "harness/base/utf8.h"
#include "harness/candidate/code.h"
#include "harness/candidate/known_problem.h"
#include "harness/problems/catalog.h"
#include "harness/project/root.h"
#include "harness/terminal/suggestion.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t longest_name = 200;
constexpr std::string_view generated = "generated/";

bool holds_candidate(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(folder / "kernel.json", ignored));
}

std::string without_slash(std::string name) {
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  return name;
}

/// "softmax/online" and "generated/softmax/online" as "softmax/online".
std::string in_generated(const std::string& name) {
  return name.starts_with(generated) ? name.substr(generated.size()) : name;
}

/// What is below the project's generated/, as "softmax" or "softmax/online"; empty for what is
/// not.
std::string below_generated(const fs::path& path, const fs::path& root) {
  std::error_code failure;
  const fs::path place = fs::canonical(path, failure);
  if (failure) return "";
  const fs::path base = fs::canonical(root / "generated", failure);
  if (failure) return "";
  const std::string name = place.lexically_relative(base).string();
  return name == "." || name.starts_with("..") ? "" : name;
}

/// The names that may have been meant: those of kernels that are called so in another problem or
/// without theirs, and near ones. Within a problem, kernels' own names are compared: the problem's
/// would make all of them look alike.
std::vector<std::string> meant_kernels(const std::string& name, const fs::path& root) {
  const fs::path wanted = in_generated(name);
  const std::string problem = wanted.parent_path().string();
  std::vector<std::string> meant, known, own_names;
  for (const std::string& one : kernel_names(root)) {
    const fs::path kernel = one;
    if (kernel.filename() == wanted.filename()) meant.push_back(one);
    known.push_back(one);
    if (kernel.parent_path() == problem) own_names.push_back(kernel.filename().string());
  }
  if (own_names.empty()) {
    for (std::string& one : suggestions(wanted.string(), known)) meant.push_back(std::move(one));
  } else {
    for (const std::string& one : suggestions(wanted.filename().string(), own_names)) {
      meant.push_back(problem + "/" + one);
    }
  }
  constexpr std::size_t most = 2;
  if (meant.size() > 1 && meant[0] == meant[1]) meant.erase(meant.begin());
  if (meant.size() > most) meant.resize(most);
  return meant;
}

Error unknown_kernel(const std::string& name, const fs::path& root, const char* expected) {
  return {"unknown kernel '" + one_line(name, longest_name) + "'" +
          did_you_mean(meant_kernels(name, root)) + ": expected " + expected};
}

/// Why nothing is named so in generated/.
Error not_committed(const std::string& name, const fs::path& root) {
  if (find_problem(name)) {
    return {"no kernel of " + name + " is in generated/: `rekernel new " + name +
            " NAME` makes one"};
  }
  const bool may_be_kernel = name.find('/') != std::string::npos;
  if (may_be_kernel || !meant_kernels(name, root).empty()) {
    return unknown_kernel(name, root, "PROBLEM/NAME of a folder in generated/");
  }
  return {unknown_problem(name).message + ", and kernels are written PROBLEM/NAME"};
}

/// A name as the project's folders have it: "softmax" or "softmax/online". Fails for what is in no
/// folder of generated/.
Result<std::string> committed_name(const std::string& given, const fs::path& root,
                                   const std::vector<std::string>& committed) {
  const std::string name = without_slash(given);
  const auto known = [&](const std::string& one) {
    return std::any_of(committed.begin(), committed.end(), [&](const std::string& kernel) {
      return kernel == one || kernel.starts_with(one + "/");
    });
  };
  if (const std::string folder = below_generated(name, root);
      !folder.empty() && known(folder) && !known(name)) {
    return folder;
  }
  if (const std::string plain = in_generated(name); known(plain)) return plain;
  if (holds_candidate(name)) {
    return Error{name + ": expected a kernel in " + (root / "generated").string()};
  }
  return not_committed(name, root);
}

/// The problem that is named by its id or by its folder; empty where it is none.
std::string named_problem(const std::string& name, const fs::path& root) {
  const std::string plain = in_generated(name);
  if (find_problem(plain)) return plain;
  const std::string folder = below_generated(name, root);
  return find_problem(folder) ? folder : "";
}

/// The folders of the kernels that a name stands for: one, or a problem's.
Result<std::vector<fs::path>> named_folders(const std::string& given) {
  const std::string name = without_slash(given);
  if (holds_candidate(name)) return std::vector<fs::path>{name};
  const fs::path root = project_root();
  const std::string problem = named_problem(name, root);
  if (problem.empty()) {
    const Result<fs::path> folder = candidate_folder(name);
    if (!folder) return folder.error();
    return std::vector<fs::path>{*folder};
  }
  std::vector<fs::path> folders;
  for (const std::string& kernel : kernel_names(root)) {
    if (kernel.starts_with(problem + "/")) folders.push_back(root / "generated" / kernel);
  }
  if (folders.empty()) return not_committed(problem, root);
  return folders;
}

}  // namespace

std::vector<std::string> kernel_names(const fs::path& root) {
  const Result<std::vector<fs::path>> folders = candidate_directories(root);
  std::vector<std::string> names;
  if (!folders) return names;
  for (const fs::path& folder : *folders) {
    names.push_back(folder.parent_path().filename().string() + "/" + folder.filename().string());
  }
  return names;
}

Result<std::vector<Candidate>> committed_candidates(const fs::path& root,
                                                    const std::vector<std::string>& names) {
  const Result<std::vector<fs::path>> folders = candidate_directories(root);
  if (!folders) return folders.error();
  const std::vector<std::string> committed = kernel_names(root);
  std::vector<std::string> wanted;
  for (const std::string& name : names) {
    Result<std::string> plain = committed_name(name, root, committed);
    if (!plain) return plain.error();
    wanted.push_back(*std::move(plain));
  }
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < folders->size(); ++i) {
    const std::string problem = (*folders)[i].parent_path().filename().string();
    const bool asked_for =
        wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
          return name == problem || name == committed[i];
        });
    if (!asked_for) continue;
    Result<Candidate> candidate = load_candidate((*folders)[i]);
    if (!candidate) return candidate.error();
    candidates.push_back(std::move(*candidate));
  }
  return candidates;
}

Result<fs::path> candidate_folder(const std::string& given) {
  const std::string name = without_slash(given);
  // The working directory's folder comes first: it is what the shell completes. It needs no
  // project.
  if (holds_candidate(name)) return fs::path(name);
  const fs::path root = project_root();
  if (const std::string problem = named_problem(name, root); !problem.empty()) {
    return Error{"'" + problem + "' is a problem: expected one kernel, as PROBLEM/NAME"};
  }
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) return fs::path(name);
  const fs::path committed = root / "generated" / in_generated(name);
  if (!fs::path(name).is_absolute() && fs::is_directory(committed, ignored)) return committed;
  return unknown_kernel(name, root, "PROBLEM/NAME of a folder in generated/, or a folder");
}

Result<Candidate> named_candidate_beside_problems(const std::string& name) {
  const Result<fs::path> folder = candidate_folder(name);
  if (folder) return load_candidate(*folder);
  if (name.find('/') != std::string::npos) return folder.error();
  return not_committed(name, project_root());
}

Result<Candidate> named_candidate(const std::string& name) {
  const Result<fs::path> folder = candidate_folder(name);
  return folder ? load_candidate(*folder) : folder.error();
}

Result<std::vector<Candidate>> named_candidates(const std::vector<std::string>& names) {
  std::vector<Candidate> candidates;
  std::set<fs::path> seen;
  for (const std::string& name : names) {
    const Result<std::vector<fs::path>> folders = named_folders(name);
    if (!folders) return folders.error();
    for (const fs::path& folder : *folders) {
      std::error_code ignored;
      if (!seen.insert(fs::weakly_canonical(folder, ignored)).second) continue;
      Result<Candidate> candidate = load_candidate(folder);
      if (!candidate) return candidate.error();
      candidates.push_back(*std::move(candidate));
    }
  }
  return candidates;
}

}  // namespace rekernel
