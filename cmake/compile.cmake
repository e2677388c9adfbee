# SPDX-License-Identifier: Apache-2.0
# Compiler flags and the choice of CUDA, shared by this project and the one in tests/gpu.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_FLAGS_DEV "-O2 -g")
set(CMAKE_CXX_FLAGS_DEV "-O2 -g")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g -DNDEBUG")
# Hundreds of test programs are linked. gold takes a tenth of the time.
include(CheckLinkerFlag)
check_linker_flag(C -fuse-ld=gold SLUICE_HAS_GOLD)
if(SLUICE_HAS_GOLD)
  set(CMAKE_EXE_LINKER_FLAGS_DEV "-fuse-ld=gold")
  string(APPEND CMAKE_EXE_LINKER_FLAGS_DEBUG " -fuse-ld=gold")
endif()

# There is no global -march: each file for an instruction set has its own flags. -ffp-contract=off keeps a compiler from
# fusing multiplications and additions, so that every compiler gives the same bits.
add_compile_options(
  $<$<COMPILE_LANGUAGE:C>:-Wall> $<$<COMPILE_LANGUAGE:C>:-Wextra> $<$<COMPILE_LANGUAGE:C>:-Werror>
  $<$<COMPILE_LANGUAGE:C>:-Wconversion> $<$<COMPILE_LANGUAGE:C>:-Wshadow> $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
  $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wvla>
  $<$<COMPILE_LANGUAGE:C>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:C>:-fno-omit-frame-pointer>)
add_compile_definitions(_GNU_SOURCE)
if(SLUICE_CUDA STREQUAL "MODEL")
  enable_language(CXX)
elseif(SLUICE_CUDA)
  include(${CMAKE_CURRENT_LIST_DIR}/cuda.cmake)
endif()
if(SLUICE_CUDA)
  add_compile_definitions(SLUICE_CUDA)
endif()
