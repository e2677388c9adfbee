/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl layout: show which shards, replicas and merges there are, and what is wrong with them. */
#include <getopt.h>
#include <stdio.h>

#include "daemon/ctl/layout/ctl_layout_json.h"
#include "daemon/ctl/layout/ctl_layout_print.h"
#include "daemon/ctl/text/ctl_option.h"

struct request {
  struct ctl_layout_daemons daemons;
  bool prints_json;
  bool shows_positions;
};

static void request_fini(struct request *r)
{
  ctl_layout_daemons_fini(&r->daemons);
}

static err_t add_daemons(void *daemons, const char *list)
{
  return ctl_layout_daemons_add(daemons, list);
}

static err_t read_options(int argc, char **argv, struct request *r)
{
  const struct ctl_option known[] = {
    { "at", .take = add_daemons, .context = &r->daemons },
    { "json", .is_given = &r->prints_json },
    { "positions", .is_given = &r->shows_positions },
    { 0 },
  };

  TRY(ctl_option_take(known, NULL, argc, argv));
  for (int i = optind; i < argc; i++) /* --at A B C */
    TRY(ctl_layout_daemons_add(&r->daemons, argv[i]));
  return ERR_OK;
}

/* Without --at, the daemon of the configuration is asked. */
static err_t name_daemon(const struct ctl_options *options, struct ctl_layout_daemons *daemons)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;

  if (daemons->n > 0)
    return ERR_OK;
  TRY(ctl_context_open_for_http(options, &ctx));
  return ctl_layout_daemons_add(daemons, http_get_base(ctx->http));
}

static err_t print_json(const struct request *r, const struct ctl_layouts *layouts, const struct ctl_findings *findings)
{
  AUTO(ctl_json_close) json_t *root = ctl_layout_json(&r->daemons, layouts, findings);

  if (json_dumpf(root, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER) != 0)
    FAIL(ERR_SYSTEM, "the layout cannot be written");
  putchar('\n');
  return ERR_OK;
}

static err_t run_layout(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(request_fini) struct request r = { 0 };
  AUTO(ctl_layouts_fini) struct ctl_layouts layouts = { 0 };
  AUTO(ctl_findings_fini) struct ctl_findings findings = { 0 };

  TRY(read_options(argc, argv, &r));
  TRY(name_daemon(options, &r.daemons));
  TRY(ctl_layout_daemons_ask(&r.daemons));
  TRY(ctl_layouts_find(&r.daemons, &layouts));
  TRY(ctl_layout_check(&r.daemons, &layouts, &findings));
  if (r.prints_json)
    TRY(print_json(&r, &layouts, &findings));
  else
    ctl_layout_print(&r.daemons, &layouts, &findings, r.shows_positions, stdout);
  size_t n = ctl_findings_problems(&findings);
  if (n > 0)
    FAIL(ERR_SYSTEM, "the layout has %zu problem%s", n, n == 1 ? "" : "s");
  return ERR_OK;
}

const struct ctl_command ctl_layout_command = {
  .name = "layout",
  .arguments = "[--at ADDRESS:PORT...] [--positions] [--json]",
  .summary = "show shards, their replicas and merges, and what a query searches",
  .help = "  --at ADDRESS:PORT   ask this daemon; several follow each other, or have commas between them, or an --at\n"
          "                      each. Default: the daemon of the configuration, which is not read otherwise\n"
          "  --positions         show the next offset, the end and the lag of each partition of each daemon\n"
          "  --json              print the same for programs\n"
          "\n"
          "Ask a merge too: it has heard of the shards that are not named. A shard that is not named counts as there\n"
          "if a merge has heard of it within the last 30 s.\n"
          "\n"
          "Exit status: 0 if all that were named are ready and belong together, and no layout lacks a shard; 1 if\n"
          "there is a problem, each of which is listed; 2 for a wrong command line.\n",
  .run = run_layout,
};
