/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a store, and what is in it. */
#include "daemon/ctl/store/ctl_store.h"

#include <getopt.h>
#include <stdio.h>

#include "base/mem.h"
#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_option.h"
#include "store/store_backup.h"

err_t ctl_store_parse(int argc, char **argv, bool needs_directory, const char **directory)
{
  static const struct ctl_option none[] = { { 0 } };

  TRY(ctl_option_take(none, NULL, argc, argv));
  if (argc - optind > 1 || (needs_directory && argc == optind))
    FAIL(ERR_USAGE, "%s expects one directory", argv[0]);
  *directory = optind < argc ? argv[optind] : NULL;
  return ERR_OK;
}

err_t ctl_store_path(const struct ctl_options *options, char **out)
{
  AUTO(config_close) struct config *config = NULL;

  TRY(config_open_without_secrets(options->config_path, &config));
  TRY(ctl_context_verify_catalogue(config));
  return mem_copy_str(config->store_path, out);
}

err_t ctl_store_verify(const char *path)
{
  struct store_contents contents;

  TRY(store_backup_verify(path, &contents));
  printf("%s: %s %s, positions of %zu %s", path, ctl_format_count(contents.n_items).s,
         ctl_format_plural(contents.n_items, "item", "items"), contents.n_partitions,
         ctl_format_plural(contents.n_partitions, "partition", "partitions"));
  if (contents.n_aside)
    printf(", %s states of keys kept aside", ctl_format_count(contents.n_aside).s);
  if (contents.has_seen)
    printf(", %s seen items", ctl_format_count(contents.n_seen_items).s);
  if (contents.n_model_files)
    printf(", %zu %s", contents.n_model_files, ctl_format_plural(contents.n_model_files, "model file", "model files"));
  puts("; every record is good");
  return ERR_OK;
}
