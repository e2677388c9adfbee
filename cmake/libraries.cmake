# SPDX-License-Identifier: Apache-2.0
# System libraries, each with the oldest version known to work: the one in Debian 12.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

function(sluice_library target module version package)
  pkg_check_modules(${target} IMPORTED_TARGET GLOBAL ${module}>=${version})
  if(NOT ${target}_FOUND)
    message(FATAL_ERROR "${module} >= ${version} was not found. On Debian: apt-get install ${package} "
                        "(ops/setup installs everything).")
  endif()
  message(STATUS "${module} ${${target}_VERSION} (at least ${version})")
  add_library(lib::${target} ALIAS PkgConfig::${target})
endfunction()

sluice_library(rdkafka rdkafka 2.0.2 librdkafka-dev)
sluice_library(crypto libcrypto 3.0 libssl-dev) # librdkafka has it too
sluice_library(lmdb lmdb 0.9.24 liblmdb-dev)
sluice_library(lapacke lapacke 3.11.0 liblapacke-dev)
sluice_library(jansson jansson 2.14 libjansson-dev)
sluice_library(protobuf_c libprotobuf-c 1.4.1 "libprotobuf-c-dev protobuf-c-compiler")
sluice_library(yaml yaml-0.1 0.2.5 libyaml-dev)
sluice_library(xxhash libxxhash 0.8.1 libxxhash-dev)
sluice_library(microhttpd libmicrohttpd 0.9.75 libmicrohttpd-dev)
sluice_library(curl libcurl 7.88 libcurl4-openssl-dev)
sluice_library(systemd libsystemd 252 libsystemd-dev)
sluice_library(jemalloc jemalloc 5.3.0 libjemalloc-dev)
sluice_library(cmocka cmocka 1.1.5 libcmocka-dev)
