#include "daemon/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"

struct http {
  struct MHD_Daemon *server;
  struct status *status;
};

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned code, const char *type, const char *text,
                               enum MHD_ResponseMemoryMode mode)
{
  struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, mode);
  enum MHD_Result result;

  if (!response)
    return MHD_NO;
  MHD_add_response_header(response, "Content-Type", type);
  result = MHD_queue_response(connection, code, response);
  MHD_destroy_response(response);
  return result;
}

static enum MHD_Result respond_made(struct MHD_Connection *connection, const char *type, char *text)
{
  return text ? respond(connection, MHD_HTTP_OK, type, text, MHD_RESPMEM_MUST_FREE) : MHD_NO;
}

static enum MHD_Result respond_ready(struct MHD_Connection *connection, const char *not_ready)
{
  char text[128];

  if (!not_ready)
    return respond(connection, MHD_HTTP_OK, "text/plain", "ready\n", MHD_RESPMEM_PERSISTENT);
  snprintf(text, sizeof text, "not ready: %s\n", not_ready);
  return respond(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "text/plain", text, MHD_RESPMEM_MUST_COPY);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **request)
{
  struct http *h = context;

  (void)version;
  (void)upload;
  (void)upload_size;
  (void)request;
  if (strcmp(method, "GET") != 0)
    return respond(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", "only GET is answered here\n",
                   MHD_RESPMEM_PERSISTENT);
  if (strcmp(url, "/healthz") == 0)
    return respond(connection, MHD_HTTP_OK, "text/plain", "ok\n", MHD_RESPMEM_PERSISTENT);
  if (strcmp(url, "/readyz") == 0)
    return respond_ready(connection, status_not_ready(h->status));
  if (strcmp(url, "/status") == 0)
    return respond_made(connection, "application/json", status_json(h->status));
  if (strcmp(url, "/metrics") == 0)
    return respond_made(connection, "text/plain; version=0.0.4", status_metrics(h->status));
  return respond(connection, MHD_HTTP_NOT_FOUND, "text/plain", "there are /healthz, /readyz, /status and /metrics\n",
                 MHD_RESPMEM_PERSISTENT);
}

/* Split "address:port" or "[address]:port" and look it up without asking a name server. */
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
    FAIL(ERR_CONFIG, "http.listen is \"%s\": that is no numeric address and port, such as 127.0.0.1:8321", listen);
  return ERR_OK;
}

err_t http_open(const char *listen, struct status *status, struct http **out)
{
  AUTO(http_close) struct http *h = NULL;
  struct addrinfo *address;

  TRY(mem_array(1, sizeof *h, &h));
  h->status = status;
  TRY(resolve(listen, &address));
  unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | (address->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0u);
  h->server = MHD_start_daemon(flags, 0, NULL, NULL, on_request, h, MHD_OPTION_SOCK_ADDR, address->ai_addr,
                               MHD_OPTION_CONNECTION_LIMIT, 64u, MHD_OPTION_CONNECTION_TIMEOUT, 10u, MHD_OPTION_END);
  int reason = errno;
  freeaddrinfo(address);
  if (!h->server)
    FAIL(ERR_CONFIG, "http.listen: %s cannot be listened on: %s", listen, strerror(reason));
  log_info("http", "listen=%s", listen);
  *out = h;
  h = NULL;
  return ERR_OK;
}

void http_close(struct http **h)
{
  if (!*h)
    return;
  if ((*h)->server)
    MHD_stop_daemon((*h)->server);
  mem_free(h);
}
