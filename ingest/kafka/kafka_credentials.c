/* SPDX-License-Identifier: Apache-2.0 */
/* The open clients, the credentials that each was configured with, and what these were replaced with. */
#include "ingest/kafka/kafka_credentials.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "ingest/kafka/kafka_client.h"

/* More clients than a daemon opens; a further one gets a new password when it is opened again. A daemon has four
 * sections with credentials of their own. */
enum { CLIENTS_MAX = 64, LOGINS_MAX = 8 };

/* Clients are told apart by the credentials that they were configured with: after a reload, clients may share those
 * that they have now, and share them no longer after the next. */
struct kafka_login {
  char *user, *password; /* as configured; never changed or freed */
  struct kafka_credentials now;
};

static struct {
  pthread_mutex_t mutex;
  struct {
    rd_kafka_t *rk;
    const struct kafka_login *login;
  } clients[CLIENTS_MAX];
  struct kafka_login logins[LOGINS_MAX];
  size_t n_logins;
} all = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* Copy a property, which may have any length; "" if it is not set. */
static err_t copy_property(const rd_kafka_conf_t *conf, const char *property, char **out)
{
  size_t n = 0;

  if (rd_kafka_conf_get(conf, property, NULL, &n) != RD_KAFKA_CONF_OK)
    return mem_copy_str("", out);
  TRY(mem_bytes(n, out));
  rd_kafka_conf_get(conf, property, *out, &n);
  return ERR_OK;
}

/* Find these credentials, or add them as not replaced yet; NULL if there are none or too many. The caller holds the
 * mutex. */
static err_t intern(const char *user, const char *password, struct kafka_login **out)
{
  struct kafka_login *login = NULL;

  for (size_t i = 0; i < all.n_logins && !login; i++) {
    if (strcmp(all.logins[i].user, user) == 0 && strcmp(all.logins[i].password, password) == 0)
      login = &all.logins[i];
  }
  if (!login && *user && all.n_logins < LOGINS_MAX) {
    AUTO(mem_free) char *own_user = NULL;
    TRY(mem_copy_str(user, &own_user));
    TRY(mem_copy_str(password, &all.logins[all.n_logins].password));
    login = &all.logins[all.n_logins++];
    login->user = own_user;
    login->now = (struct kafka_credentials){ login->user, login->password };
    own_user = NULL;
  }
  *out = login;
  return ERR_OK;
}

static void set(rd_kafka_t *rk, const struct kafka_credentials *c)
{
  rd_kafka_error_t *error = rd_kafka_sasl_set_credentials(rk, c->user, c->password);

  if (!error)
    return;
  log_warn("credentials_not_changed", "client=%s reason=%s", rd_kafka_name(rk),
           log_quote(span_of_str(rd_kafka_error_string(error))));
  rd_kafka_error_destroy(error);
}

void kafka_credentials_replace(const struct kafka_credentials *configured, const struct kafka_credentials *now)
{
  struct kafka_login *login = NULL;

  pthread_mutex_lock(&all.mutex);
  if (intern(configured->user, configured->password, &login) != ERR_OK)
    log_warn("credentials_not_changed", "reason=%s", log_quote(span_of_str(err_message())));
  for (size_t i = 0; login && i < CLIENTS_MAX; i++) {
    if (all.clients[i].login == login)
      set(all.clients[i].rk, now);
  }
  if (login)
    login->now = *now;
  pthread_mutex_unlock(&all.mutex);
}

static err_t apply(rd_kafka_conf_t *conf, const char *user, const char *password, const struct kafka_login **out)
{
  struct kafka_login *login;

  TRY(intern(user, password, &login));
  if (login) {
    rd_kafka_conf_set(conf, "sasl.username", login->now.user, NULL, 0);
    rd_kafka_conf_set(conf, "sasl.password", login->now.password, NULL, 0);
  }
  *out = login;
  return ERR_OK;
}

err_t kafka_credentials_apply(rd_kafka_conf_t *conf, const struct kafka_login **out)
{
  AUTO(mem_free) char *user = NULL, *password = NULL;

  TRY(copy_property(conf, "sasl.username", &user));
  TRY(copy_property(conf, "sasl.password", &password));
  pthread_mutex_lock(&all.mutex);
  err_code_t err = apply(conf, user, password, out);
  pthread_mutex_unlock(&all.mutex);
  return err;
}

/* Replace the client of one entry. The caller holds the mutex. */
static void change_client(rd_kafka_t *from, rd_kafka_t *to, const struct kafka_login *login)
{
  for (size_t i = 0; i < CLIENTS_MAX; i++) {
    if (all.clients[i].rk == from) {
      all.clients[i].rk = to;
      all.clients[i].login = login;
      return;
    }
  }
}

void kafka_credentials_begin(rd_kafka_t *rk, const struct kafka_login *login)
{
  if (!login)
    return;
  pthread_mutex_lock(&all.mutex);
  change_client(NULL, rk, login);
  if (login->now.password != login->password) /* perhaps since kafka_credentials_apply() */
    set(rk, &login->now);
  pthread_mutex_unlock(&all.mutex);
}

void kafka_credentials_end(rd_kafka_t *rk)
{
  pthread_mutex_lock(&all.mutex);
  change_client(rk, NULL, NULL);
  pthread_mutex_unlock(&all.mutex);
}
