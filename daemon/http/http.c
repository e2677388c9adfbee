/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP endpoint on libmicrohttpd: answers, limits on connections, and the thread. */
#include "daemon/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/http/pages/data_page.h"
#include "daemon/http/http_hosts.h"
#include "daemon/http/http_trial.h"
#include "daemon/http/metrics.h"
#include "daemon/http/pages/page.h"
#include "daemon/http/status_json.h"

/* A connection that we shut down still counts for the library until it closes it, a little later. So there are slots
 * for twice as many. */
enum { SLOTS = 2 * HTTP_CONNECTIONS_MAX, STEP_MS = 250 };

struct slot {
  bool is_used;
  bool is_shut;
  int fd;
  int64_t begun_ns; /* when the connection was opened, or its previous answer ended */
};

struct http {
  struct MHD_Daemon *server;
  struct status *status;
  struct http_hosts hosts;
  struct http_trial trial;
  struct slot slots[SLOTS]; /* used by the thread only */
  int stop_fd;              /* an eventfd */
  pthread_t thread;
  bool has_thread;
};

/* ---- Answers ---- */

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned code, const char *type, const char *text,
                               enum MHD_ResponseMemoryMode mode)
{
  struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, mode);
  enum MHD_Result result;

  if (!response)
    return MHD_NO;
  MHD_add_response_header(response, "Content-Type", type);
  MHD_add_response_header(response, "Cache-Control", "no-store");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "Content-Security-Policy",
                          "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
                          "frame-ancestors 'none'; base-uri 'none'; form-action 'self'");
  if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
    MHD_add_response_header(response, "Allow", "GET, HEAD");
  result = MHD_queue_response(connection, code, response);
  MHD_destroy_response(response);
  return result;
}

static enum MHD_Result respond_text(struct MHD_Connection *connection, unsigned code, const char *text)
{
  return respond(connection, code, "text/plain; charset=utf-8", text, MHD_RESPMEM_MUST_COPY);
}

static enum MHD_Result respond_made(struct MHD_Connection *connection, const char *type, char *text)
{
  return text ? respond(connection, MHD_HTTP_OK, type, text, MHD_RESPMEM_MUST_FREE) : MHD_NO;
}

static enum MHD_Result respond_text_made(struct MHD_Connection *connection, unsigned code, char *text)
{
  return text ? respond(connection, code, "text/plain; charset=utf-8", text, MHD_RESPMEM_MUST_FREE) : MHD_NO;
}

static enum MHD_Result respond_ready(struct MHD_Connection *connection, const char *not_ready)
{
  char text[512];

  if (!not_ready)
    return respond_text(connection, MHD_HTTP_OK, "ready\n");
  snprintf(text, sizeof text, "not ready: %s\n", not_ready);
  return respond_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, text);
}

