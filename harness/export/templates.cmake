# What `rekernel export` fills in travels inside the program, so that the program can travel without its
# sources: an entry {name, text} for each file of templates/.
set(export_templates "")
file(GLOB_RECURSE template_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_LIST_DIR}/templates
  ${CMAKE_CURRENT_LIST_DIR}/templates/*.in ${CMAKE_CURRENT_LIST_DIR}/templates/*.py)
foreach(file ${template_files})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS export/templates/${file})
  file(READ ${CMAKE_CURRENT_LIST_DIR}/templates/${file} text)
  string(APPEND export_templates "{\"${file}\", R\"__source__(${text})__source__\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/export_templates.inc CONTENT "@export_templates@" @ONLY)
