# SPDX-License-Identifier: Apache-2.0
# The GPU test programs. They run on a real device if the build has CUDA, else on the model of a device. Shared by
# tests/CMakeLists.txt and the standalone project beside this file.
#
#   sluice_gpu_test(NAME [LIBRARY...])   tests/gpu/NAME.c; on the model, which is slow, with smaller sizes
#   sluice_gpu_watched(NAME)             the same, each access of a kernel watched, streams eager; on the model only
set(gpu_dir ${CMAKE_CURRENT_LIST_DIR})
set(gpu_tests)
set(gpu_sweeps gpu_functions gpu_mma) # they try very many inputs: ops/gpu-check runs them apart
function(sluice_gpu_test name)
  add_executable(${name} ${gpu_dir}/${name}.c)
  target_link_libraries(${name} PRIVATE engine_cuda Threads::Threads ${ARGN})
  if(SLUICE_CUDA STREQUAL "MODEL")
    target_compile_definitions(${name} PRIVATE SLUICE_CUDA_MODEL)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 900 SKIP_RETURN_CODE 77
                       ENVIRONMENT "${sanitizer_environment}")
  if(SLUICE_CUDA STREQUAL "MODEL")
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT SLUICE_GPU_QUICK=1)
  endif()
  if(SLUICE_SANITIZE)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT SLUICE_CUDA_MODEL=mixed,ampere)
  endif()
  set(gpu_tests ${gpu_tests} ${name} PARENT_SCOPE)
endfunction()

function(sluice_gpu_watched)
  foreach(name IN LISTS ARGN)
    add_test(NAME ${name}_watched COMMAND ${name})
    set_tests_properties(${name}_watched PROPERTIES LABELS unit TIMEOUT 900 ENVIRONMENT
                         "SLUICE_GPU_QUICK=1;SLUICE_CUDA_MODEL=eager,watch,hopper;SLUICE_CUDA_MODEL_PROTECT=off")
  endforeach()
endfunction()

sluice_gpu_test(gpu_filters m)
sluice_gpu_test(gpu_functions m)
sluice_gpu_test(gpu_lists m)
sluice_gpu_test(gpu_live)
sluice_gpu_test(gpu_mma m)
sluice_gpu_test(gpu_mol)
sluice_gpu_test(gpu_mol_bounds m)
sluice_gpu_test(gpu_mol_bounds_aligned m)
sluice_gpu_test(gpu_mol_candidates m)
sluice_gpu_test(gpu_mol_kernels)
sluice_gpu_test(gpu_mol_pairs m)
sluice_gpu_test(gpu_mol_sample m)
sluice_gpu_test(gpu_pq_kernels m)
sluice_gpu_test(gpu_recjpq)
sluice_gpu_test(gpu_rounds m)
sluice_gpu_test(gpu_spaces)
sluice_gpu_test(gpu_threads)
sluice_gpu_test(gpu_vector)
sluice_gpu_test(gpu_vector_kernels)
sluice_gpu_test(gpu_vector_rotate m)
sluice_gpu_test(gpu_words m)
foreach(name IN LISTS gpu_sweeps)
  target_sources(${name} PRIVATE ${gpu_dir}/probe_kernels.cu)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false>)
endforeach()
if(SLUICE_CUDA STREQUAL "MODEL")
  sluice_gpu_test(gpu_failure) # these need the model: it fails and counts on request
  sluice_gpu_test(gpu_steps m)
  sluice_gpu_test(gpu_planted) # and this one tests the model
  target_sources(gpu_planted PRIVATE ${gpu_dir}/planted_faults.cu)
  set_source_files_properties(${gpu_dir}/planted_faults.cu ${gpu_dir}/probe_kernels.cu PROPERTIES LANGUAGE CXX
                              COMPILE_OPTIONS "${cuda_model_options}")
  if(NOT SLUICE_SANITIZE)
    sluice_gpu_watched(gpu_filters gpu_lists gpu_live gpu_mol gpu_mol_bounds gpu_mol_bounds_aligned gpu_mol_candidates
                       gpu_mol_kernels gpu_mol_pairs gpu_recjpq gpu_rounds gpu_threads gpu_vector gpu_vector_kernels
                       gpu_vector_rotate gpu_words gpu_pq_kernels)
  endif()
endif()
