# Puts manual pages and completions where man and the shells look. Takes the program, and the folders man and share.
function(print_into file)
  execute_process(COMMAND ${program} ${ARGN} OUTPUT_FILE ${file} COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "Installing: ${file}")
endfunction()

execute_process(COMMAND ${program} help --man ${man}/man1 COMMAND_ERROR_IS_FATAL ANY)
file(MAKE_DIRECTORY ${share}/bash-completion/completions ${share}/zsh/site-functions ${share}/fish/vendor_completions.d)
print_into(${share}/bash-completion/completions/rekernel completion bash)
print_into(${share}/zsh/site-functions/_rekernel completion zsh)
print_into(${share}/fish/vendor_completions.d/rekernel.fish completion fish)