static int fd_of(struct MHD_Connection *connection)
{
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static bool may_see_data(const struct http *h, struct MHD_Connection *connection)
{
  bool is_known = http_hosts_know(&h->hosts, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"));

  return data_page_is_allowed(h->status, fd_of(connection), is_known);
}

static enum MHD_Result respond_data(struct MHD_Connection *connection, const struct data_page *page)
{
  const char *type = page->code == MHD_HTTP_OK ? "application/json" : "text/plain; charset=utf-8";

  return page->text ? respond(connection, page->code, type, page->text, MHD_RESPMEM_MUST_FREE) : MHD_NO;
}

static enum MHD_Result respond_asset(struct MHD_Connection *connection, const char *type, const char *text)
{
  return respond(connection, MHD_HTTP_OK, type, text, MHD_RESPMEM_PERSISTENT);
}

/* Answer what is the same whatever the role. Returns false for another page. */
static bool respond_common(struct MHD_Connection *connection, const char *url, enum MHD_Result *result)
{
  if (strcmp(url, "/page.css") == 0)
    *result = respond_asset(connection, "text/css; charset=utf-8", page_css);
  else if (strcmp(url, "/page.js") == 0)
    *result = respond_asset(connection, "text/javascript; charset=utf-8", page_js);
  else if (strcmp(url, "/healthz") == 0)
    *result = respond_text(connection, MHD_HTTP_OK, "ok\n");
  else
    return false;
  return true;
}

/* The time of the connection begins again: the request was read, and the search takes TRIAL_WAIT_S at most. */
static void renew_time(struct MHD_Connection *connection)
{
  struct slot *slot = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

  if (slot)
    slot->begun_ns = clock_now_ns();
}

static enum MHD_Result respond_trial(struct http *h, struct MHD_Connection *connection, bool is_head)
{
  struct data_page page;

  if (!h->status->trial)
    return respond_text(connection, MHD_HTTP_NOT_FOUND, "no queries can be tried here: see http.try_queries\n");
  if (!may_see_data(h, connection))
    return respond_text(connection, MHD_HTTP_FORBIDDEN, "the daemon's setting http.data does not allow this page\n");
  if (!http_trial_take(&h->trial, connection, &page) &&
      !http_trial_serve(&h->trial, h->status, connection, is_head, &page)) {
    renew_time(connection);
    return MHD_YES;
  }
  return page.text ? respond(connection, page.code, "text/html; charset=utf-8", page.text, MHD_RESPMEM_MUST_FREE)
                   : MHD_NO;
}

static enum MHD_Result respond_other(const struct http *h, struct MHD_Connection *connection, const char *url)
{
  const struct other_pages *pages = h->status->other;
  const char *not_ready = readiness_reason(h->status->readiness);

  if (strcmp(url, "/") == 0)
    return respond_made(connection, "text/html; charset=utf-8", pages->page(pages->context, not_ready));
  if (strcmp(url, "/readyz") == 0)
    return respond_text_made(connection, not_ready ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK,
                             pages->ready(pages->context, not_ready));
  if (strcmp(url, "/status") == 0)
    return respond_made(connection, "application/json", pages->status(pages->context, not_ready));
  if (strcmp(url, "/metrics") == 0)
    return respond_made(connection, "text/plain; version=0.0.4", pages->metrics(pages->context, not_ready));
  return respond_text(connection, MHD_HTTP_NOT_FOUND, "not found: try /, /healthz, /readyz, /status or /metrics\n");
}

static enum MHD_Result respond_page(struct http *h, struct MHD_Connection *connection, const char *url)
{
  struct data_page page;

  if (strcmp(url, "/") == 0)
    return respond_made(connection, "text/html; charset=utf-8", page_html(h->status, may_see_data(h, connection)));
  if (strcmp(url, "/readyz") == 0)
    return respond_ready(connection, readiness_reason(h->status->readiness));
  if (strcmp(url, "/status") == 0)
    return respond_made(connection, "application/json", status_json(h->status, may_see_data(h, connection)));
  if (strcmp(url, "/metrics") == 0)
    return respond_made(connection, "text/plain; version=0.0.4", metrics_text(h->status));
  if (data_page_make(h->status, url, may_see_data(h, connection), &page))
    return respond_data(connection, &page);
  return respond_text(connection, MHD_HTTP_NOT_FOUND, "not found: try /, /healthz, /readyz, /status or /metrics\n");
}

/* Leave URLs as they were sent: the library would cut one at a coded zero. */
static size_t leave_coded(void *context, struct MHD_Connection *connection, char *text)
{
  (void)context;
  (void)connection;
  return strlen(text);
}

/* The library calls this when the headers are complete, and again when the body is. Errors are answered at the first
 * call: that closes the connection, so the body need not be read. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **request)
{
  struct http *h = context;

  (void)version;
  (void)upload;
  if (!http_hosts_serve(&h->hosts, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host")))
    return respond_text(connection, MHD_HTTP_MISDIRECTED_REQUEST, "this host is not in http.hosts\n");
  if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) /* for HEAD, the library sends no body */
    return respond_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are supported\n");
  if (!*request || *upload_size) {
    *request = h; /* anything but NULL */
    *upload_size = 0;
    return MHD_YES;
  }
  enum MHD_Result result;
  if (respond_common(connection, url, &result))
    return result;
  if (h->status->other)
    return respond_other(h, connection, url);
  if (strcmp(url, "/try") == 0)
    return respond_trial(h, connection, strcmp(method, "HEAD") == 0);
  return respond_page(h, connection, url);
}

/* ---- Connections ---- */

/* End a connection. The library notices and closes it. */
static void shut(struct slot *slot)
{
  slot->is_shut = true;
  shutdown(slot->fd, SHUT_RDWR);
}

static void shut_oldest_beyond_max(struct http *h)
{
  struct slot *oldest = NULL;
  size_t n = 0;

  for (size_t i = 0; i < SLOTS; i++) {
    struct slot *slot = &h->slots[i];
    if (!slot->is_used || slot->is_shut)
      continue;
    n++;
    if (!oldest || slot->begun_ns < oldest->begun_ns)
      oldest = slot;
  }
  if (n > HTTP_CONNECTIONS_MAX)
    shut(oldest);
}

static void shut_late(struct http *h)
{
  int64_t begun_before_ns = clock_now_ns() - HTTP_REQUEST_S * CLOCK_NS_PER_S;

  for (size_t i = 0; i < SLOTS; i++) {
    struct slot *slot = &h->slots[i];
    if (slot->is_used && !slot->is_shut && slot->begun_ns < begun_before_ns)
      shut(slot);
  }
}

static void on_connection(void *context, struct MHD_Connection *connection, void **slot_of,
                          enum MHD_ConnectionNotificationCode code)
{
  struct http *h = context;
  struct slot *slot = *slot_of;
  size_t i = 0;

  if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
    if (slot)
      slot->is_used = false;
    return;
  }
  while (i < SLOTS - 1 && h->slots[i].is_used) /* one is free: the library allows SLOTS connections */
    i++;
  h->slots[i] = (struct slot){ .is_used = true, .fd = fd_of(connection), .begun_ns = clock_now_ns() };
  *slot_of = &h->slots[i];
  shut_oldest_beyond_max(h);
}

