/* SPDX-License-Identifier: Apache-2.0 */
/* A producer for chunks. Few are on their way at a time, so that a large file needs little memory, and no chunk waits
 * in the queue for longer than a message may. */
#include "daemon/ctl/model/ctl_model_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/auto_close.h"
#include "base/mem.h"
#include "ingest/wire/model_chunk.h"
#include "ingest/kafka/sender.h"

enum { ON_THEIR_WAY_MAX = 32, POLL_MS = 100, FLUSH_TIMEOUT_MS = 30000, REASON_BYTES = 256 };

struct upload {
  const char *topic;
  const char *digest;
  struct sender *sender;
  bool has_failed;
  char reason[REASON_BYTES];
};

static void on_report(void *context, const struct sender_report *report)
{
  struct upload *u = context;

  if (report->fate == SENDER_DELIVERED || u->has_failed)
    return;
  u->has_failed = true;
  snprintf(u->reason, sizeof u->reason, "%s", report->reason ? report->reason : "no reason");
}

static err_t open_upload(struct ctl_context *ctx, const char *digest, struct upload *out)
{
  static const struct kafka_property defaults[] = { { "acks", "all" }, { "message.timeout.ms", "30000" } };
  struct kafka_layers layers;

  *out = (struct upload){ .topic = ctx->config->models.files_topic, .digest = digest };
  if (!*out->topic)
    FAIL(ERR_CONFIG, "%s has no models.files_topic: name the topic that carries model files", ctx->config->path);
  TRY(ctl_context_layers(ctx, defaults, 2, &ctx->config->catalogue.kafka, &layers));
  return sender_open(&layers, on_report, out, &out->sender);
}

static err_t verify_sent(const struct upload *u)
{
  if (u->has_failed)
    FAIL(ERR_KAFKA, "topic %s did not take all chunks of %s: %s", u->topic, u->digest, u->reason);
  return ERR_OK;
}

/* Send a chunk, or its tombstone. */
static err_t send(struct upload *u, uint64_t index, bool has_value, struct span value)
{
  char key[MODEL_CHUNK_KEY_BYTES];
  const struct sender_message message = {
    .topic = u->topic,
    .has_key = true,
    .key = model_chunk_key(u->digest, index, key),
    .has_value = has_value,
    .value = value,
  };

  while (sender_n_waiting(u->sender) >= ON_THEIR_WAY_MAX)
    sender_poll(u->sender, POLL_MS);
  TRY(verify_sent(u));
  return sender_send(u->sender, &message);
}

static err_t finish(struct upload *u)
{
  TRY(sender_flush(u->sender, FLUSH_TIMEOUT_MS));
  return verify_sent(u);
}

/* ---- Uploading ---- */

static void free_bytes(uint8_t **bytes)
{
  mem_free(bytes);
}

static err_t open_file(const struct ctl_context *ctx, const char *path, FILE **out, uint64_t *n_bytes)
{
  uint64_t limit = ctx->config->models.max_file_bytes;
  struct stat info;

  *out = fopen(path, "rbe");
  if (!*out || fstat(fileno(*out), &info) != 0)
    FAIL(ERR_USAGE, "%s cannot be read: %s", path, strerror(errno));
  *n_bytes = (uint64_t)info.st_size;
  if (*n_bytes == 0)
    FAIL(ERR_USAGE, "%s is empty", path);
  if (*n_bytes > limit)
    FAIL(ERR_USAGE, "%s has %" PRIu64 " bytes, more than models.max_file_bytes allows, %" PRIu64, path, *n_bytes,
         limit);
  return ERR_OK;
}

static err_t send_file(struct upload *u, FILE *in, const char *path, uint64_t n_bytes)
{
  AUTO(free_bytes) uint8_t *bytes = NULL;

  TRY(mem_array(MODEL_CHUNK_BYTES, 1, &bytes));
  for (uint64_t i = 0; i < model_chunk_count(n_bytes); i++) {
    size_t n = model_chunk_size(n_bytes, i);
    if (fread(bytes, 1, n, in) != n)
      FAIL(ERR_USAGE, "%s cannot be read to its end, or was changed meanwhile", path);
    TRY(send(u, i, true, span_of(bytes, n)));
    if (i == 0) /* The largest one. If the topic does not take it, a smaller one must not stay there. */
      TRY(finish(u));
  }
  return finish(u);
}

err_t ctl_model_files_upload(struct ctl_context *ctx, const char *path, const char *digest, uint64_t *n_bytes)
{
  AUTO(auto_close_file) FILE *in = NULL;
  struct upload u;

  TRY(open_file(ctx, path, &in, n_bytes));
  err_code_t err = open_upload(ctx, digest, &u);
  if (err == ERR_OK)
    err = send_file(&u, in, path, *n_bytes);
  sender_close(&u.sender);
  return err;
}

/* ---- Removing ---- */

static bool is_shared(const struct model_state *state, const struct model_generation *of)
{
  for (size_t i = 0; i < state->n; i++) {
    for (size_t j = 0; j < state->spaces[i].n_generations; j++) {
      const struct model_generation *g = &state->spaces[i].generations[j];
      if (g != of && g->is_in_topic && !g->is_retired && strcmp(g->digest, of->digest) == 0)
        return true;
    }
  }
  return false;
}

static err_t send_tombstones(struct upload *u, uint64_t n_bytes)
{
  for (uint64_t i = 0; i < model_chunk_count(n_bytes); i++)
    TRY(send(u, i, false, span_of(NULL, 0)));
  return finish(u);
}

err_t ctl_model_files_forget(struct ctl_context *ctx, const struct model_state *state,
                             const struct model_generation *generation)
{
  struct upload u;

  if (!generation || !generation->is_in_topic || is_shared(state, generation))
    return ERR_OK;
  err_code_t err = open_upload(ctx, generation->digest, &u);
  if (err == ERR_OK)
    err = send_tombstones(&u, generation->n_bytes);
  sender_close(&u.sender);
  return err;
}
