/* SPDX-License-Identifier: Apache-2.0 */
/* The state that the files of the catalogue thread share, and what each of them does. Private to catalogue*.c.
 *
 * Calls go down this list only:
 *
 *   catalogue.c                the thread: open, loop, close
 *   catalogue_recover.c        what to do after an error that can be waited out
 *   catalogue_progress.c       caught up, rebuilt, more partitions, room again
 *   catalogue_connect.c        start reading where the store stands
 *   catalogue_discontinuity.c  rebuild or stop when the topic does not continue the store
 *   catalogue_damage.c         partitions with damaged offsets: log, back off, read again
 *   catalogue_gather.c         read records into a batch
 *   catalogue_apply.c          write the batch to store and engine
 *   catalogue_load.c           fill the arenas from the store
 *   catalogue_report_update.c  the report that /status shows
 *   catalogue_state.c          phase, stop flag, item count, watermark
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_CATALOGUE_CATALOGUE_STATE_H
#define DAEMON_CATALOGUE_CATALOGUE_STATE_H

#include "daemon/catalogue/catalogue.h"
#include "daemon/catalogue/catalogue_rebuild.h"
#include "daemon/catalogue/catalogue_topic.h"
#include "daemon/catalogue/item_batch.h"
#include "daemon/catalogue/letter_window.h"
#include "daemon/catalogue/topic_audit.h"
#include "daemon/delivery/age_watch.h"
#include "daemon/pulse.h"

enum { CATALOGUE_POLL_ITEMS = 256, CATALOGUE_LOAD_CHUNK = 4096, CATALOGUE_RETRY_MS = 500 };

/* A place in the broker's log that cannot be read. */
struct damage {
  int32_t partition;
  int64_t next; /* where the partition stands */
  int64_t retry_ns;
  int backoff_ms;
};

/* Those that there are, one of a partition at most: a broken disk has more than one. */
struct damages {
  struct damage *items; /* [n] */
  size_t n;
  size_t capacity;
};

/* What the consumer has met of one. */
struct damage_sighting {
  bool is_there;
  int32_t partition;
  int64_t offset;
};

struct catalogue {
  struct catalogue_context with;
  struct catalogue_topic topic;
  struct topic_audit audit;
  struct catalogue_rebuild rebuild;
  struct letter_window letters;
  struct item_batch batch;
  struct catalogue_record *records; /* [CATALOGUE_POLL_ITEMS] */
  struct region scratch;            /* positions of one batch */
  struct catalogue_report report;
  struct damages damages;
  struct age_watch ages;
  struct pulse pulse;
  int64_t refresh_due_ns;
  int64_t report_due_ns;
  int64_t touch_due_ns;
  int64_t room_due_ns;
  int64_t tidy_due_ns;
  int64_t full_log_due_ns;
  bool has_logged_lost_letters;
  bool must_stop;     /* a policy says so: the newest error is not waited out */
  uint64_t n_unusable; /* stored parts that the models can no longer use */
  _Atomic int phase;
  _Atomic bool is_serving;
  _Atomic bool is_stopping;
  pthread_t thread;
  bool has_thread;
};

bool catalogue_is_stopping(const struct catalogue *c);

/* Enter a phase, or say more about it.
 *
 * problem  why, for people; NULL: nothing to say
 */
void catalogue_set_phase(struct catalogue *c, enum catalogue_phase phase, const char *problem);

/* Items of the catalogue that the log goes into: the served one's, or the one's that is rebuilt. */
uint64_t catalogue_n_target_items(const struct catalogue *c);

/* The positions that were applied, for the watermark, in c->scratch. Those of a held partition are not among them. */
err_t catalogue_list_watermark(struct catalogue *c, struct position **out, size_t *n);

/* catalogue_load.c: fill both arenas from the store, at the start; replace what they hold by what the store has now. */
err_t catalogue_load(struct catalogue *c);
err_t catalogue_replace(struct catalogue *c);

/* Leave out the parts of a stored item that no space can use: the engine would read them in the size that its model
 * has. */
void catalogue_drop_unusable_parts(struct catalogue *c, struct item_change *change);

/* catalogue_damage.c: note what the consumer has met, and return ERR_KAFKA_DAMAGED; go on without the places; look at
 * them again in time. */
err_t catalogue_note_damage(struct catalogue *c, const struct damage_sighting *sighting);
err_t catalogue_retry_damage(struct catalogue *c);
void catalogue_pause_damaged(struct catalogue *c);

/* catalogue_discontinuity.c: the newest failure says that the topic does not continue the store. Begin a rebuild, go on
 * behind the gap (embedded broker), or fail with ERR_DISCONTINUITY (policy `stop`). */
err_t catalogue_handle_discontinuity(struct catalogue *c);

/* catalogue_connect.c: take up the log, waiting for broker and topic as long as it takes.
 *
 * Returns ERR_OK when the log is taken up; ERR_STOPPING when the daemon stops before. */
err_t catalogue_connect(struct catalogue *c);

/* catalogue_gather.c: gather one batch: what is there, and what comes within the publish interval while more keeps
 * coming. A sighting of damage ends the batch, which is good up to there.
 *
 * Returns ERR_DISCONTINUITY; ERR_KAFKA_RETRY when topic or brokers are away. */
err_t catalogue_gather(struct catalogue *c, struct damage_sighting *damage);

/* catalogue_apply.c: store the batch with the positions, then publish it. */
err_t catalogue_apply(struct catalogue *c);

/* catalogue_report_update.c: bring the report up to date, a few times a second. */
err_t catalogue_report_update(struct catalogue *c);

/* catalogue_progress.c: has something come to its end, or is there something new to begin with? */
err_t catalogue_note_progress(struct catalogue *c);

/* catalogue_recover.c: can the thread go on after this error? Then wait it out, and connect again. `err` is the newest
 * failure. Returns as catalogue_connect(). */
bool catalogue_is_recoverable(err_code_t err);
err_t catalogue_recover(struct catalogue *c, err_code_t err);

#endif
