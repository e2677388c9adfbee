/* SPDX-License-Identifier: Apache-2.0 */
/* Digest, number, root and path are found out and checked before anything is written. */
#include "daemon/ctl/model/ctl_model_add.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "daemon/ctl/model/ctl_model_files.h"
#include "daemon/ctl/model/ctl_model_topic.h"
#include "engine/model/safetensors.h"
#include "engine/similarity/similarity.h"

static err_t digest_of(const char *path, char hex[SHA256_HEX_BYTES])
{
  FILE *in = fopen(path, "rb");

  if (!in)
    FAIL(ERR_SYSTEM, "%s cannot be opened: %s", path, strerror(errno));
  err_code_t err = sha256_file(in, hex);
  fclose(in);
  if (err)
    FAIL(err, "%s has no digest: %s", path, err_message());
  return ERR_OK;
}

/* A file that is no model would use up a number. Whether a daemon can use the model, it says itself. */
static err_t verify_model(const char *path)
{
  AUTO(safetensors_close) struct safetensors *file = NULL;
  const struct similarity *similarity;

  TRY(safetensors_map(path, &file));
  return similarity_of(file, &similarity);
}

/* Choose the number after the largest that was ever used, as the control topic or a daemon says. */
static uint64_t next_generation(const struct ctl_model_request *r)
{
  const struct model_space *said = model_state_find(&r->state, ctl_model_request_space(r));
  uint64_t largest = said && said->n_generations ? said->generations[said->n_generations - 1].number : 1;

  largest = r->largest > largest ? r->largest : largest;
  return (largest > 1 ? largest : 1) + 1;
}

/* Find the generation whose parts the new one uses. 0: it has its own. */
static err_t find_root(const struct ctl_model_request *r, uint32_t *root)
{
  uint32_t from = r->derived_from ? (uint32_t)r->derived_from : ctl_model_request_wanted(r);

  *root = 0;
  if (!r->is_derived)
    return ERR_OK;
  if (from > 1 && !model_state_generation(model_state_find(&r->state, ctl_model_request_space(r)), from))
    FAIL(ERR_USAGE, "--derive: there is no %s@%" PRIu32, r->space, from);
  *root = model_state_root(&r->state, ctl_model_request_space(r), from);
  if (!model_state_uses_parts(&r->state, ctl_model_request_space(r), *root))
    FAIL(ERR_USAGE, "--derive: the parts of %s@%" PRIu32 " are deleted, because it was retired", r->space, *root);
  if (*root >= r->generation)
    FAIL(ERR_USAGE, "--derive: %s@%" PRIu32 " is not earlier than %s@%" PRIu64, r->space, *root, r->space,
         r->generation);
  return ERR_OK;
}

/* A number belongs to one model for ever: items carry parts that were made for it. */
static err_t verify_new(const struct ctl_model_request *r, const char *digest, uint32_t root)
{
  const struct model_generation *known =
      model_state_generation(model_state_find(&r->state, ctl_model_request_space(r)), (uint32_t)r->generation);

  if (known && known->is_retired)
    FAIL(ERR_USAGE, "%s@%" PRIu64 " was retired, and a number is not used again: the next one is %" PRIu64, r->space,
         r->generation, next_generation(r));
  if (known && strcmp(known->digest, digest) != 0)
    FAIL(ERR_USAGE, "%s@%" PRIu64 " is another model, with the digest %s: the next number is %" PRIu64, r->space,
         r->generation, known->digest, next_generation(r));
  if (known && known->derives_from != root)
    FAIL(ERR_USAGE, "%s@%" PRIu64 " was added %s --derive: the next number is %" PRIu64, r->space, r->generation,
         known->derives_from ? "with" : "without", next_generation(r));
  return ERR_OK;
}

/* A daemon may know the number although the control topic does not, because that was created anew. */
static err_code_t verify_row(void *context, const char *daemon, const json_t *row)
{
  const struct ctl_model_request *r = context;
  const char *digest = json_string_value(json_object_get(row, "digest"));

  if (ctl_json_count(row, "generation") == r->generation && digest && strcmp(digest, r->digest) != 0)
    FAIL(ERR_USAGE,
         "%s@%" PRIu64 " is another model for the daemon at %s, with the digest %s: the next number is %" PRIu64,
         r->space, r->generation, daemon, digest, next_generation(r));
  return ERR_OK;
}

/* Find out where the daemons find the file. `absolute` is memory for that. */
static err_t choose_path(struct ctl_model_request *r, char absolute[PATH_MAX])
{
  if (r->uploads && r->path)
    FAIL(ERR_USAGE, "either --path or --upload");
  if (r->uploads)
    return ERR_OK;
  if (!r->path)
    r->path = realpath(r->file, absolute);
  if (!r->path || *r->path != '/')
    FAIL(ERR_USAGE, "--path expects the absolute path where the daemons find the file");
  return ERR_OK;
}

/* An uploaded file is in its topic before the record. A generation that is added again keeps its share. */
static err_t write_add(struct ctl_model_request *r, const char *digest, uint32_t root)
{
  const struct model_generation *known =
      model_state_generation(model_state_find(&r->state, ctl_model_request_space(r)), (uint32_t)r->generation);
  struct model_change change = { .generation = (uint32_t)r->generation,
                                 .digest = span_of_str(digest),
                                 .derives_from = root,
                                 .shadow = known ? known->shadow : 0 };

  if (r->uploads) {
    change.is_in_topic = true;
    TRY(ctl_model_files_upload(r->ctx, r->file, digest, &change.n_bytes));
  } else {
    change.path = span_of_str(r->path);
  }
  return ctl_model_request_write(r, MODEL_ADD, change);
}

/* Somebody else may have taken the number meanwhile: the newest record counts. */
static err_t verify_kept(struct ctl_model_request *r)
{
  model_state_fini(&r->state);
  TRY(ctl_model_topic_read(r->ctx, &r->state));
  const struct model_generation *kept =
      model_state_generation(model_state_find(&r->state, ctl_model_request_space(r)), (uint32_t)r->generation);
  if (!kept || strcmp(kept->digest, r->digest) != 0)
    FAIL(ERR_SYSTEM,
         "%s@%" PRIu64 " was given to another model at the same time%s%s: add this one again, it gets the next number",
         r->space, r->generation, kept ? ", with the digest " : "", kept ? kept->digest : "");
  return ERR_OK;
}

err_t ctl_model_add(struct ctl_model_request *r)
{
  char digest[SHA256_HEX_BYTES], absolute[PATH_MAX];
  uint32_t root;

  if (!r->file)
    FAIL(ERR_USAGE, "model add expects --file");
  TRY(ctl_model_request_verify(r));
  TRY(verify_model(r->file)); /* first: it refuses a device, which may have no end */
  TRY(digest_of(r->file, digest));
  TRY(choose_path(r, absolute));
  TRY(ctl_model_topic_read(r->ctx, &r->state));
  TRY(ctl_model_request_ask(r));
  r->generation = r->generation ? r->generation : next_generation(r);
  TRY(find_root(r, &root));
  TRY(verify_new(r, digest, root));
  r->digest = digest;
  TRY(ctl_model_daemons_visit(&r->daemons, r->space, verify_row, r));
  TRY(write_add(r, digest, root));
  TRY(ctl_model_request_await(r, ctl_model_request_is_loaded, (int64_t)r->timeout_s));
  TRY(verify_kept(r));
  printf("%s@%" PRIu64 " is ready: %s\n", r->space, r->generation, digest);
  return ERR_OK;
}
