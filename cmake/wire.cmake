# SPDX-License-Identifier: Apache-2.0
# Compile the protobuf schema to C: proto/sluice.pb-c.{h,c} in the build folder.
find_program(PROTOC_C protoc-c)
if(NOT PROTOC_C)
  message(FATAL_ERROR "protoc-c was not found. On Debian: apt-get install protobuf-c-compiler "
                      "(ops/setup installs everything).")
endif()

set(wire_dir ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${wire_dir})
add_custom_command(
  OUTPUT ${wire_dir}/proto/sluice.pb-c.c ${wire_dir}/proto/sluice.pb-c.h
  COMMAND ${PROTOC_C} --c_out=${wire_dir} -I${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/proto/sluice.proto
  DEPENDS ${CMAKE_SOURCE_DIR}/proto/sluice.proto
  COMMENT "Compiling proto/sluice.proto")
add_library(wire_schema STATIC ${wire_dir}/proto/sluice.pb-c.c ${wire_dir}/proto/sluice.pb-c.h)
target_include_directories(wire_schema SYSTEM PUBLIC ${wire_dir})
target_link_libraries(wire_schema PUBLIC lib::protobuf_c)
target_compile_options(wire_schema PRIVATE -w) # generated code
