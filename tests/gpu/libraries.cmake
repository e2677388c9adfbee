# SPDX-License-Identifier: Apache-2.0
# What the engine needs besides: from the folder that `ops/gpu-check --libraries` fills, which can travel to a machine
# that has nothing, else from the system.
find_package(Threads REQUIRED)
set(SLUICE_LIBRARIES ${CMAKE_CURRENT_LIST_DIR}/../../build/gpu-libraries CACHE PATH
    "Folder with lib/ and include/ of the libraries")
get_filename_component(libraries_dir ${SLUICE_LIBRARIES} ABSOLUTE)

# carried_library(TARGET HEADER NAME...): lib::TARGET; behind its own, names of libraries that it needs, which the linker
# then finds. The folder has no links, so the names are those that programs ask for.
function(carried_library target header name)
  find_path(${target}_include ${header} HINTS ${libraries_dir}/include NO_CACHE)
  find_library(${target}_file NAMES ${name} HINTS ${libraries_dir}/lib NO_CACHE)
  if(NOT ${target}_include OR NOT ${target}_file)
    message(FATAL_ERROR "${target} was not found, neither in ${libraries_dir} nor on the system: run "
                        "`ops/gpu-check --libraries` on a Debian 12 machine and bring that folder along.")
  endif()
  message(STATUS "${target}: ${${target}_file}")
  add_library(lib::${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(lib::${target} PROPERTIES IMPORTED_LOCATION ${${target}_file}
                        INTERFACE_INCLUDE_DIRECTORIES ${${target}_include})
  foreach(other ${ARGN})
    find_library(${other}_file NAMES ${other} HINTS ${libraries_dir}/lib NO_CACHE)
    if(${other}_file)
      set_property(TARGET lib::${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${${other}_file})
    endif()
  endforeach()
endfunction()

carried_library(jansson jansson.h libjansson.so.4)
carried_library(xxhash xxhash.h libxxhash.so.0)
carried_library(lapacke lapacke.h liblapacke.so.3 liblapack.so.3 libblas.so.3 libtmglib.so.3 libgfortran.so.5
                libquadmath.so.0)

# RPATH and not RUNPATH: libraries that libraries need are looked for there too.
list(APPEND CMAKE_BUILD_RPATH ${libraries_dir}/lib)
add_link_options(LINKER:--disable-new-dtags LINKER:-rpath-link,${libraries_dir}/lib)
