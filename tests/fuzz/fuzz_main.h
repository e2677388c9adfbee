/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzzers share. A fuzzer has a region, LLVMFuzzerTestOneInput() and, without libFuzzer, fuzz_random().
 *
 * With libFuzzer (clang -fsanitize=fuzzer -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION) a fuzzer is only its entry point.
 * Otherwise it has a main, which ends with FUZZ_MAIN. Its argument is the number of rounds (20000), or the files to run.
 */
#ifndef TESTS_FUZZ_FUZZ_MAIN_H
#define TESTS_FUZZ_FUZZ_MAIN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/region.h"

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                  \
    }                                                                           \
  } while (0)

static struct region region;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION

/* Run random inputs, drawn from SLUICE_SEED. */
static void fuzz_random(long rounds);

/* Run bytes in a block of exactly their size: the sanitizer sees a read past the end. */
static void fuzz_run(const uint8_t *bytes, size_t n)
{
  uint8_t *exact = malloc(n ? n : 1);

  CHECK(exact);
  memcpy(exact, bytes, n);
  LLVMFuzzerTestOneInput(exact, n);
  free(exact);
}

static int fuzz_file(const char *path)
{
  static uint8_t bytes[1 << 20];
  FILE *f = fopen(path, "rb");

  if (!f) {
    perror(path);
    return 1;
  }
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  fuzz_run(bytes, n);
  return 0;
}

int main(int argc, char **argv)
{
  char *end = NULL;
  long rounds = argc == 2 ? strtol(argv[1], &end, 10) : 20000;
  int failed = 0;

  if (argc < 2 || (end && *end == '\0'))
    fuzz_random(rounds);
  else
    for (int i = 1; i < argc; i++)
      failed |= fuzz_file(argv[i]);
  region_fini(&region);
  return failed;
}

#endif

#endif
