/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of sluiced, and the text of --help. */
#include "daemon/setup/command_line.h"

#include <getopt.h>
#include <stdio.h>

#include "daemon/exit_status.h"

static const char usage[] =
    "usage: sluiced --config FILE [--check-config]\n"
    "\n"
    "Sluice reads item embeddings from one Kafka topic. It answers queries from another topic\n"
    "with the k items that score highest.\n"
    "\n"
    "  -c, --config FILE   configuration, in YAML; `sluicectl settings` lists every setting\n"
    "      --check-config  check the configuration and its models, and exit\n"
    "      --version       print the version and exit\n"
    "  -h, --help          print this help and exit\n"
    "\n"
    "To start, write three settings to a file and run sluiced --config FILE:\n"
    "  embedded_broker: {enabled: true}     # or kafka: {bootstrap.servers: HOST:PORT}\n"
    "  store: {path: store}\n"
    "  spaces: {books: {model: books.safetensors}}\n"
    "\n"
    "Signals:\n"
    "  SIGTERM, SIGINT   answer the accepted queries, commit their offsets and exit with 0\n"
    "  SIGHUP            read the configuration again; log.level, limits and passwords take effect\n"
    "\n"
    "Exit status:\n"
    "  0   stopped by a signal\n"
    "  1   an error that a restart may solve\n"
    "  2   wrong command line\n"
    "  3   the catalogue topic does not continue the store, or is damaged, and\n"
    "      catalogue.on_discontinuity or catalogue.on_damage is stop\n"
    "  4   the store is damaged\n"
    "  78  the configuration or a model cannot be used\n";

static int fail_usage(void)
{
  fputs(usage, stderr);
  return EXIT_STATUS_USAGE;
}

int command_line_read(int argc, char **argv, struct command_line *out)
{
  static const struct option options[] = {
    { "config", required_argument, NULL, 'c' },
    { "check-config", no_argument, NULL, 'k' },
    { "version", no_argument, NULL, 'v' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
  };

  *out = (struct command_line){ 0 };
  for (int o; (o = getopt_long(argc, argv, "c:h", options, NULL)) != -1;) {
    if (o == 'h')
      return fputs(usage, stdout) < 0;
    if (o == 'v')
      return printf("sluiced %s\n", SLUICE_VERSION) < 0;
    if (o == '?')
      return fail_usage();
    if (o == 'c')
      out->config_path = optarg;
    else
      out->is_check = true;
  }
  return out->config_path && optind == argc ? COMMAND_LINE_FINE : fail_usage();
}
