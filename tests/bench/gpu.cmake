# SPDX-License-Identifier: Apache-2.0
# ops/bench gpu: where the build has CUDA, or its model.
bench_library(gpu_ceilings gpu_ceilings.cu)
target_link_libraries(gpu_ceilings PUBLIC engine_cuda)
if(SLUICE_CUDA STREQUAL "MODEL")
  set_source_files_properties(${bench_dir}/gpu_ceilings.cu PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
  target_compile_definitions(gpu_ceilings PRIVATE SLUICE_CUDA_MODEL)
endif()
add_executable(bench_gpu ${bench_dir}/bench_gpu.c ${bench_dir}/gpu_subjects.c ${bench_dir}/gpu_race.c
               ${bench_dir}/gpu_live_race.c)
target_link_libraries(bench_gpu PRIVATE bench_support gpu_ceilings mol_data recjpq_data bilinear_data)
# The matrix product of others, where the toolkit has it.
find_file(cublas_header cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS} NO_CACHE)
if(TARGET CUDA::cublas AND cublas_header)
  target_sources(bench_gpu PRIVATE ${bench_dir}/gpu_cublas.c)
  target_link_libraries(bench_gpu PRIVATE CUDA::cublas)
  target_compile_definitions(bench_gpu PRIVATE HAVE_CUBLAS)
endif()
