# SPDX-License-Identifier: Apache-2.0
# The libraries that the engine needs. They come from the folder that `ops/gpu-check --libraries` fills, which can be
# copied to a machine without them, or else from the system.
find_package(Threads REQUIRED)
set(SLUICE_LIBRARIES ${CMAKE_CURRENT_LIST_DIR}/../../build/gpu-libraries CACHE PATH
    "Folder with lib/ and include/ of the libraries")
get_filename_component(libraries_dir ${SLUICE_LIBRARIES} ABSOLUTE)

# carried_library(TARGET HEADER NAME OTHER...): defines lib::TARGET from the file NAME. OTHER are the libraries that it
# needs in turn. The folder has no symbolic links, so names are sonames.
function(carried_library target header name)
  find_path(${target}_include ${header} HINTS ${libraries_dir}/include NO_CACHE)
  find_library(${target}_file NAMES ${name} HINTS ${libraries_dir}/lib NO_CACHE)
  if(NOT ${target}_include OR NOT ${target}_file)
    message(FATAL_ERROR "${target} was found neither in ${libraries_dir} nor on the system: run "
                        "`ops/gpu-check --libraries` on a Debian 12 machine and copy that folder here.")
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

carried_library(crypto openssl/evp.h libcrypto.so.3)
carried_library(jansson jansson.h libjansson.so.4)
carried_library(xxhash xxhash.h libxxhash.so.0)
carried_library(lapacke lapacke.h liblapacke.so.3 liblapack.so.3 libblas.so.3 libtmglib.so.3 libgfortran.so.5
                libquadmath.so.0)

# RPATH instead of RUNPATH, because the loader uses it for indirect dependencies too.
# The second place: for programs that were copied from where they were built.
list(APPEND CMAKE_BUILD_RPATH ${libraries_dir}/lib $ORIGIN/../gpu-libraries/lib)
add_link_options(LINKER:--disable-new-dtags LINKER:-rpath-link,${libraries_dir}/lib)
