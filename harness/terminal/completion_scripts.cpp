#include <array>
#include <utility>

#include "harness/terminal/completion.h"

namespace rekernel {

namespace {

constexpr const char* bash_script =
    R"__(# Completion of rekernel for bash: eval "$(rekernel completion bash)"
_rekernel() {
  local program=${COMP_WORDS[0]/#\~/$HOME} current=${COMP_WORDS[COMP_CWORD]} line
  COMPREPLY=()
  # Bash cuts --option=value at the sign, and completes what comes after it.
  [[ $current == = ]] && current=
  while IFS= read -r line; do
    case $line in
      :files)
        compopt -o filenames
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
        ;;
      :folders)
        compopt -o filenames
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$current")
        ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("$program" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _rekernel rekernel
)__";

constexpr const char* zsh_script = R"__(#compdef rekernel
# Completion of rekernel for zsh: eval "$(rekernel completion zsh)", or as the file _rekernel in $fpath.
_rekernel() {
  local line word
  local -a found
  local files=0 folders=0
  for line in "${(@f)$(${~words[1]} complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      '') ;;
      :files) files=1 ;;
      :folders) folders=1 ;;
      *)
        word=${line%%$'\t'*}
        if [[ $line == *$'\t'* ]]; then
          found+=("${word//:/\\:}:${line#*$'\t'}")
        else
          found+=("${word//:/\\:}")
        fi
        ;;
    esac
  done
  (( ${#found} )) && _describe -t words rekernel found
  (( files )) && _files
  (( folders )) && _files -/
  return 0
}
if [[ ${funcstack[1]} == _rekernel ]]; then
  _rekernel "$@"
else
  compdef _rekernel rekernel
fi
)__";

constexpr const char* fish_script =
    R"__(# Completion of rekernel for fish: rekernel completion fish | source
function __rekernel_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    for line in (eval $before[1] complete -- (string escape -- $before[2..-1] "$current") 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :folders
                __fish_complete_directories "$current"
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c rekernel -f -a '(__rekernel_complete)'
)__";

constexpr std::array scripts{std::pair{"bash", bash_script}, std::pair{"zsh", zsh_script},
                             std::pair{"fish", fish_script}};

}  // namespace

std::optional<std::string> completion_script(const std::string& shell) {
  for (const auto& [name, script] : scripts) {
    if (shell == name) return script;
  }
  return std::nullopt;
}

std::vector<std::string> shells_with_completion() {
  std::vector<std::string> names;
  for (const auto& [name, script] : scripts) names.emplace_back(name);
  return names;
}

}  // namespace rekernel
