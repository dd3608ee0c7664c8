# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs beside the programs, and the Debian package: `cmake --build build/arm64 --target package`.

# Installed programs are stripped; those in the build directory keep their symbols. Holds for what is declared later.
install(CODE "set(CMAKE_INSTALL_DO_STRIP ON)")

# The libraries that are linked into the programs ask for their notices to go with them: those of the packages they
# come from.
set(linked_packages libspdlog-dev libfmt-dev libcli11-dev nlohmann-json3-dev liburing-dev libfdt-dev zlib1g-dev
  libzstd-dev libxxhash-dev libc6-dev* libstdc++-*-dev*)
set(notices "")
foreach(package IN LISTS linked_packages)
  file(GLOB files LIST_DIRECTORIES FALSE /usr/share/doc/${package}/copyright)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} DIRECTORY)
    get_filename_component(name ${name} NAME)
    file(READ ${file} text)
    string(APPEND notices "==== ${name}\n\n${text}\n")
  endforeach()
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/third-party-notices "${notices}")

include(GNUInstallDirs)
install(FILES README.md CHANGELOG.md LICENSE scripts/cmake/copyright ${CMAKE_BINARY_DIR}/third-party-notices
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md)

set(TANDEM_MAINTAINER "Tandem maintainers <maintainers@tandem.invalid>" CACHE STRING "Who answers for the package")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${TANDEM_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Boots unmodified arm64 Linux guests from the command line, with virtio disks,
networks and consoles. One static program; it needs a host with KVM.")
include(CPack)