/* The connection stays open. The time of its next request begins now. */
static void on_answered(void *context, struct MHD_Connection *connection, void **request,
                        enum MHD_RequestTerminationCode code)
{
  struct http *h = context;
  struct data_page page;

  (void)request;
  (void)code;
  if (http_trial_take(&h->trial, connection, &page)) /* the client left before it could get the page */
    free(page.text);
  renew_time(connection);
}

static int step_ms(struct http *h)
{
  MHD_UNSIGNED_LONG_LONG ms;

  return MHD_get_timeout(h->server, &ms) == MHD_YES && ms < STEP_MS ? (int)ms : STEP_MS;
}

static void *serve(void *context)
{
  struct http *h = context;
  struct pollfd fds[] = {
    { .fd = MHD_get_daemon_info(h->server, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, .events = POLLIN },
    { .fd = h->stop_fd, .events = POLLIN },
    { .fd = h->status->trial ? trial_fd(h->status->trial) : -1, .events = POLLIN },
  };

  pthread_setname_np(pthread_self(), "http");
  while (!fds[1].revents) {
    poll(fds, 3, step_ms(h));
    http_trial_step(&h->trial, h->status);
    MHD_run(h->server);
    shut_late(h);
  }
  http_trial_end(&h->trial, h->status);
  return NULL;
}

/* ---- Opening ---- */

/* Parse "address:port" or "[address]:port". No name server is asked. */
static err_t resolve(const char *listen, struct addrinfo **out)
{
  struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE, .ai_socktype = SOCK_STREAM };
  char host[128];
  const char *colon = strrchr(listen, ':');
  const char *begin = listen;
  size_t n = colon ? (size_t)(colon - listen) : 0;

  if (n >= 2 && listen[0] == '[' && listen[n - 1] == ']') {
    begin++;
    n -= 2;
  }
  if (!colon || n >= sizeof host)
    FAIL(ERR_CONFIG, "http.listen is \"%s\", not of the form address:port, such as 127.0.0.1:8321", listen);
  snprintf(host, sizeof host, "%.*s", (int)n, begin);
  if (getaddrinfo(host, colon + 1, &hints, out) != 0)
    FAIL(ERR_CONFIG, "http.listen is \"%s\", not a numeric address and port, such as 127.0.0.1:8321", listen);
  return ERR_OK;
}

/* A port that is in use may be free at the next start. A port that needs privileges will not. */
static err_t fail_listen(const char *listen, int reason)
{
  err_code_t err = reason == EACCES || reason == EPERM ? ERR_CONFIG : ERR_SYSTEM;

  FAIL(err, "http.listen: cannot listen on %s: %s%s", listen, strerror(reason),
       reason == EADDRINUSE ? ": choose another port, or see what has this one: ss -ltnp" : "");
}

static err_t start_server(struct http *h, const char *listen)
{
  struct addrinfo *address;

  TRY(resolve(listen, &address));
  unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (address->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0u);
  h->server = MHD_start_daemon(flags, 0, NULL, NULL, on_request, h, MHD_OPTION_SOCK_ADDR, address->ai_addr,
                               MHD_OPTION_CONNECTION_LIMIT, (unsigned)SLOTS, MHD_OPTION_NOTIFY_CONNECTION,
                               on_connection, h, MHD_OPTION_NOTIFY_COMPLETED, on_answered, h,
                               MHD_OPTION_UNESCAPE_CALLBACK, leave_coded, h, MHD_OPTION_END);
  int reason = errno;
  freeaddrinfo(address);
  return h->server ? ERR_OK : fail_listen(listen, reason);
}

err_t http_open(const char *listen, const struct config_list *hosts, struct status *status, struct http **out)
{
  AUTO(http_close) struct http *h = NULL;

  TRY(mem_array(1, sizeof *h, &h));
  h->status = status;
  http_hosts_init(listen, hosts, &h->hosts);
  h->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (h->stop_fd < 0)
    FAIL(ERR_SYSTEM, "eventfd: %s", strerror(errno));
  TRY(start_server(h, listen));
  if (pthread_create(&h->thread, NULL, serve, h) != 0)
    FAIL(ERR_SYSTEM, "the HTTP thread cannot be started");
  h->has_thread = true;
  log_info("http", "listen=%s", listen);
  *out = h;
  h = NULL;
  return ERR_OK;
}

void http_close(struct http **http)
{
  struct http *h = *http;

  if (!h)
    return;
  if (h->has_thread && eventfd_write(h->stop_fd, 1) == 0)
    pthread_join(h->thread, NULL);
  if (h->server)
    MHD_stop_daemon(h->server);
  if (h->stop_fd >= 0)
    close(h->stop_fd);
  mem_free(http);
}
