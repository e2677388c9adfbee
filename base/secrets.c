/* SPDX-License-Identifier: Apache-2.0 */
/* A list of secrets for the process. There are a few, so each text is searched for each of them. */
#include "base/secrets.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

static const char hidden[] = "***";

struct secret {
  struct secret *next;
  char text[];
};

/* Secrets are only added, so a reader needs no lock. */
static _Atomic(struct secret *) first;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static bool is_known(const char *text)
{
  for (const struct secret *s = atomic_load(&first); s; s = s->next) {
    if (strcmp(s->text, text) == 0)
      return true;
  }
  return false;
}

/* Not mem_array(): it sets an error message, and err_set() uses this file. */
static void add(const char *text)
{
  struct secret *s = malloc(sizeof *s + strlen(text) + 1);

  if (!s)
    return;
  strcpy(s->text, text); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): there is room for it */
  s->next = atomic_load(&first);
  atomic_store(&first, s);
}

void secrets_add(const char *secret)
{
  if (strlen(secret) < SECRETS_BYTES_MIN)
    return;
  pthread_mutex_lock(&adding);
  if (!is_known(secret))
    add(secret);
  pthread_mutex_unlock(&adding);
}

static void hide(char *text, const char *secret)
{
  size_t n = strlen(secret);

  for (char *at = text; (at = strstr(at, secret));) {
    memcpy(at, hidden, sizeof hidden - 1);
    at += sizeof hidden - 1;
    memmove(at, at + n - (sizeof hidden - 1), strlen(at + n - (sizeof hidden - 1)) + 1);
  }
}

/* Hide the longest beginning of the secret that the text ends with. */
static void hide_beginning(char *text, const char *secret)
{
  size_t n = strlen(text), n_secret = strlen(secret);

  for (size_t i = size_min(n, n_secret); i > 0; i--) {
    if (memcmp(text + n - i, secret, i) == 0) {
      memset(text + n - i, '*', i);
      return;
    }
  }
}

void secrets_hide(char *text, size_t size)
{
  bool is_cut = strlen(text) + 1 == size;

  for (const struct secret *s = atomic_load(&first); s; s = s->next) {
    hide(text, s->text);
    if (is_cut)
      hide_beginning(text, s->text);
  }
}
