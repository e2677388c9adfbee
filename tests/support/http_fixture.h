/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server for tests, on a loopback port: it keeps the newest request, and answers as it is told. To be included
 * after cmocka.h. */
#ifndef TESTS_SUPPORT_HTTP_FIXTURE_H
#define TESTS_SUPPORT_HTTP_FIXTURE_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HTTP_FIXTURE_REQUEST_MAX = 1 << 20 };

/* What a server does with a request: answer it, close the connection, or nothing. */
enum http_fixture_mode { HTTP_FIXTURE_ANSWERS, HTTP_FIXTURE_CLOSES, HTTP_FIXTURE_HANGS };

struct http_fixture {
  int listener;
  char url[64];
  _Atomic enum http_fixture_mode mode;
  _Atomic int status;
  _Atomic int n_busy;           /* the first so many requests get 503 instead */
  _Atomic(const char *) answer; /* body */
  _Atomic int n_requests;
  pthread_mutex_t lock;
  char newest[HTTP_FIXTURE_REQUEST_MAX + 1];  /* the newest request, under the lock */
  char request[HTTP_FIXTURE_REQUEST_MAX + 1]; /* the test's copy of it */
  char received[HTTP_FIXTURE_REQUEST_MAX + 1];
  _Atomic bool is_stopping;
  pthread_t thread;
};

/* Return a copy of the newest request, valid until the next call; "": there was none. Thread: the test's. */
static inline char *http_fixture_request(struct http_fixture *f)
{
  pthread_mutex_lock(&f->lock);
  strcpy(f->request, f->newest);
  pthread_mutex_unlock(&f->lock);
  return f->request;
}

static inline void http_fixture_keep(struct http_fixture *f)
{
  pthread_mutex_lock(&f->lock);
  strcpy(f->newest, f->received);
  pthread_mutex_unlock(&f->lock);
  atomic_fetch_add(&f->n_requests, 1);
}

/* Return the body of a request that is complete; NULL: more is to come. */
static inline char *http_fixture_body(char *request)
{
  const char *length = strstr(request, "Content-Length: ");
  char *body = strstr(request, "\r\n\r\n");
  size_t n = length ? strtoul(length + 16, NULL, 10) : 0; /* a GET has no body */

  return body && strlen(body + 4) >= n ? body + 4 : NULL;
}

static inline void http_fixture_serve(struct http_fixture *f, int client)
{
  char head[128];
  const char *answer;
  size_t n = 0;
  ssize_t got;

  while ((got = recv(client, f->received + n, HTTP_FIXTURE_REQUEST_MAX - n, 0)) > 0) {
    n += (size_t)got;
    f->received[n] = '\0';
    if (!http_fixture_body(f->received))
      continue;
    n = 0;
    http_fixture_keep(f);
    while (atomic_load(&f->mode) == HTTP_FIXTURE_HANGS && !atomic_load(&f->is_stopping))
      usleep(1000);
    if (atomic_load(&f->mode) != HTTP_FIXTURE_ANSWERS)
      return;
    answer = atomic_load(&f->answer);
    snprintf(head, sizeof head, "HTTP/1.1 %d Status\r\nContent-Length: %zu\r\n\r\n",
             f->n_requests <= f->n_busy ? 503 : atomic_load(&f->status), strlen(answer));
    if (send(client, head, strlen(head), MSG_NOSIGNAL) < 0 || send(client, answer, strlen(answer), MSG_NOSIGNAL) < 0)
      return;
  }
}

static inline void *http_fixture_run(void *context)
{
  struct http_fixture *f = context;
  int client;

  while ((client = accept(f->listener, NULL, NULL)) >= 0) {
    http_fixture_serve(f, client);
    close(client);
  }
  return NULL;
}

static inline void http_fixture_init(struct http_fixture *f)
{
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t size = sizeof address;

  memset(f, 0, sizeof *f);
  pthread_mutex_init(&f->lock, NULL);
  f->status = 200;
  f->answer = "{}";
  f->listener = socket(AF_INET, SOCK_STREAM, 0);
  assert_true(f->listener >= 0);
  assert_int_equal(bind(f->listener, (struct sockaddr *)&address, size), 0);
  assert_int_equal(listen(f->listener, 8), 0);
  assert_int_equal(getsockname(f->listener, (struct sockaddr *)&address, &size), 0);
  snprintf(f->url, sizeof f->url, "http://127.0.0.1:%d/v1/traces", ntohs(address.sin_port));
  assert_int_equal(pthread_create(&f->thread, NULL, http_fixture_run, f), 0);
}

/* Close the client's connection first: the server waits for its next request. */
static inline void http_fixture_fini(struct http_fixture *f)
{
  atomic_store(&f->is_stopping, true);
  shutdown(f->listener, SHUT_RDWR);
  pthread_join(f->thread, NULL);
  close(f->listener);
  pthread_mutex_destroy(&f->lock);
}

#endif
