# SPDX-License-Identifier: Apache-2.0
# Compile the protobuf schemas to C: proto/NAME.pb-c.{h,c} in the build folder.
find_program(PROTOC_C protoc-c)
if(NOT PROTOC_C)
  message(FATAL_ERROR "protoc-c was not found. On Debian: apt-get install protobuf-c-compiler "
                      "(ops/setup installs everything).")
endif()

set(wire_dir ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${wire_dir})
set(wire_files)
foreach(name IN ITEMS descriptors sluice)
  add_custom_command(
    OUTPUT ${wire_dir}/proto/${name}.pb-c.c ${wire_dir}/proto/${name}.pb-c.h
    COMMAND ${PROTOC_C} --c_out=${wire_dir} -I${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/proto/${name}.proto
    DEPENDS ${CMAKE_SOURCE_DIR}/proto/${name}.proto
    COMMENT "Compiling proto/${name}.proto")
  list(APPEND wire_files ${wire_dir}/proto/${name}.pb-c.c ${wire_dir}/proto/${name}.pb-c.h)
endforeach()
add_library(wire_schema STATIC ${wire_files})
target_include_directories(wire_schema SYSTEM PUBLIC ${wire_dir})
target_link_libraries(wire_schema PUBLIC lib::protobuf_c)
target_compile_options(wire_schema PRIVATE -w) # generated code
