/* SPDX-License-Identifier: Apache-2.0 */
/* Open each file as the client is about to. A folder is allowed for authorities only. */
#include "ingest/kafka/kafka_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/regular_file.h"

enum { VALUE_BYTES = 4096 };

/* Get a property. Returns false if it has no value. */
static bool get(const rd_kafka_conf_t *conf, const char *name, char value[VALUE_BYTES])
{
  size_t n = VALUE_BYTES;

  *value = '\0';
  return rd_kafka_conf_get(conf, name, value, &n) == RD_KAFKA_CONF_OK && n <= VALUE_BYTES && *value;
}

static err_t verify_folder(const char *path)
{
  DIR *folder = opendir(path);

  if (!folder)
    FAIL(ERR_CONFIG, "%s cannot be opened: %s", path, strerror(errno));
  closedir(folder);
  return ERR_OK;
}

static err_t verify_path(const char *path, bool may_be_folder)
{
  struct stat status;
  int fd;

  if (may_be_folder && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
    return verify_folder(path);
  TRY(regular_file_open(path, &status, &fd));
  close(fd);
  return ERR_OK;
}

static err_t verify_property(const rd_kafka_conf_t *conf, const char *name, bool may_be_folder)
{
  char path[VALUE_BYTES];

  if (!get(conf, name, path) || (may_be_folder && strcmp(path, "probe") == 0)) /* librdkafka looks for authorities */
    return ERR_OK;
  if (verify_path(path, may_be_folder) != ERR_OK)
    FAIL(ERR_CONFIG, "%s: %s; correct the path, or make the file readable for this process (user id %u)", name,
         err_message(), (unsigned)geteuid());
  return ERR_OK;
}

err_t kafka_files_verify(const rd_kafka_conf_t *conf)
{
  char protocol[VALUE_BYTES];

  if (!get(conf, "security.protocol", protocol) || !strstr(protocol, "ssl"))
    return ERR_OK;
  TRY(verify_property(conf, "ssl.ca.location", true));
  TRY(verify_property(conf, "ssl.certificate.location", false));
  TRY(verify_property(conf, "ssl.key.location", false));
  TRY(verify_property(conf, "ssl.crl.location", false));
  return verify_property(conf, "ssl.keystore.location", false);
}
