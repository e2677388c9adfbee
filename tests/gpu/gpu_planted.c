/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the model of a device itself: it must find every planted fault, and nothing else. Each case runs in a child
 * process in one of the model's modes. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/check.h"
#include "tests/gpu/planted_faults.h"

enum { N = 256, OUT = N + 1, TEXT = 4096, WRONG = 3 };

#if defined(__SANITIZE_ADDRESS__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

/* What the host does wrong around the kernel. */
enum host_fault {
  HOST_NOTHING,
  HOST_READS_DEVICE,    /* reads device memory by its address */
  HOST_WRITES_DEVICE,   /* writes it */
  HOST_CHANGES_SENT,    /* changes the input after the copy's start */
  HOST_READS_EARLY,     /* reads the output before the wait */
  HOST_USES_FREED,      /* lets a kernel read memory that was freed */
  HOST_COPIES_UNWRITTEN /* copies device memory that nobody wrote */
};

enum needs { NOTHING, A_WATCH, AN_ADDRESS_SANITIZER };

struct planted {
  const char *name;
  enum planted_fault kernel;
  enum host_fault host;
  enum needs needs;
  const char *mode, *message; /* without a message: the answer must be wrong */
};

static const struct planted cases[] = {
  { "nothing", PLANTED_NOTHING, HOST_NOTHING, NOTHING, "on", NULL },
  { "nothing, at once", PLANTED_NOTHING, HOST_NOTHING, NOTHING, "eager", NULL },
  { "nothing, at random", PLANTED_NOTHING, HOST_NOTHING, NOTHING, "mixed", NULL },
  { "nothing, watched", PLANTED_NOTHING, HOST_NOTHING, A_WATCH, "eager,watch", NULL },
  { "nothing, without warpgroups", PLANTED_NOTHING, HOST_NOTHING, NOTHING, "ampere", NULL },
  { "no wait", PLANTED_NO_WAIT, HOST_NOTHING, NOTHING, "on", NULL },
  { "no wait, watched", PLANTED_NO_WAIT, HOST_NOTHING, A_WATCH, "watch", "memory that nobody wrote" },
  { "wait for older", PLANTED_WAIT_FOR_OLDER, HOST_NOTHING, NOTHING, "on", NULL },
  { "never wait", PLANTED_NEVER_WAIT, HOST_NOTHING, NOTHING, "on", "ends before the asynchronous copies" },
  { "misaligned copy", PLANTED_MISALIGNED_COPY, HOST_NOTHING, NOTHING, "on", "not multiples of 16" },
  { "no syncthreads", PLANTED_NO_SYNCTHREADS, HOST_NOTHING, A_WATCH, "watch", "cuda_model: a" },
  { "group sync", PLANTED_GROUP_SYNC, HOST_NOTHING, A_WATCH, "watch", "cuda_model: a" },
  { "early reuse", PLANTED_EARLY_REUSE, HOST_NOTHING, A_WATCH, "watch", "a race" },
  { "no syncwarp", PLANTED_NO_SYNCWARP, HOST_NOTHING, A_WATCH, "watch", "a race: a read, and a write before it" },
  { "blocks write", PLANTED_BLOCKS_WRITE, HOST_NOTHING, A_WATCH, "watch", "a race: two writes" },
  { "blocks read", PLANTED_BLOCKS_READ, HOST_NOTHING, A_WATCH, "watch", "cuda_model: a" },
  { "plain counter", PLANTED_PLAIN_COUNTER, HOST_NOTHING, A_WATCH, "watch", "a race" },
  { "unwritten", PLANTED_UNWRITTEN, HOST_NOTHING, A_WATCH, "watch", "memory that nobody wrote" },
  { "unwritten shared", PLANTED_UNWRITTEN_SHARED, HOST_NOTHING, A_WATCH, "watch", "memory that nobody wrote" },
  { "behind", PLANTED_BEHIND, HOST_NOTHING, NOTHING, "on", "" },
  { "no begin", PLANTED_NO_BEGIN, HOST_NOTHING, NOTHING, "on", "does not call begin_kernel" },
  { "late begin", PLANTED_LATE_BEGIN, HOST_NOTHING, A_WATCH, "watch", "accessed before begin_kernel" },
  { "divergent", PLANTED_DIVERGENT, HOST_NOTHING, NOTHING, "on", "deadlock" },
  { "misaligned load", PLANTED_MISALIGNED_LOAD, HOST_NOTHING, AN_ADDRESS_SANITIZER, "on", "misaligned address" },
  { "no product wait", PLANTED_NO_PRODUCT_WAIT, HOST_NOTHING, NOTHING, "on", NULL },
  { "never product wait", PLANTED_NEVER_PRODUCT_WAIT, HOST_NOTHING, NOTHING, "on", "before the products" },
  { "warp missing", PLANTED_WARP_MISSING, HOST_NOTHING, NOTHING, "on", "deadlock" },
  { "the host reads", PLANTED_NOTHING, HOST_READS_DEVICE, NOTHING, "on", "the host touches device memory" },
  { "the host writes", PLANTED_NOTHING, HOST_WRITES_DEVICE, NOTHING, "eager", "the host touches device memory" },
  { "changed input", PLANTED_NOTHING, HOST_CHANGES_SENT, NOTHING, "on", "the host changed pinned memory" },
  { "changed input, at once", PLANTED_NOTHING, HOST_CHANGES_SENT, NOTHING, "eager", "the host changed pinned memory" },
  { "early output", PLANTED_NOTHING, HOST_READS_EARLY, NOTHING, "on", NULL },
  { "freed", PLANTED_NOTHING, HOST_USES_FREED, NOTHING, "on", "" },
  { "copied unwritten", PLANTED_NOTHING, HOST_COPIES_UNWRITTEN, A_WATCH, "watch", "which nobody wrote" },
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* Is this case's answer wrong where no message tells of the fault? */
static bool is_silent(const struct planted *c)
{
  return !c->message && (c->kernel != PLANTED_NOTHING || c->host != HOST_NOTHING);
}

/* Run the kernel with the case's fault. Returns whether the answer is right. */
static bool run_case(const struct planted *c)
{
  struct device_stream *stream;
  uint32_t *in, *out, *device_in, *device_out, sum = 0;
  bool is_right = true;

  CHECK_OK(device_stream_open(&stream));
  CHECK_OK(device_alloc_host(N, sizeof *in, &in));
  CHECK_OK(device_alloc_host(OUT, sizeof *out, &out));
  CHECK_OK(device_alloc(N, sizeof *in, &device_in));
  CHECK_OK(device_alloc(OUT, sizeof *out, &device_out));
  for (size_t i = 0; i < N; i++)
    sum += in[i] = (uint32_t)(i * i + 1);
  CHECK_OK(device_copy_in(stream, device_in, in, N * sizeof *in));
  CHECK_OK(device_fill(stream, device_out + N, 0, sizeof *out));
  if (c->host == HOST_CHANGES_SENT)
    in[77] = 0;
  if (c->host == HOST_COPIES_UNWRITTEN)
    CHECK_OK(device_copy_out(stream, out, device_out, OUT * sizeof *out));
  CHECK_OK(planted_run(stream, c->kernel, device_in, device_out));
  if (c->host == HOST_USES_FREED) {
    CHECK_OK(device_wait(stream));
    CHECK_OK(planted_run(stream, c->kernel, device_in, device_out));
    device_free(&device_in);
  }
  CHECK_OK(device_copy_out(stream, out, device_out, OUT * sizeof *out));
  if (c->host != HOST_READS_EARLY)
    CHECK_OK(device_wait(stream));
  if (c->host == HOST_READS_DEVICE)
    printf("%u\n", *(volatile uint32_t *)(device_out + 5));
  if (c->host == HOST_WRITES_DEVICE)
    *(volatile uint32_t *)(device_out + 5) = 1;
  for (size_t i = 0; i < N; i++)
    is_right = is_right && out[i] == sum + i;
  is_right = is_right && out[N] == 4 * 128;
  device_stream_close(&stream);
  device_free(&device_in);
  device_free(&device_out);
  device_free_host(&in);
  device_free_host(&out);
  return is_right;
}

/* Run a case in a child process, which starts this program anew in the case's mode. */
static int run_child(const char *program, size_t i, char text[TEXT])
{
  int ends[2], status;
  size_t n = 0;
  char number[16];

  snprintf(number, sizeof number, "%zu", i);
  CHECK(pipe(ends) == 0, "no pipe");
  pid_t child = fork();
  CHECK(child >= 0, "no child");
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    setenv("SLUICE_CUDA_MODEL", cases[i].mode, 1);
    execl(program, program, number, (char *)NULL);
    _exit(WRONG + 1);
  }
  close(ends[1]);
  for (ssize_t got; n < TEXT - 1 && (got = read(ends[0], text + n, TEXT - 1 - n)) > 0;)
    n += (size_t)got;
  text[n] = 0;
  close(ends[0]);
  CHECK(waitpid(child, &status, 0) == child, "no status");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int n, char **arguments)
{
  if (n > 1)
    return run_case(&cases[atoi(arguments[1])]) ? 0 : WRONG;
  check_begin("gpu_planted");
  for (size_t i = 0; i < CASES; i++) {
    const struct planted *c = &cases[i];
    char text[TEXT];
    if (c->needs == (IS_SANITIZED ? A_WATCH : AN_ADDRESS_SANITIZER))
      continue;
    int status = run_child(arguments[0], i, text);
    if (c->message)
      CHECK(status != 0 && status != WRONG && strstr(text, c->message), "%s: status %d: %s", c->name, status, text);
    else
      CHECK(status == (is_silent(c) ? WRONG : 0), "%s: status %d: %s", c->name, status, text);
  }
  return check_end("gpu_planted");
}
