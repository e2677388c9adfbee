/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a peer, asking it for answers through pipes, and reading them. */
#include "tests/bench/bench_peer.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/bench/bench_npy.h"

enum { LINE_BYTES = 1 << 16 };

struct peer_method {
  struct peer *peer;
  const struct race *race;
  char name[48], rival[48];
};

struct peer {
  pid_t pid;
  FILE *to, *from;
  struct peer_method methods[RACERS_MAX];
  size_t n_methods;
  char line[LINE_BYTES];
};

static void read_line(struct peer *p)
{
  if (!fgets(p->line, sizeof p->line, p->from)) {
    fprintf(stderr, "bench: error: the peers' program has ended; its own words are above\n");
    exit(1);
  }
}

static void start(struct peer *p, const struct bench_options *options)
{
  char program[512];
  int to[2], from[2];

  snprintf(program, sizeof program, "%s/%s.py", options->peers, options->workload);
  if (pipe(to) || pipe(from) || (p->pid = fork()) < 0) {
    perror("bench: error: peers");
    exit(1);
  }
  if (p->pid == 0) {
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    close(to[1]);
    close(from[0]);
    execl("/usr/bin/python3", "python3", program, options->dir, (char *)NULL);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  p->to = fdopen(to[1], "w");
  p->from = fdopen(from[0], "r");
}

/* "ready NAME=RIVAL ..." */
static void read_methods(struct peer *p)
{
  char *rest = p->line, *word = strtok_r(rest, " \n", &rest);

  for (word = strtok_r(NULL, " \n", &rest); word && p->n_methods < RACERS_MAX; word = strtok_r(NULL, " \n", &rest)) {
    struct peer_method *method = &p->methods[p->n_methods++];
    *method = (struct peer_method){ .peer = p };
    snprintf(method->name, sizeof method->name, "%.*s", (int)strcspn(word, "="), word);
    if (strchr(word, '='))
      snprintf(method->rival, sizeof method->rival, "%.47s", strchr(word, '=') + 1);
  }
}

void peer_open(const struct bench_options *options, struct peer **out)
{
  *out = NULL;
  if (!options->peers)
    return;
  bench_check(mem_array(1, sizeof **out, out));
  signal(SIGPIPE, SIG_IGN);
  fprintf(stderr, "bench: starting the peers, which load the data\n");
  start(*out, options);
  read_line(*out);
  read_methods(*out);
}

void peer_close(struct peer **peer)
{
  struct peer *p = *peer;

  if (!p)
    return;
  fclose(p->to);
  fclose(p->from);
  waitpid(p->pid, NULL, 0);
  mem_free(peer);
}

static void peer_prepare(void *self, size_t round)
{
  const struct race *race = ((struct peer_method *)self)->race;

  race->tell_peers(race->context, round);
}

static void peer_run(void *self, size_t round)
{
  struct peer_method *m = self;

  fprintf(m->peer->to, "run %s %zu %zu %zu\n", m->name, round, m->race->batch, m->race->k);
  fflush(m->peer->to);
  read_line(m->peer);
}

static void peer_told(void *self, double *wall_ms, double *cpu_ms)
{
  struct peer_method *m = self;
  char *at;

  *wall_ms = strtod(m->peer->line, &at);
  *cpu_ms = strtod(at, NULL);
}

static void peer_collect(void *self, struct found *found)
{
  struct peer_method *m = self;
  char *at;

  strtod(m->peer->line, &at);
  strtod(at, &at);
  for (size_t q = 0; q < m->race->batch; q++) {
    found[q] = (struct found){ 0 };
    for (size_t i = 0; i < m->race->k; i++) {
      long id = strtol(at, &at, 10);
      if (id >= 0)
        found[q].ids[found[q].n++] = (uint32_t)id;
    }
  }
}

void peer_join(struct peer *peer, struct race *race)
{
  for (size_t i = 0; peer && i < peer->n_methods; i++) {
    struct peer_method *method = &peer->methods[i];
    method->race = race;
    struct racer *racer = race_add(race, method->name, method, peer_run, peer_collect);
    racer->prepare = race->tell_peers ? peer_prepare : NULL;
    racer->is_peer = true;
    racer->told = peer_told;
    snprintf(racer->rival, sizeof racer->rival, "%s", method->rival);
  }
}

void peer_write_filters(const struct bench_options *options, const uint8_t *is_absent, size_t n_filters, size_t n_items)
{
  npy_write(bench_path(options, "absent.npy"), "|u1", is_absent, n_filters, n_items, 1);
}
