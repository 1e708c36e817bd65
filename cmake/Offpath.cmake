# Compiler settings shared by all targets, and how a component of src/ is declared.

add_library(offpath_flags INTERFACE)
target_compile_definitions(offpath_flags INTERFACE OFFPATH_VERSION="${PROJECT_VERSION}")
target_compile_options(offpath_flags INTERFACE -Wall -Wextra -Wshadow -Wpointer-arith
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=  # names of files in tests are those of any clone (tools/compile)
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>)
target_include_directories(offpath_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
if("${OFFPATH_SANITIZE}" STREQUAL "address")
  target_compile_options(offpath_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
    $<$<COMPILE_LANGUAGE:CXX>:-fstrict-enums> -fno-omit-frame-pointer)
  target_link_options(offpath_flags INTERFACE -fsanitize=address,undefined)
elseif("${OFFPATH_SANITIZE}" STREQUAL "thread")
  target_compile_options(offpath_flags INTERFACE -fsanitize=thread)
  target_link_options(offpath_flags INTERFACE -fsanitize=thread)
elseif(NOT "${OFFPATH_SANITIZE}" STREQUAL "")
  message(FATAL_ERROR "OFFPATH_SANITIZE='${OFFPATH_SANITIZE}' is not known. Use address or thread, or leave it empty")
endif()

# offpath_component(<name> SOURCES ... LINK ...): a static library offpath_<name>, linked by the components above it.
function(offpath_component name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(offpath_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(offpath_${name} PUBLIC offpath_flags ${ARG_LINK})
endfunction()
