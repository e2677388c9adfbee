/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the tensor that the exporter probably forgot to rename, and words the hint. */
#include "engine/model/tensor_hint.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/edit_distance.h"
#include "base/log.h"

/* A similar name must share this many bytes of the layer's name, besides the layer's number and the kind of tensor. */
enum { LIKE_BYTES_MIN = 4, NAMES_LISTED = 3, TYPOS_MAX = 2 };

/* The top-level modules of the authors' Mixture-of-Logits. A tensor below one of them already has its final name. */
static const char *const roots[] = { "_query_embeddings_fn.", "_item_embeddings_fn.", "_gating_fn." };

static bool is_renamed(const char *name)
{
  for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
    if (strncmp(name, roots[i], strlen(roots[i])) == 0)
      return true;
  }
  return false;
}

static size_t common_suffix(const char *a, const char *b)
{
  size_t n_a = strlen(a), n_b = strlen(b), n = 0;

  while (n < n_a && n < n_b && a[n_a - 1 - n] == b[n_b - 1 - n])
    n++;
  return n;
}

/* The length of a suffix like ".1.weight", which many layers share. */
static size_t tail_bytes(const char *name)
{
  const char *dot = strrchr(name, '.');
  size_t n = strlen(name);

  if (!dot)
    return 0;
  while (dot > name && isdigit((unsigned char)dot[-1]))
    dot--;
  if (dot > name && dot[-1] == '.')
    dot--;
  return n - (size_t)(dot - name);
}

/* Return the tensor whose name has the longest common suffix with the missing one, or NULL if none is similar enough.
 */
static const char *find_like(const struct safetensors *file, const char *missing)
{
  size_t longest = tail_bytes(missing) + LIKE_BYTES_MIN - 1;
  const char *like = NULL;

  for (const char *name = NULL; (name = safetensors_next_tensor(file, name));) {
    size_t n = is_renamed(name) ? 0 : common_suffix(name, missing);
    if (n > longest) {
      longest = n;
      like = name;
    }
  }
  return like;
}

static bool has_digits_of(const char *a, const char *b)
{
  static const char digits[] = "0123456789";

  for (a += strcspn(a, digits), b += strcspn(b, digits); *a && *a == *b;) {
    a++;
    b++;
    a += strcspn(a, digits);
    b += strcspn(b, digits);
  }
  return *a == *b;
}

static const char *last_word(const char *name)
{
  const char *dot = strrchr(name, '.');

  return dot ? dot + 1 : name;
}

/* Is the name the missing one with a typing error? Names of layers differ by their numbers, and a "_w" and a "_b" by a
 * letter. */
static bool is_misspelt(const char *name, const char *missing)
{
  const char *word = last_word(missing);

  return has_digits_of(name, missing) && edit_distance(name, missing) <= TYPOS_MAX &&
         edit_distance(last_word(name), word) * 3 <= strlen(word);
}

static const char *find_misspelt(const struct safetensors *file, const char *missing)
{
  for (const char *name = NULL; (name = safetensors_next_tensor(file, name));) {
    if (is_misspelt(name, missing))
      return name;
  }
  return NULL;
}

/* Return the tensor that has the missing name below a wrapper module, like "module.W" for "W". */
static const char *find_wrapped(const struct safetensors *file, const char *missing)
{
  size_t n = strlen(missing);

  for (const char *name = NULL; (name = safetensors_next_tensor(file, name));) {
    size_t n_name = strlen(name);
    if (n_name > n + 1 && name[n_name - n - 1] == '.' && strcmp(name + n_name - n, missing) == 0)
      return name;
  }
  return NULL;
}

static void print_names(const struct safetensors *file, char text[TENSOR_HINT_MAX])
{
  size_t n = 0, at = 0;

  for (const char *name = NULL; (name = safetensors_next_tensor(file, name)); n++) {
    if (n < NAMES_LISTED)
      at += (size_t)snprintf(text + at, TENSOR_HINT_MAX - at, "%s%.120s", n ? ", " : "; the file has ",
                             log_quote(span_of_str(name)));
  }
  if (n > NAMES_LISTED)
    at += (size_t)snprintf(text + at, TENSOR_HINT_MAX - at, " and %zu more", n - NAMES_LISTED);
  snprintf(text + at, TENSOR_HINT_MAX - at, "%s", n ? " (docs/models.md has the names)" : "; the file has none");
}

void tensor_hint_print(const struct safetensors *file, const char *missing, char text[TENSOR_HINT_MAX])
{
  const char *wrapped = find_wrapped(file, missing), *misspelt = find_misspelt(file, missing);
  const char *like = misspelt ? misspelt : find_like(file, missing);

  if (wrapped)
    snprintf(text, TENSOR_HINT_MAX, "; the file has %s: take the prefix %s off the names, as docs/models.md does",
             log_quote(span_of_str(wrapped)), log_quote(span_of(wrapped, strlen(wrapped) - strlen(missing))));
  else if (like)
    snprintf(text, TENSOR_HINT_MAX, "; the file has %s, which looks like it: rename it, as docs/models.md does",
             log_quote(span_of_str(like)));
  else
    print_names(file, text);
}
