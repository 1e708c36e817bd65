# SZ3's headers: the system's, else those inside the Rust package sz3-sys, which cargo fetches into its own cache. Nothing of
# them is compiled but what src/kernels/codecs/sz3.cpp includes.
set(OFFPATH_SZ3 auto CACHE STRING "Lossy compression by SZ3: auto (where its headers are found or cargo can fetch them) or off")
set(OFFPATH_SZ3_PACKAGE 0.4.1)

# What cargo has of the package, fetched if it has not.
function(offpath_fetch_sz3 variable)
  set(home "$ENV{CARGO_HOME}")
  if(NOT home)
    set(home "$ENV{HOME}/.cargo")
  endif()
  set(pattern ${home}/registry/src/*/sz3-sys-${OFFPATH_SZ3_PACKAGE}*/SZ3)
  file(GLOB found ${pattern})
  find_program(OFFPATH_CARGO cargo PATHS ${home}/bin)
  if(NOT found AND OFFPATH_CARGO)
    set(project ${CMAKE_BINARY_DIR}/sz3/fetch)
    file(WRITE ${project}/Cargo.toml "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[lib]\npath = \"lib.rs\"\n"
      "[dependencies]\nsz3-sys = \"=${OFFPATH_SZ3_PACKAGE}\"\n[workspace]\n")
    file(WRITE ${project}/lib.rs "")
    execute_process(COMMAND ${OFFPATH_CARGO} fetch --quiet --manifest-path ${project}/Cargo.toml
      TIMEOUT 120 OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE ignored)
    file(GLOB found ${pattern})
  endif()
  set(${variable} "" PARENT_SCOPE)
  if(found)
    list(GET found 0 found)
    set(${variable} ${found} PARENT_SCOPE)
  endif()
endfunction()

# The folders to include, or nothing.
function(offpath_find_sz3 variable)
  set(${variable} "" PARENT_SCOPE)
  if(NOT OFFPATH_SZ3 STREQUAL "auto")
    message(STATUS "Lossy compression: no SZ3 (OFFPATH_SZ3=${OFFPATH_SZ3})")
    return()
  endif()
  find_path(OFFPATH_SZ3_INCLUDE SZ3/decomposition/InterpolationDecomposition.hpp)
  set(version "")
  if(OFFPATH_SZ3_INCLUDE AND EXISTS ${OFFPATH_SZ3_INCLUDE}/SZ3/version.hpp)  # what is used of it changes with the version
    file(STRINGS ${OFFPATH_SZ3_INCLUDE}/SZ3/version.hpp version REGEX "SZ3_VER +\"3\\.3")
  endif()
  if(version)
    message(STATUS "Lossy compression: SZ3 in ${OFFPATH_SZ3_INCLUDE}")
    set(${variable} ${OFFPATH_SZ3_INCLUDE} PARENT_SCOPE)
    return()
  endif()
  offpath_fetch_sz3(package)
  if(NOT package)
    message(STATUS "Lossy compression: no SZ3 (neither its headers nor cargo's package sz3-sys were found)")
    return()
  endif()
  set(headers ${CMAKE_BINARY_DIR}/sz3/include)
  file(COPY ${package}/include/SZ3 DESTINATION ${headers})
  file(WRITE ${headers}/SZ3/version.hpp "#pragma once\n#include <cstdint>\n#include <string>\n#define SZ3_MAGIC_NUMBER 0xF342F310\n"
    "#define SZ3_VER \"3.3.2\"\n#define SZ3_DATA_VER \"3.3.2\"\n"
    "inline uint32_t versionInt(const std::string&) { return 0x03030200; }\n"
    "inline std::string versionStr(uint32_t) { return \"3.3.2\"; }\n")
  message(STATUS "Lossy compression: SZ3 from cargo's package sz3-sys ${OFFPATH_SZ3_PACKAGE}")
  set(${variable} ${headers} PARENT_SCOPE)
endfunction()
