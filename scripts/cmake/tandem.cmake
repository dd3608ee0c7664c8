# SPDX-License-Identifier: Apache-2.0
# How every part of Tandem is compiled, and the functions with which a folder declares itself.

option(TANDEM_TESTS "Build the tests" ON)
option(TANDEM_FUZZ "Build the fuzz targets (clang)" OFF)
set(TANDEM_SANITIZE "" CACHE STRING "Value of -fsanitize= for native builds, or empty")

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(TANDEM_CCACHE ccache)
if(TANDEM_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${TANDEM_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TANDEM_CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# Flags of all our own code.
add_library(tandem_flags INTERFACE)
target_include_directories(tandem_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(tandem_flags INTERFACE SPDLOG_FMT_EXTERNAL)
target_compile_options(tandem_flags INTERFACE
  -Wall -Wextra -Wshadow -Werror
  -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=  # what an assertion prints is the same wherever it was built
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion -Wold-style-cast -Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety -Wno-gnu-statement-expression>)
target_link_libraries(tandem_flags INTERFACE Threads::Threads)

if(TANDEM_ARM64)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)  # for libraries found by name or through pkg-config: the binary is static
  target_compile_options(tandem_flags INTERFACE -ffunction-sections -fdata-sections)
  target_link_options(tandem_flags INTERFACE -static-pie -Wl,--gc-sections -Wl,-z,relro -Wl,-z,now)
endif()
if(TANDEM_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(TANDEM_SANITIZE)
  add_compile_options(-fsanitize=${TANDEM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TANDEM_SANITIZE})
endif()

# tandem_target_name(<folder> <out>): vmm/lib/result -> vmm_lib_result
function(tandem_target_name folder out)
  string(REPLACE "/" "_" name "${folder}")
  set(${out} ${name} PARENT_SCOPE)
endfunction()

# tandem_folder([SOURCES file…] [ARM64_SOURCES file…] [DEPENDS folder…] [LIBRARIES target…])
# Declares the current folder as one library. ARM64_SOURCES need arm64's KVM and are left out elsewhere. DEPENDS names folders from the top of the tree;
# scripts/check_includes holds every #include in the folder against this list.
function(tandem_folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;ARM64_SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  if(TANDEM_ARM64)
    list(APPEND ARG_SOURCES ${ARG_ARM64_SOURCES})
  endif()
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  tandem_target_name(${folder} target)
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(${target} ${scope} tandem_flags ${ARG_LIBRARIES})
  foreach(dependency IN LISTS ARG_DEPENDS)
    tandem_target_name(${dependency} dependency_target)
    target_link_libraries(${target} ${scope} ${dependency_target})
  endforeach()
endfunction()

# tandem_test(<label>.<name> [TIMEOUT seconds] COMMAND target [argument…])
# Registers a test program under the label that scripts/test selects it by, and makes gtest write its
# results where scripts/test counts them.
function(tandem_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "COMMAND" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  string(REGEX MATCH "^[a-z]+" label ${name})
  string(REPLACE "/" "_" file ${name})
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/results/${file}.xml)
endfunction()
