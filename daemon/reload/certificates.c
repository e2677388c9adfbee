/* SPDX-License-Identifier: Apache-2.0 */
/* Recognise that a certificate has changed, also in a file of the same name, and replace it. */
#include "daemon/reload/certificates.h"

#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/regular_file.h"
#include "daemon/config/config_kafka.h"
#include "ingest/kafka/kafka_renewal.h"

enum { FILE_BYTES_MAX = 16 << 20 };

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
  return XXH3_64bits_withSeed(bytes, n, hash);
}

/* Of a folder of authorities, only the time of its newest file that came or went counts. */
static uint64_t hash_file(uint64_t hash, const char *path)
{
  struct stat status;
  char bytes[4096];
  ssize_t n;
  size_t n_left = FILE_BYTES_MAX;
  int fd;

  if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
    return hash_bytes(hash, &status.st_mtim, sizeof status.st_mtim);
  if (regular_file_open(path, &status, &fd) != ERR_OK)
    return hash;
  while (n_left > 0 && (n = read(fd, bytes, sizeof bytes)) > 0) {
    hash = hash_bytes(hash, bytes, (size_t)n);
    n_left -= (size_t)n < n_left ? (size_t)n : n_left;
  }
  close(fd);
  return hash;
}

static bool is_file(const char *property)
{
  const char *dot = strrchr(property, '.');

  return dot && strcmp(dot, ".location") == 0;
}

uint64_t certificates_digest(const struct config *c)
{
  uint64_t hash = 0;

  for (size_t s = 0; s < CONFIG_KAFKA_SECTIONS; s++) {
    const struct kafka_properties *section = config_kafka_properties(c, s);
    for (size_t i = 0; i < section->n; i++) {
      const struct kafka_property *p = &section->items[i];
      if (!kafka_renewal_is_about(p->name))
        continue;
      hash = hash_bytes(hash, p->name, strlen(p->name) + 1);
      hash = hash_bytes(hash, p->value, strlen(p->value) + 1);
      if (is_file(p->name))
        hash = hash_file(hash, p->value);
    }
  }
  return hash;
}

void certificates_renew(const struct config *running, const struct config *newer)
{
  kafka_renewal_lock();
  for (size_t s = 0; s < CONFIG_KAFKA_SECTIONS; s++)
    kafka_renewal_swap(config_kafka_properties(running, s), config_kafka_properties(newer, s));
  kafka_renewal_unlock();
  kafka_renewal_begin();
}
