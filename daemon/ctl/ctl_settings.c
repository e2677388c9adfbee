/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl settings: print the reference of the configuration. It needs no daemon. */
#include "daemon/config/config.h"
#include "daemon/ctl/ctl_command.h"

static err_t run_settings(const struct ctl_options *options, int argc, char **argv)
{
  (void)options;
  (void)argv;
  if (argc > 1)
    FAIL(ERR_USAGE, "settings takes no arguments");
  config_print_reference();
  return ERR_OK;
}

const struct ctl_command ctl_settings_command = {
  .name = "settings",
  .arguments = "",
  .summary = "print every setting of the configuration, with bounds, default and meaning",
  .help = "",
  .run = run_settings,
};
