# SPDX-License-Identifier: Apache-2.0
# What benchmarks share, in this build and in that of tests/gpu: the race, reports, and catalogues.
set(bench_dir ${CMAKE_CURRENT_LIST_DIR})
function(bench_library name)
  list(TRANSFORM ARGN PREPEND ${bench_dir}/)
  add_library(${name} STATIC ${ARGN})
endfunction()

bench_library(bench_support bench_amx.c bench_engine.c bench_machine.c bench_options.c bench_peer.c bench_race.c
              bench_report.c bench_writer.c)
target_link_libraries(bench_support PUBLIC engine m Threads::Threads)
bench_library(recjpq_data recjpq_data.c recjpq_planted.c)
target_link_libraries(recjpq_data PUBLIC bench_support)
bench_library(mol_data mol_data.c mol_oracle.c mol_planted.c)
target_link_libraries(mol_data PUBLIC bench_support)
bench_library(bilinear_data bilinear_data.c)
target_link_libraries(bilinear_data PUBLIC bench_support)
bench_library(dot_data dot_data.c pdx_bond.c)
target_link_libraries(dot_data PUBLIC bench_support)
bench_library(full_scan full_scan.c)
target_link_libraries(full_scan PUBLIC bench_support)
# The scalar reference is what a compiler makes of plain C at its best on any machine.
set_source_files_properties(${bench_dir}/recjpq_data.c ${bench_dir}/full_scan.c ${bench_dir}/pdx_bond.c
                            PROPERTIES COMPILE_OPTIONS "-O3")
