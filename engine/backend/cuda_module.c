/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for the library of the CUDA backend, and checks that it fits. */
#include "engine/backend/cuda_module.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "libsluice_cuda.so"

/* Defined only if the program contains the backend. */
#pragma weak sluice_cuda_module

static struct {
  pthread_once_t once;
  const struct cuda_module *module; /* NULL: `failure` says why */
  struct err_kept failure;
} found = { .once = PTHREAD_ONCE_INIT };

static err_t find_program_folder(char folder[PATH_MAX])
{
  ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);

  if (n < 0)
    FAIL(ERR_DEVICE, "/proc/self/exe cannot be read, so " FILE_NAME " cannot be looked for");
  folder[n] = '\0';
  *strrchr(folder, '/') = '\0';
  return ERR_OK;
}

static err_t find_file(char path[PATH_MAX])
{
  static const char *const places[] = { "", "/../lib/sluice" };
  char folder[PATH_MAX];

  TRY(find_program_folder(folder));
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    int n = snprintf(path, PATH_MAX, "%s%s/" FILE_NAME, folder, places[i]);
    if (n < PATH_MAX && access(path, F_OK) == 0)
      return ERR_OK;
  }
  FAIL(ERR_DEVICE, "there is no %s: it comes with the package sluice-cuda, or a build with CUDA", path);
}

static err_t load(const struct cuda_module **out)
{
  char path[PATH_MAX];

  TRY(find_file(path));
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    FAIL(ERR_DEVICE, "the CUDA backend cannot be loaded: %s", dlerror());
  const struct cuda_module *module = dlsym(library, "sluice_cuda_module");
  if (!module)
    FAIL(ERR_DEVICE, "%s is not a CUDA backend of Sluice", path);
  if (strcmp(module->version, SLUICE_VERSION) != 0)
    FAIL(ERR_DEVICE, "%s is of version %s, but this is Sluice %s: install the same version of both", path,
         module->version, SLUICE_VERSION);
  *out = module;
  return ERR_OK;
}

static void find_once(void)
{
  if (&sluice_cuda_module)
    found.module = &sluice_cuda_module;
  else
    err_keep(load(&found.module), &found.failure);
}

err_t cuda_module_find(const struct cuda_module **out)
{
  pthread_once(&found.once, find_once);
  if (!found.module)
    return err_give_back(&found.failure);
  *out = found.module;
  return ERR_OK;
}

err_t cuda_module_find_device(struct device *out)
{
  const struct cuda_module *module = NULL;

  TRY(cuda_module_find(&module));
  return module->find_device(out);
}
