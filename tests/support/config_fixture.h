/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the configuration share: a file that is written for each case, and read or refused. */
#ifndef TESTS_SUPPORT_CONFIG_FIXTURE_H
#define TESTS_SUPPORT_CONFIG_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/item.h"
#include "daemon/config/config.h"
#include "daemon/config/config_settings.h"
#include "tests/support/dice.h"

#ifndef SLUICE_SOURCE_DIR
#define SLUICE_SOURCE_DIR "."
#endif

/* The required settings. A valid file is these, after lines with the settings under test. */
#define KAFKA  "kafka: {bootstrap.servers: 'h:1'}\n"
#define STORE  "store: {path: s}\n"
#define SPACES "spaces: {books: {model: m.safetensors}}\n"
#define REST   KAFKA STORE SPACES

enum { FUZZ_ROUNDS = 1000, TEXT_BYTES = 8192 };

static char directory[] = "/tmp/sluice-config-XXXXXX";

static char path[64];

static inline void write_bytes(const void *bytes, size_t n)
{
  FILE *file = fopen(path, "w");

  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  fclose(file);
}

static inline struct config *open_text(const char *text)
{
  struct config *c = NULL;

  write_bytes(text, strlen(text));
  if (config_open(path, &c) != ERR_OK)
    fail_msg("refused: %s\n%s", err_message(), text);
  return c;
}

/* Verify that the file is refused. The message must begin with "path:line:" (line 0: "path:") and have both words. */
static inline void assert_refused(const char *text, int line, const char *word, const char *other_word)
{
  struct config *c = NULL;
  char prefix[128];

  write_bytes(text, strlen(text));
  if (config_open(path, &c) != ERR_CONFIG)
    fail_msg("not refused:\n%s", text);
  assert_null(c);
  if (line)
    snprintf(prefix, sizeof prefix, "%s:%d: ", path, line);
  else
    snprintf(prefix, sizeof prefix, "%s: ", path);
  if (strncmp(err_message(), prefix, strlen(prefix)) != 0 || !strstr(err_message(), word) ||
      !strstr(err_message(), other_word))
    fail_msg("expected %s...%s...%s, got: %s", prefix, word, other_word, err_message());
}

static inline void *field_of(struct config *c, const struct setting *s)
{
  return setting_is_in_space(s) ? (char *)&c->spaces[0] + s->offset : (char *)c + s->offset;
}

static inline char *read_all(const char *file_path, size_t *n)
{
  FILE *file = fopen(file_path, "r");
  char *text = calloc(1, 1 << 20);

  if (!file)
    fail_msg("%s cannot be read", file_path);
  *n = fread(text, 1, (1 << 20) - 1, file);
  fclose(file);
  return text;
}

static inline int make_directory(void **state)
{
  (void)state;
  if (!mkdtemp(directory))
    return -1;
  snprintf(path, sizeof path, "%s/c.yaml", directory);
  return 0;
}

static inline int remove_directory(void **state)
{
  (void)state;
  unlink(path);
  return rmdir(directory);
}

#endif
