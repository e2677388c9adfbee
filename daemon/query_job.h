/* Queries on their way through the daemon, in pools of fixed size: when all are in use, the query reader stops polling.
 *
 *   pending query   one decoded query, from its record to its reply
 *   job             a batch of them for one space and method
 *   job queue       from the query reader to the search workers
 *
 * Thread: any; the queue locks.
 */
#ifndef DAEMON_QUERY_JOB_H
#define DAEMON_QUERY_JOB_H

#include "base/query.h"
#include "base/region.h"
#include "ingest/wire.h"

/* Most bytes of a record's key, which the reply has too. */
enum { QUERY_KEY_MAX = 4096 };

struct pending_query {
  struct pending_query *next; /* in a list of the reader, or of the free ones */
  struct region region;       /* everything below points into it */
  struct query query;
  bool has_key;
  bool is_key_too_long; /* then the query is refused, without its key */
  struct span key;      /* of the record: the reply has the same */
  enum wire_format format;
  uint32_t ticket;
  int32_t partition; /* of the record */
  int64_t offset;
  int64_t received_ns;
  int64_t give_up_ns; /* when at_least is no longer waited for */
  size_t space;
  struct method method;
};

struct query_job {
  struct query_job *next;
  struct pending_query **queries; /* [capacity] */
  size_t n;
  int64_t opened_ns;
};

struct job_queue;

/* n_workers  search workers, each of which has a job at hand, one waiting, and one being filled for it
 * batch      queries of a job at most */
err_t job_queue_open(size_t n_workers, size_t batch, struct job_queue **out);
void job_queue_close(struct job_queue **q);

/* Pending queries in all. */
size_t job_queue_n_queries(const struct job_queue *q);

/* A free pending query or job: NULL when all are in use. */
struct pending_query *job_queue_take_query(struct job_queue *q);
struct query_job *job_queue_take_job(struct job_queue *q);

/* Give them back. Giving a job back gives its queries back too. */
void job_queue_free_query(struct job_queue *q, struct pending_query *query);
void job_queue_free_job(struct job_queue *q, struct query_job *job);

/* Hand a job to the workers; one of them pops it. job_queue_pop() waits, and returns NULL once the queue was ended and
 * is empty. */
void job_queue_push(struct job_queue *q, struct query_job *job);
struct query_job *job_queue_pop(struct job_queue *q);
void job_queue_end(struct job_queue *q);

/* Whether a worker waits for a job that no pushed job will keep busy. */
bool job_queue_has_idle_worker(struct job_queue *q);

#endif
