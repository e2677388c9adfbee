/* SPDX-License-Identifier: Apache-2.0 */
/* Recognise that a certificate has changed, also in a file of the same name, and replace it. */
#include "daemon/certificates.h"

#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/regular_file.h"
#include "ingest/kafka/kafka_renewal.h"

enum { N_SECTIONS = 5, FILE_BYTES_MAX = 16 << 20 };

static const struct kafka_properties *section_of(const struct config *c, int i)
{
  const struct kafka_properties *sections[N_SECTIONS] = { &c->kafka, &c->catalogue.kafka, &c->query.kafka,
                                                          &c->query.answer_kafka, &c->seen.kafka };

  return sections[i];
}

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

  for (int s = 0; s < N_SECTIONS; s++) {
    for (size_t i = 0; i < section_of(c, s)->n; i++) {
      const struct kafka_property *p = &section_of(c, s)->items[i];
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
  for (int s = 0; s < N_SECTIONS; s++)
    kafka_renewal_swap(section_of(running, s), section_of(newer, s));
  kafka_renewal_unlock();
  kafka_renewal_begin();
}
