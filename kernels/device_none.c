/* SPDX-License-Identifier: Apache-2.0 */
/* device.h in a build without CUDA: there is never a device. Only device_find() is needed, because nothing else is
 * called without a device. */
#include "kernels/device.h"

err_t device_find(struct device *out)
{
  (void)out;
  FAIL(ERR_DEVICE, "this build has no CUDA (use the preset cuda)");
}
