# SPDX-License-Identifier: Apache-2.0
# How payloads are built: freestanding programs that a VMM boots instead of a kernel (docs/testing.md, "Payloads").
enable_language(ASM)

set(payload_flags -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables -fvisibility=hidden
  -mgeneral-regs-only -mstrict-align -mno-outline-atomics -fpie -O2 -Wall -Wextra -Wshadow -Werror -I${CMAKE_SOURCE_DIR})
set(payload_script ${CMAKE_SOURCE_DIR}/tests/guest/lib/payload.lds)

# tandem_payload(<name> [BARE]): builds <name>.c and the payload library into payloads/<name>.img; with BARE, <name>.S alone.
function(tandem_payload name)
  cmake_parse_arguments(ARG "BARE" "" "" ${ARGN})
  if(ARG_BARE)
    add_executable(payload_${name} ${name}.S)
  else()
    add_executable(payload_${name} ${name}.c $<TARGET_OBJECTS:payload_library>)
  endif()
  target_compile_options(payload_${name} PRIVATE ${payload_flags})
  target_link_options(payload_${name} PRIVATE -nostdlib -static-pie -Wl,--no-dynamic-linker -Wl,-z,notext
    -T${payload_script} -Wl,--build-id=none -Wl,--no-warn-rwx-segments)
  set_target_properties(payload_${name} PROPERTIES LINK_DEPENDS ${payload_script})
  set(image ${CMAKE_CURRENT_BINARY_DIR}/payloads/${name}.img)
  add_custom_command(OUTPUT ${image}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/payloads
    COMMAND ${CMAKE_OBJCOPY} -O binary $<TARGET_FILE:payload_${name}> ${image}
    DEPENDS payload_${name} VERBATIM)
  add_custom_target(image_${name} ALL DEPENDS ${image})
endfunction()
