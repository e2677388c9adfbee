// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;

/**
 * The book of requests that wait for their answers. It does not know Kafka.
 *
 * <p>Every request has an id that no other request of any client has, and ends exactly once: with an answer, an error,
 * or because its time is over. Answers that come later, or again, are recognised and counted. Any thread may call.
 */
final class Pending<T> {
  private static final Duration TIMEOUT_MAX = Duration.ofDays(10_000); // nanoseconds have room for ten times as many

  private record Open<T>(CompletableFuture<T> future, Duration timeout) {}

  private record Deadline(long nanos, String id) {}

  private final String prefix = UUID.randomUUID() + "-";
  private final int remember; // requests that were given up, whose late answers are told from duplicates
  private final Executor callbacks; // where futures end, and so where the callbacks of their users run
  private final Map<String, Open<T>> open = new HashMap<>();
  private final PriorityQueue<Deadline> deadlines = // requests that were answered stay in it until their time is over
      new PriorityQueue<>((a, b) -> Long.signum(a.nanos - b.nanos));
  private final LinkedHashSet<String> givenUp = new LinkedHashSet<>();
  private long sent, answered, timedOut, failed, late, duplicates, foreign;
  private Exception trouble; // the last one since an answer came
  private boolean closed;

  Pending(int remember, Executor callbacks) {
    this.remember = remember;
    this.callbacks = callbacks;
  }

  record Request<T>(String id, CompletableFuture<T> future) {}

  /** Opens a request that expire() gives up after the timeout. */
  synchronized Request<T> add(Duration timeout) {
    long nanos = (timeout.compareTo(TIMEOUT_MAX) < 0 ? timeout : TIMEOUT_MAX).toNanos();

    if (closed) {
      throw new IllegalStateException("the client is closed");
    }
    String id = prefix + ++sent;
    CompletableFuture<T> future = new CompletableFuture<>();
    open.put(id, new Open<>(future, timeout));
    deadlines.add(new Deadline(System.nanoTime() + nanos, id));
    return new Request<>(id, future);
  }

  /** Ends a request with what `make` returns or throws. Counts an answer that ends none; it is not made. */
  void answer(String id, Callable<T> make) {
    Open<T> request;

    expire();
    synchronized (this) {
      trouble = null;
      request = open.remove(id);
      if (request == null) {
        countUseless(id);
        return;
      }
      if (request.future.isDone()) { // its caller has cancelled it
        timedOut++;
        late++;
        return;
      }
      answered++;
    }
    run(() -> {
      try {
        request.future.complete(make.call());
      } catch (Throwable error) { // also OutOfMemoryError: the request is in no book any more, and must end
        request.future.completeExceptionally(error);
      }
    });
  }

  /** Ends a request that could not be sent. */
  void fail(String id, Exception error) {
    Open<T> request;

    synchronized (this) {
      request = open.remove(id);
      if (request == null) {
        return;
      }
      failed++;
      rememberGivenUp(id); // the record may be in Kafka all the same
    }
    end(request, error);
  }

  /** Gives up the requests whose time is over. Their futures end with a TimeoutException. */
  void expire() {
    List<Open<T>> over = new ArrayList<>();
    Exception cause;

    synchronized (this) {
      cause = trouble;
      while (!deadlines.isEmpty() && deadlines.peek().nanos - System.nanoTime() <= 0) {
        String id = deadlines.remove().id;
        Open<T> request = open.remove(id);
        if (request != null) {
          timedOut++;
          rememberGivenUp(id);
          over.add(request);
        }
      }
    }
    for (Open<T> request : over) {
      TimeoutException error = new TimeoutException("no answer within " + request.timeout);
      error.initCause(cause);
      end(request, error);
    }
  }

  /** Says what may be the reason if the next requests get no answer. */
  synchronized void note(Exception trouble) {
    this.trouble = trouble;
  }

  /** Ends all open requests, and refuses new ones. */
  void close() {
    List<Open<T>> left;

    synchronized (this) {
      closed = true;
      left = new ArrayList<>(open.values());
      open.clear();
      failed += left.size();
    }
    left.forEach(request -> end(request, new IllegalStateException("the client was closed before the answer came")));
  }

  synchronized Counters counters() {
    return new Counters(sent, answered, timedOut, failed, late, duplicates, foreign);
  }

  private void end(Open<T> request, Exception error) {
    run(() -> request.future.completeExceptionally(error));
  }

  private void run(Runnable end) {
    try {
      callbacks.execute(end);
    } catch (RejectedExecutionException error) { // the client is closed
      end.run();
    }
  }

  private void rememberGivenUp(String id) {
    givenUp.add(id);
    if (givenUp.size() > remember) {
      givenUp.remove(givenUp.iterator().next());
    }
  }

  private void countUseless(String id) {
    if (!id.startsWith(prefix)) {
      foreign++;
    } else if (givenUp.remove(id)) { // the next answer to the same request is its duplicate
      late++;
    } else {
      duplicates++;
    }
  }
}
