# Most of a compilation is headers and templates, the same ones for every source: ten sources in one
# unit take a third of the time of ten. Sources of a target are grouped by twelve at most, in the order in
# which they are listed, so they share no names of their own (in unnamed namespaces). ALONE: sources that
# stay by themselves.
function(rekernel_group_sources target)
  if(NOT REKERNEL_GROUPED)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ALONE")
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  list(REMOVE_ITEM sources ${arg_ALONE})
  list(LENGTH sources count)
  math(EXPR groups "(${count} + 11) / 12")
  set(number 0)
  foreach(source IN LISTS sources)
    math(EXPR group "${number} * ${groups} / ${count}")
    math(EXPR number "${number} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP group_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # A grouped source looks like a header, in which names of the file's own would be a mistake.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
