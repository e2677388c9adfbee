// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;

/** Tests of the book of requests: every one ends once, and every answer is counted once. */
public final class PendingTest {
  private static final Duration LONG = Duration.ofMinutes(10);

  static void check(boolean isTrue, Object shown) {
    if (!isTrue) {
      throw new AssertionError(shown);
    }
  }

  static Throwable failureOf(CompletableFuture<?> future) {
    try {
      return new AssertionError("it ended with " + future.join());
    } catch (CompletionException error) {
      return error.getCause();
    }
  }

  static void anAnswerEndsItsRequestAndTheNextOneIsADuplicate() {
    Pending<String> pending = new Pending<>(10, Runnable::run);
    var first = pending.add(LONG);
    var second = pending.add(LONG);
    pending.answer(second.id(), () -> "b");
    pending.answer(first.id(), () -> "a");
    pending.answer(first.id(), () -> { throw new AssertionError("a duplicate is not made"); });
    pending.answer("somebody else's", () -> "c");
    check(first.future().join().equals("a") && second.future().join().equals("b"), first);
    check(pending.counters().equals(new Counters(2, 2, 0, 0, 0, 1, 1)), pending.counters());
  }

  static void aRequestWhoseTimeIsOverIsGivenUpAndItsAnswerIsLateOnce() throws InterruptedException {
    Pending<String> pending = new Pending<>(10, Runnable::run);
    var forever = pending.add(Duration.ofSeconds(Long.MAX_VALUE));
    var request = pending.add(Duration.ofMillis(1));
    pending.note(new IllegalStateException("no login"));
    Thread.sleep(2);
    pending.expire();
    Throwable failure = failureOf(request.future());
    check(failure instanceof TimeoutException && failure.getCause().getMessage().equals("no login"), failure);
    pending.answer(request.id(), () -> "a");
    pending.answer(request.id(), () -> "a");
    check(!forever.future().isDone(), "a request without end");
    check(pending.counters().equals(new Counters(2, 0, 1, 0, 1, 1, 0)), pending.counters());
  }

  static void aCancelledRequestIsGivenUp() {
    Pending<String> pending = new Pending<>(10, Runnable::run);
    var request = pending.add(LONG);
    request.future().cancel(false);
    pending.answer(request.id(), () -> "a");
    check(pending.counters().equals(new Counters(1, 0, 1, 0, 1, 0, 0)), pending.counters());
  }

  static void anAnswerThatCannotBeMadeIsTheError() {
    Pending<String> pending = new Pending<>(10, Runnable::run);
    var request = pending.add(LONG);
    pending.answer(request.id(), () -> { throw new QueryException("BAD_QUERY", "k"); });
    check(failureOf(request.future()) instanceof QueryException, "the error");
    var other = pending.add(LONG);
    pending.answer(other.id(), () -> { throw new OutOfMemoryError(); });
    check(failureOf(other.future()) instanceof OutOfMemoryError, "an Error");
    check(pending.counters().answered() == 2, pending.counters());
  }

  static void aRequestThatWasNotSentMayBeAnsweredAllTheSame() {
    Pending<String> pending = new Pending<>(10, Runnable::run);
    var request = pending.add(LONG);
    pending.fail(request.id(), new IllegalStateException("no broker"));
    pending.fail(request.id(), new IllegalStateException("again"));
    check(failureOf(request.future()).getMessage().equals("no broker"), "the first error");
    pending.answer(request.id(), () -> "a");
    check(pending.counters().equals(new Counters(1, 0, 0, 1, 1, 0, 0)), pending.counters());
  }

  static void onlySoManyGivenUpRequestsAreRemembered() {
    Pending<String> pending = new Pending<>(1, Runnable::run);
    var first = pending.add(LONG);
    var second = pending.add(LONG);
    pending.fail(first.id(), new IllegalStateException("no broker"));
    pending.fail(second.id(), new IllegalStateException("no broker"));
    pending.answer(first.id(), () -> "a");
    pending.answer(second.id(), () -> "a");
    check(pending.counters().equals(new Counters(2, 0, 0, 2, 1, 1, 0)), pending.counters());
  }

  static void aClosedExecutorDoesNotHoldUpTheEnd() {
    Pending<String> pending = new Pending<>(10, run -> { throw new RejectedExecutionException(); });
    var request = pending.add(LONG);
    pending.fail(request.id(), new IllegalStateException("no broker"));
    check(failureOf(request.future()).getMessage().equals("no broker"), "the error");
  }

  static void closingEndsOpenRequestsAndRefusesNewOnes() {
    Pending<String> pending = new Pending<>(10, Runnable::run);
    var request = pending.add(LONG);
    pending.close();
    pending.close();
    check(failureOf(request.future()) instanceof IllegalStateException, "closed");
    check(pending.counters().failed() == 1, pending.counters());
    try {
      pending.add(LONG);
      throw new AssertionError("a request of a closed client");
    } catch (IllegalStateException expected) {
      check(pending.counters().sent() == 1, pending.counters());
    }
  }

  static void ofManyThreadsEveryRequestEndsOnce() throws InterruptedException {
    final int requests = 20_000;
    Pending<String> pending = new Pending<>(requests, Runnable::run);
    Thread[] threads = new Thread[4];
    for (int i = 0; i < threads.length; i++) {
      threads[i] = new Thread(() -> {
        for (int n = 0; n < requests / 4; n++) {
          var request = pending.add(Duration.ofNanos(1 + n % 200_000));
          pending.answer(request.id(), () -> "a");
          pending.answer(request.id(), () -> "a");
        }
      });
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    Counters c = pending.counters();
    check(c.sent() == requests && c.answered() + c.timedOut() == requests, c);
    check(c.late() + c.duplicates() + c.answered() == 2L * requests, c); // each request got two answers
  }

  public static void main(String[] arguments) throws Exception {
    anAnswerEndsItsRequestAndTheNextOneIsADuplicate();
    aRequestWhoseTimeIsOverIsGivenUpAndItsAnswerIsLateOnce();
    aCancelledRequestIsGivenUp();
    anAnswerThatCannotBeMadeIsTheError();
    aRequestThatWasNotSentMayBeAnsweredAllTheSame();
    onlySoManyGivenUpRequestsAreRemembered();
    aClosedExecutorDoesNotHoldUpTheEnd();
    closingEndsOpenRequestsAndRefusesNewOnes();
    ofManyThreadsEveryRequestEndsOnce();
    System.out.println("9 tests passed");
  }
}
