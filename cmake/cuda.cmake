# SPDX-License-Identifier: Apache-2.0
# Finds the CUDA toolkit. Only the preset `cuda` needs it.
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "SLUICE_CUDA is ON, but nvcc was not found: install the CUDA Toolkit, or use the preset "
                      "`release`, which builds without it.")
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 90-virtual)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
