#include "daemon/query_job.h"

#include <pthread.h>

#include "base/mem.h"

struct job_queue {
  pthread_mutex_t mutex;
  pthread_cond_t pushed;
  struct pending_query *queries; /* [n_queries] */
  size_t n_queries;
  struct query_job *jobs; /* [n_jobs] */
  size_t n_jobs;
  struct pending_query **slots; /* arrays of all jobs */
  struct pending_query *free_queries;
  struct query_job *free_jobs;
  struct query_job *first; /* pushed, oldest first */
  struct query_job *last;
  size_t n_pushed;
  size_t n_idle; /* workers that wait */
  bool is_ended;
};

static err_t allocate(struct job_queue *q, size_t n_workers, size_t batch)
{
  q->n_jobs = 3 * n_workers + 1;
  q->n_queries = q->n_jobs * batch;
  TRY(mem_array(q->n_queries, sizeof *q->queries, &q->queries));
  TRY(mem_array(q->n_jobs, sizeof *q->jobs, &q->jobs));
  TRY(mem_array(q->n_jobs * batch, sizeof *q->slots, &q->slots));
  for (size_t i = 0; i < q->n_queries; i++) {
    q->queries[i].next = q->free_queries;
    q->free_queries = &q->queries[i];
  }
  for (size_t i = 0; i < q->n_jobs; i++) {
    q->jobs[i].queries = q->slots + i * batch;
    q->jobs[i].next = q->free_jobs;
    q->free_jobs = &q->jobs[i];
  }
  return ERR_OK;
}

err_t job_queue_open(size_t n_workers, size_t batch, struct job_queue **out)
{
  AUTO(job_queue_close) struct job_queue *q = NULL;

  TRY(mem_array(1, sizeof *q, &q));
  pthread_mutex_init(&q->mutex, NULL);
  pthread_cond_init(&q->pushed, NULL);
  TRY(allocate(q, n_workers, batch));
  *out = q;
  q = NULL;
  return ERR_OK;
}

void job_queue_close(struct job_queue **q)
{
  if (!*q)
    return;
  for (size_t i = 0; (*q)->queries && i < (*q)->n_queries; i++)
    region_fini(&(*q)->queries[i].region);
  pthread_mutex_destroy(&(*q)->mutex);
  pthread_cond_destroy(&(*q)->pushed);
  mem_free(&(*q)->queries);
  mem_free(&(*q)->jobs);
  mem_free(&(*q)->slots);
  mem_free(q);
}

size_t job_queue_n_queries(const struct job_queue *q)
{
  return q->n_queries;
}

struct pending_query *job_queue_take_query(struct job_queue *q)
{
  pthread_mutex_lock(&q->mutex);
  struct pending_query *query = q->free_queries;
  if (query)
    q->free_queries = query->next;
  pthread_mutex_unlock(&q->mutex);
  if (query)
    query->next = NULL;
  return query;
}

struct query_job *job_queue_take_job(struct job_queue *q)
{
  pthread_mutex_lock(&q->mutex);
  struct query_job *job = q->free_jobs;
  if (job)
    q->free_jobs = job->next;
  pthread_mutex_unlock(&q->mutex);
  if (job) {
    job->next = NULL;
    job->n = 0;
  }
  return job;
}

static void put_query(struct job_queue *q, struct pending_query *query)
{
  region_reset(&query->region);
  query->next = q->free_queries;
  q->free_queries = query;
}

void job_queue_free_query(struct job_queue *q, struct pending_query *query)
{
  pthread_mutex_lock(&q->mutex);
  put_query(q, query);
  pthread_mutex_unlock(&q->mutex);
}

void job_queue_free_job(struct job_queue *q, struct query_job *job)
{
  pthread_mutex_lock(&q->mutex);
  for (size_t i = 0; i < job->n; i++)
    put_query(q, job->queries[i]);
  job->next = q->free_jobs;
  q->free_jobs = job;
  pthread_mutex_unlock(&q->mutex);
}

void job_queue_push(struct job_queue *q, struct query_job *job)
{
  pthread_mutex_lock(&q->mutex);
  job->next = NULL;
  if (q->last)
    q->last->next = job;
  else
    q->first = job;
  q->last = job;
  q->n_pushed++;
  pthread_cond_signal(&q->pushed);
  pthread_mutex_unlock(&q->mutex);
}

struct query_job *job_queue_pop(struct job_queue *q)
{
  pthread_mutex_lock(&q->mutex);
  q->n_idle++;
  while (!q->first && !q->is_ended)
    pthread_cond_wait(&q->pushed, &q->mutex);
  q->n_idle--;
  struct query_job *job = q->first;
  if (job) {
    q->first = job->next;
    q->n_pushed--;
    if (!q->first)
      q->last = NULL;
  }
  pthread_mutex_unlock(&q->mutex);
  return job;
}

void job_queue_end(struct job_queue *q)
{
  pthread_mutex_lock(&q->mutex);
  q->is_ended = true;
  pthread_cond_broadcast(&q->pushed);
  pthread_mutex_unlock(&q->mutex);
}

bool job_queue_has_idle_worker(struct job_queue *q)
{
  pthread_mutex_lock(&q->mutex);
  bool has_idle = q->n_idle > q->n_pushed;
  pthread_mutex_unlock(&q->mutex);
  return has_idle;
}
