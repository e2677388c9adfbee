/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl rebuild: show a rebuild of the catalogue, or accept it. */
#include "daemon/ctl/status/ctl_rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/catalogue/catalogue_rebuild.h"
#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_option.h"

enum { PATH_BYTES = 4200, PERIOD_MS = 100, WAIT_MS = 60000 };

void ctl_rebuild_print(const json_t *rebuild, FILE *out)
{
  const char *reason = json_string_value(json_object_get(rebuild, "reason"));
  bool waits = json_is_true(json_object_get(rebuild, "waits"));

  if (!json_is_object(rebuild))
    return;
  fprintf(out, "rebuild    number %" PRIu64 ": %s items so far; the %s items of the old catalogue are served\n",
          ctl_json_count(rebuild, "number"), ctl_format_count(ctl_json_count(rebuild, "items")).s,
          ctl_format_count(ctl_json_count(rebuild, "live_items")).s);
  if (waits)
    fputs("           it WAITS for `sluicectl rebuild accept`\n", out);
  if (reason && *reason)
    fprintf(out, "           %s\n", reason);
}

err_t ctl_rebuild_waiting(const json_t *rebuild, uint64_t *number)
{
  if (!json_is_object(rebuild))
    FAIL(ERR_SYSTEM, "there is no rebuild to accept");
  if (!json_is_true(json_object_get(rebuild, "waits")))
    FAIL(ERR_SYSTEM, "rebuild %" PRIu64 " needs no acceptance: it goes on by itself",
         ctl_json_count(rebuild, "number"));
  *number = ctl_json_count(rebuild, "number");
  return ERR_OK;
}

static err_t fail_write(const char *path, int reason)
{
  FAIL(ERR_SYSTEM, "%s cannot be written: %s%s", path, strerror(reason),
       reason == EACCES || reason == EPERM ? "; only users who may write to the store may accept" : "");
}

static err_t write_file(const char *path, uint64_t number)
{
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  int n = fd < 0 ? -1 : dprintf(fd, "%" PRIu64 "\n", number);
  int reason = errno;

  /* The daemon runs as another user: make the file readable whatever the umask is. */
  if (n > 0 && (fchmod(fd, 0644) != 0 || fsync(fd) != 0)) {
    n = -1;
    reason = errno;
  }
  if (fd >= 0)
    close(fd);
  return n > 0 ? ERR_OK : fail_write(path, reason);
}

err_t ctl_rebuild_write(const char *store_path, uint64_t number)
{
  char path[PATH_BYTES], temporary[PATH_BYTES];

  snprintf(path, sizeof path, "%.4000s/%s", store_path, CATALOGUE_REBUILD_FILE);
  snprintf(temporary, sizeof temporary, "%.4000s/.%s.%ld", store_path, CATALOGUE_REBUILD_FILE, (long)getpid());
  err_code_t err = write_file(temporary, number);
  if (err == ERR_OK && rename(temporary, path) != 0)
    err = fail_write(path, errno);
  if (err != ERR_OK)
    unlink(temporary);
  return err;
}

/* Wait until the daemon serves the new catalogue: then its status shows no rebuild, or another one. */
static err_t await_taken(struct ctl_context *ctx, uint64_t number)
{
  int64_t until_ns = clock_now_ns() + WAIT_MS * CLOCK_NS_PER_MS;

  while (clock_now_ns() < until_ns) {
    AUTO(ctl_json_close) json_t *status = NULL;
    TRY(http_get_status(ctx->http, &status));
    const json_t *rebuild = json_object_get(status, "rebuild");
    if (!json_is_object(rebuild) || ctl_json_count(rebuild, "number") != number) {
      printf("the new catalogue is served: %s items\n", ctl_format_count(ctl_json_count(status, "items")).s);
      return ERR_OK;
    }
    clock_sleep_ns(PERIOD_MS * CLOCK_NS_PER_MS);
  }
  FAIL(ERR_SYSTEM, "rebuild %" PRIu64 " was accepted but is not served after %d s: look at the daemon's log", number,
       WAIT_MS / 1000);
}

static err_t run_rebuild(const struct ctl_options *options, int argc, char **argv)
{
  static const struct ctl_option none[] = { { 0 } };
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  AUTO(ctl_json_close) json_t *status = NULL;
  uint64_t number;

  TRY(ctl_option_take(none, NULL, argc, argv));
  bool accepts = argc - optind == 1 && strcmp(argv[optind], "accept") == 0;
  if (argc != optind && !accepts)
    FAIL(ERR_USAGE, "rebuild expects no argument, or the word accept");
  TRY(ctl_context_open_for_http(options, &ctx));
  TRY(ctl_context_verify_catalogue(ctx->config));
  TRY(http_get_status(ctx->http, &status));
  const json_t *rebuild = json_object_get(status, "rebuild");
  ctl_rebuild_print(rebuild, stdout);
  if (!accepts && !json_is_object(rebuild))
    puts("no rebuild is under way");
  if (!accepts)
    return ERR_OK;
  TRY(ctl_rebuild_waiting(rebuild, &number));
  TRY(ctl_rebuild_write(ctx->config->store_path, number));
  return await_taken(ctx, number);
}

const struct ctl_command ctl_rebuild_command = {
  .name = "rebuild",
  .arguments = "[accept]",
  .summary = "show the progress of a rebuild of the catalogue, or accept it",
  .help = "If the catalogue topic does not continue what the daemon has seen, the daemon builds a new catalogue\n"
          "while it serves the old one, and switches when the new one is complete. If the new catalogue is much\n"
          "smaller (catalogue.rebuild_min_percent) or comes from another cluster, the daemon first waits until a\n"
          "person accepts it. Otherwise a wrong broker or an empty topic would empty the catalogue.\n"
          "\n"
          "  accept   serve the new catalogue, and wait until it is served. This writes a file to the store's\n"
          "           directory: run it on the daemon's machine, as a user who may write there\n",
  .run = run_rebuild,
};
