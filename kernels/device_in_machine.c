/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for NVIDIA cards among the PCI devices. Separate from device.cu, because every build needs it: a card that the
 * driver does not show, or that the build cannot use, is worth a warning. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/device.h"

/* A display controller: VGA (0x0300xx) or 3D (0x0302xx), as the cards of servers are. */
enum { VENDOR_NVIDIA = 0x10de, CLASS_DISPLAY = 0x03, CLASS_SHIFT = 16 };

static const char *const usual_folder = "/sys/bus/pci/devices";

/* Read a hexadecimal number from a device's file; 0 if there is none. */
static unsigned long read_number(const char *folder, const char *device, const char *name)
{
  char path[4096], text[32] = "";
  FILE *f;

  if ((size_t)snprintf(path, sizeof path, "%s/%s/%s", folder, device, name) >= sizeof path || !(f = fopen(path, "re")))
    return 0;
  if (!fgets(text, sizeof text, f))
    text[0] = '\0';
  fclose(f);
  return strtoul(text, NULL, 16);
}

bool device_is_in_machine(const char *pci_devices)
{
  const char *folder = pci_devices ? pci_devices : usual_folder;
  DIR *all = opendir(folder);
  bool is_found = false;

  if (!all)
    return false;
  for (struct dirent *entry; !is_found && (entry = readdir(all));)
    is_found = entry->d_name[0] != '.' && read_number(folder, entry->d_name, "vendor") == VENDOR_NVIDIA &&
               read_number(folder, entry->d_name, "class") >> CLASS_SHIFT == CLASS_DISPLAY;
  closedir(all);
  return is_found;
}
