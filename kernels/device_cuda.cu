#include "kernels/device.h"

#include <cuda_runtime.h>
#include <stdio.h>

bool device_find(struct device *out)
{
  cudaDeviceProp properties;
  int n = 0;

  if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0 || cudaGetDeviceProperties(&properties, 0) != cudaSuccess)
    return false;
  snprintf(out->name, sizeof out->name, "%s", properties.name);
  out->memory_bytes = properties.totalGlobalMem;
  out->compute_capability = 10 * properties.major + properties.minor;
  return true;
}
