/* SPDX-License-Identifier: Apache-2.0 */
/* Read secrets from systemd's credentials, from files and from the environment. */
#include "daemon/config/config_secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto_close.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/regular_file.h"

enum { NAME_BYTES = 256, PATH_BYTES = 4096 };

enum reference { REFERENCE_NONE, REFERENCE_CREDENTIAL, REFERENCE_FILE, REFERENCE_ENV, REFERENCE_LITERAL };

static const char *const prefixes[] = {
  [REFERENCE_CREDENTIAL] = "credential:",
  [REFERENCE_FILE] = "file:",
  [REFERENCE_ENV] = "env:",
  [REFERENCE_LITERAL] = "literal:",
};

/* Return how the text begins, and what follows that. */
static enum reference split(struct span text, struct span *rest)
{
  for (int i = REFERENCE_CREDENTIAL; i <= REFERENCE_LITERAL; i++) {
    size_t n = strlen(prefixes[i]);
    if (text.n >= n && memcmp(text.p, prefixes[i], n) == 0) {
      *rest = span_of(text.p + n, text.n - n);
      return (enum reference)i;
    }
  }
  *rest = text;
  return REFERENCE_NONE;
}

bool config_secret_is_reference(struct span text)
{
  struct span rest;
  enum reference kind = split(text, &rest);

  return kind != REFERENCE_NONE && kind != REFERENCE_LITERAL;
}

static bool has_word(const char *name, const char *const *words)
{
  for (size_t i = 0; words[i]; i++) {
    if (strstr(name, words[i]))
      return true;
  }
  return false;
}

bool config_secret_is_secret(const char *name, bool is_reference)
{
  static const char *const public[] = { "bootstrap.servers",   "metadata.broker.list",
                                        "client.id",           "client.rack",
                                        "security.protocol",   "sasl.mechanism",
                                        ".location",           "ssl.ca.pem",
                                        "ssl.certificate.pem", NULL };
  static const char *const secret[] = { "password", "secret", ".pem", "sasl.oauthbearer.config", NULL };

  return !has_word(name, public) && (is_reference || has_word(name, secret));
}

/* ---- Files ---- */

/* Read up to n bytes, and return how many there were; -1 on an error. */
static ssize_t read_bytes(int fd, char *to, size_t n)
{
  size_t n_read = 0;

  while (n_read < n) {
    ssize_t got = read(fd, to + n_read, n - n_read);
    if (got < 0)
      return -1;
    if (got == 0)
      break;
    n_read += (size_t)got;
  }
  return (ssize_t)n_read;
}

static void warn_if_readable(const char *path, mode_t mode)
{
  if (mode & S_IROTH)
    log_warn("secret_readable", "file=%s mode=%04o note=\"every user of this machine can read it: chmod o-r\"",
             log_quote(span_of_str(path)), (unsigned)mode & 07777);
}

static err_t open_file(const char *path, int *out)
{
  AUTO(auto_close_fd) int fd = -1;
  struct stat status;

  TRY(regular_file_open(path, &status, &fd));
  if (status.st_size > CONFIG_SECRET_BYTES_MAX)
    FAIL(ERR_CONFIG, "%s has more than %d bytes: is it the right file?", path, CONFIG_SECRET_BYTES_MAX);
  warn_if_readable(path, status.st_mode);
  *out = fd;
  fd = -1;
  return ERR_OK;
}

static err_t read_file(const char *path, char **out)
{
  AUTO(auto_close_fd) int fd = -1;
  AUTO(mem_free) char *text = NULL;

  TRY(open_file(path, &fd));
  TRY(mem_array(CONFIG_SECRET_BYTES_MAX + 1, 1, &text));
  ssize_t n = read_bytes(fd, text, CONFIG_SECRET_BYTES_MAX);
  if (n < 0)
    FAIL(ERR_CONFIG, "%s cannot be read: %s", path, strerror(errno));
  if (memchr(text, 0, (size_t)n))
    FAIL(ERR_CONFIG, "%s contains a zero byte", path);
  if (n > 0 && text[n - 1] == '\n')
    text[--n] = '\0';
  if (n > 0 && text[n - 1] == '\r')
    text[--n] = '\0';
  if (n == 0)
    FAIL(ERR_CONFIG, "%s is empty", path);
  *out = text;
  text = NULL;
  return ERR_OK;
}

/* ---- The places ---- */

static err_t copy_name(struct span rest, const char *what, char name[NAME_BYTES])
{
  if (rest.n == 0 || rest.n >= NAME_BYTES || memchr(rest.p, '/', rest.n))
    FAIL(ERR_CONFIG, "%s is not the name of %s", log_quote(rest), what);
  snprintf(name, NAME_BYTES, "%.*s", (int)rest.n, (const char *)rest.p);
  return ERR_OK;
}

static err_t read_credential(struct span rest, char **out)
{
  const char *directory = getenv("CREDENTIALS_DIRECTORY");
  char name[NAME_BYTES];
  char path[PATH_BYTES];

  TRY(copy_name(rest, "a credential", name));
  if (!directory)
    FAIL(ERR_CONFIG,
         "credential:%s is not there, because CREDENTIALS_DIRECTORY is not set: systemd sets it for the service, with "
         "LoadCredential=%s:PATH; elsewhere set it to a folder that has the file %s",
         name, name, name);
  snprintf(path, sizeof path, "%s/%s", directory, name);
  err_code_t err = read_file(path, out);
  if (err == ERR_CONFIG)
    FAIL(err, "credential:%s: %s; give it to the service with LoadCredential=%s:PATH", name, err_message(), name);
  return err;
}

static err_t read_reference_file(const char *directory, struct span rest, char **out)
{
  char path[PATH_BYTES];
  bool is_absolute = rest.n > 0 && rest.p[0] == '/';

  if (rest.n == 0 || rest.n >= PATH_BYTES - strlen(directory))
    FAIL(ERR_CONFIG, "file: needs the path of a file");
  snprintf(path, sizeof path, "%s%.*s", is_absolute ? "" : directory, (int)rest.n, (const char *)rest.p);
  err_code_t err = read_file(path, out);
  if (err == ERR_CONFIG)
    FAIL(err, "file: %s; write the value to it, readable for this process (user id %u)", err_message(),
         (unsigned)geteuid());
  return err;
}

static err_t read_environment(struct span rest, char **out)
{
  char name[NAME_BYTES];

  TRY(copy_name(rest, "a variable", name));
  const char *value = getenv(name);
  if (!value || !*value)
    FAIL(ERR_CONFIG, "env:%s: the environment has no variable %s, or it is empty: set it for this process", name, name);
  if (strlen(value) > CONFIG_SECRET_BYTES_MAX)
    FAIL(ERR_CONFIG, "env:%s has more than %d bytes", name, CONFIG_SECRET_BYTES_MAX);
  return mem_copy_str(value, out);
}

err_t config_secret_read(const char *directory, struct span text, char **out)
{
  struct span rest;

  switch (split(text, &rest)) {
  case REFERENCE_CREDENTIAL:
    return read_credential(rest, out);
  case REFERENCE_FILE:
    return read_reference_file(directory, rest, out);
  case REFERENCE_ENV:
    return read_environment(rest, out);
  case REFERENCE_NONE:
  case REFERENCE_LITERAL:
    break;
  }
  return mem_copy(rest, out);
}
