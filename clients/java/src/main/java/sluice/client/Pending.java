// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * The book of requests that wait for their answers. It does not know Kafka.
 *
 * <p>Every request has an id that no other request of any client has, and ends exactly once: with an answer, an error,
 * or because its time is over. Answers that come later, or again, are recognised and counted. Any thread may call.
 */
final class Pending<T> {
  private final String prefix = UUID.randomUUID() + "-";
  private final int remember; // requests that were given up, whose late answers are told from duplicates
  private final Map<String, CompletableFuture<T>> open = new HashMap<>();
  private final LinkedHashSet<String> givenUp = new LinkedHashSet<>();
  private long sent, answered, timedOut, failed, late, duplicates, foreign;
  private boolean closed;

  Pending(int remember) {
    this.remember = remember;
  }

  record Request<T>(String id, CompletableFuture<T> future) {}

  /** Opens a request. Its future ends with a TimeoutException if nothing else ends it in time. */
  Request<T> add(Duration timeout) {
    CompletableFuture<T> future = new CompletableFuture<>();
    String id;

    synchronized (this) {
      if (closed) {
        throw new IllegalStateException("the client is closed");
      }
      id = prefix + ++sent;
      open.put(id, future);
    }
    // The caller, too, may complete or cancel the future.
    future.orTimeout(timeout.toNanos(), TimeUnit.NANOSECONDS).whenComplete((value, error) -> giveUp(id));
    return new Request<>(id, future);
  }

  /** Ends a request with what `make` returns or throws. Counts an answer that ends none; it is not made. */
  void answer(String id, Callable<T> make) {
    CompletableFuture<T> future;

    synchronized (this) {
      future = open.remove(id);
      if (future == null) {
        countUseless(id);
        return;
      }
      answered++;
    }
    boolean inTime;
    try {
      inTime = future.complete(make.call());
    } catch (Exception error) {
      inTime = future.completeExceptionally(error);
    }
    if (!inTime) {
      countLate();
    }
  }

  /** Ends a request that could not be sent. */
  void fail(String id, Exception error) {
    CompletableFuture<T> future;

    synchronized (this) {
      future = open.remove(id);
      if (future == null) {
        return;
      }
      failed++;
      rememberGivenUp(id); // the record may be in Kafka all the same
    }
    future.completeExceptionally(error);
  }

  /** Ends all open requests, and refuses new ones. */
  void close() {
    List<CompletableFuture<T>> left;

    synchronized (this) {
      closed = true;
      left = new ArrayList<>(open.values());
      open.clear();
      failed += left.size();
    }
    left.forEach(future -> future.completeExceptionally(
                     new IllegalStateException("the client was closed before the answer came")));
  }

  synchronized Counters counters() {
    return new Counters(sent, answered, timedOut, failed, late, duplicates, foreign);
  }

  /** The future has ended. If an answer or an error ended it, the request is no longer open. */
  private synchronized void giveUp(String id) {
    if (open.remove(id) != null) {
      timedOut++;
      rememberGivenUp(id);
    }
  }

  /** The time was over at the moment when the answer came. */
  private synchronized void countLate() {
    answered--;
    timedOut++;
    late++;
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
