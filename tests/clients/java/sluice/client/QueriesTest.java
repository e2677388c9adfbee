// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import static sluice.client.PendingTest.check;
import static sluice.client.PendingTest.failureOf;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Tests of queries on a real broker. This program is the daemon, too: it writes the answers. Arguments: the broker, the
 * seconds of patience, and two topics, of which the second has one partition.
 */
public final class QueriesTest {
  private static final Duration LONG = Duration.ofMinutes(10), REFRESH = Duration.ofMillis(200);
  private final Map<String, Object> kafka;
  private final Duration patience;
  private final String questions, answers;
  private final KafkaProducer<String, String> daemon;

  private QueriesTest(String[] arguments) {
    kafka = Map.of("bootstrap.servers", arguments[0]);
    patience = Duration.ofSeconds(Long.parseLong(arguments[1]));
    questions = arguments[2];
    answers = arguments[3];
    daemon = new KafkaProducer<>(Map.of("bootstrap.servers", arguments[0], "metadata.max.age.ms", "100"),
                                 new StringSerializer(), new StringSerializer());
  }

  private Queries open() {
    return new Queries(kafka, questions, answers, REFRESH);
  }

  private void await(BooleanSupplier isSo, Supplier<Object> shown) throws InterruptedException {
    for (long end = System.nanoTime() + patience.toNanos(); !isSo.getAsBoolean();) {
      check(System.nanoTime() < end, shown.get());
      Thread.sleep(5);
    }
  }

  private void answer(int partition, String key, String message) throws Exception {
    daemon.send(new ProducerRecord<>(answers, partition, key, message)).get();
  }

  private void answersOfOthersAndAnswersThatAreNoneHurtNobody() throws Exception {
    try (Queries queries = open()) {
      CompletableFuture<Answer> open = queries.submit(Query.of("films", 1, 1, 0), LONG);
      answer(0, "somebody else's", "{}");
      answer(0, "somebody else's", "{");
      daemon.send(new ProducerRecord<>(answers, 0, null, "{}")).get();
      await(() -> queries.counters().foreign() == 2, queries::counters);
      check(!open.isDone(), "an open query");
    }
  }

  private void closingEndsWhatIsOpen() {
    Queries queries = open();
    CompletableFuture<Answer> open = queries.submit(Query.of("films", 1, 1, 0), LONG);
    queries.close();
    queries.close();
    check(failureOf(open) instanceof IllegalStateException, failureOf(open));
  }

  private void aCallbackOfATimeoutHoldsUpNobody() throws Exception {
    try (Queries queries = open()) {
      Duration soon = Duration.ofMillis(50);
      Object said = queries.submit(Query.of("films", 1, 1, 0), soon).<Object>handle((answer, late) -> {
        try {
          return queries.ask(Query.of("films", 1, 1, 0), soon);
        } catch (Exception error) {
          return error;
        }
      }).get();
      check(said instanceof IllegalStateException, said);
      Throwable failure = failureOf(queries.submit(Query.of("films", 1, 1, 0), soon));
      check(failure instanceof TimeoutException, failure);
    }
  }

  private void aWriterDoesNotWaitForItself() throws Exception {
    try (Catalogue catalogue = new Catalogue(kafka, questions)) {
      Object said = null;
      for (int i = 0; i < 100 && !(said instanceof IllegalStateException); i++) { // an early end has no callback
        said = catalogue.delete("a").<Object>thenApply(at -> {
          try {
            return catalogue.flush();
          } catch (IllegalStateException error) {
            return error;
          }
        }).get();
      }
      check(said instanceof IllegalStateException, said);
      Positions written = catalogue.delete("b").get();
      check(catalogue.flush().reach(written), written);
    }
  }

  private void whatIsNotWrittenIsToldOnce() {
    Map<String, ?> hasty = Map.of("bootstrap.servers", kafka.get("bootstrap.servers"), "max.block.ms", "200");
    try (Catalogue catalogue = new Catalogue(hasty, "no.such.topic")) {
      check(failureOf(catalogue.delete("a")) instanceof KafkaException, "a write");
      try {
        catalogue.flush();
        throw new AssertionError("a flush without the record");
      } catch (KafkaException error) {
        check(error.getMessage().startsWith("1 records were not written to topic no.such.topic"), error);
      }
      check(catalogue.flush().next().isEmpty(), catalogue.positions());
    }
  }

  private void whatNoDaemonTakesIsRefused() {
    List<Runnable> tries = List.of(() -> new Item().codes("pq", 256), () -> new Item().message(),
                                   () -> write(""), () -> write("k".repeat(257)), () -> Query.like("films", 1, null));
    for (Runnable one : tries) {
      try {
        one.run();
      } catch (IllegalArgumentException | NullPointerException expected) {
        continue;
      }
      throw new AssertionError("it was taken");
    }
  }

  private void write(String key) {
    try (Catalogue catalogue = new Catalogue(kafka, questions)) {
      catalogue.delete(key);
    }
  }

  private void aQueryWithoutAnAnswerTimesOut() {
    try (Queries queries = open()) {
      Throwable failure = failureOf(queries.submit(Query.of("films", 1, 1, 0), Duration.ofMillis(50)));
      check(failure instanceof TimeoutException, failure);
      check(queries.counters().timedOut() == 1, queries.counters());
    }
  }

  private void aQueryDoesNotWaitLongForATopicThatWasDeleted() throws Exception {
    String topic = questions + ".deleted";
    Map<String, ?> alert = Map.of("bootstrap.servers", kafka.get("bootstrap.servers"), "metadata.max.age.ms", "100");
    try (Admin admin = Admin.create(kafka)) {
      admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
      try (Queries queries = new Queries(alert, topic, answers, REFRESH)) {
        admin.deleteTopics(List.of(topic)).all().get();
        for (long end = System.nanoTime() + 3_000_000_000L; System.nanoTime() < end;) {
          long start = System.nanoTime();
          queries.submit(Query.of("films", 1, 1, 0), Duration.ofMillis(50));
          check(System.nanoTime() - start < 4_000_000_000L, "a query that waited for 5 s");
        }
      }
    }
  }

  private void partitionsThatAreAddedAreReadFromTheirBeginning() throws Exception {
    try (Queries queries = open(); Admin admin = Admin.create(kafka)) {
      admin.createPartitions(Map.of(answers, NewPartitions.increaseTo(3))).all().get();
      await(() -> daemon.partitionsFor(answers).size() == 3, () -> "partitions");
      answer(2, "somebody else's", "{}");
      await(() -> queries.counters().foreign() == 1, queries::counters);
      answer(0, "somebody else's", "{}"); // those of before are read on
      await(() -> queries.counters().foreign() > 1, queries::counters);
      Thread.sleep(2 * REFRESH.toMillis());
      check(queries.counters().foreign() == 2, queries.counters()); // nothing is read twice
    }
  }

  private void aTopicThatDoesNotExistIsNamed() {
    try {
      new Queries(kafka, questions, "no.such.topic", REFRESH).close();
      throw new AssertionError("there is a topic");
    } catch (KafkaException error) {
      check(error.getMessage().contains("no.such.topic"), error);
    }
    try {
      new Queries(Map.of("bootstrap.servers", kafka.get("bootstrap.servers"), "max.block.ms", "200"), "no.such.topic",
                  answers, REFRESH).close();
      throw new AssertionError("there is a topic");
    } catch (KafkaException error) {
      check(error.getMessage().contains("no.such.topic"), error);
    }
  }

  private static void numbersThatAreNotFiniteAreRefused() {
    List<Runnable> tries = List.of(() -> Query.of("films", 1, Float.NaN),
                                   () -> new Item().vector("films", 1, Float.NEGATIVE_INFINITY),
                                   () -> new Item().attribute("price", Double.NaN),
                                   () -> Query.of("films", 1, 1).filter("a in $1", List.of(1.0, Double.NaN)));
    for (Runnable one : tries) {
      try {
        one.run();
      } catch (IllegalArgumentException error) {
        check(error.getMessage().contains("not finite"), error);
        continue;
      }
      throw new AssertionError("a number that is not finite");
    }
  }

  private static void partsHaveTheNamesOfTheSchema() {
    Item item = new Item().components("mol", new float[] {1, 0.5f}, new float[] {2}).codes("pq", 0, 255).vector("v", 3);
    String message = new String(item.message(), StandardCharsets.UTF_8);
    check(message.equals("{\"parts\":{\"mol\":{\"components\":[1.0,0.5],\"item_gate\":[2.0]},"
                         + "\"pq\":{\"codes\":[0,255]},\"v\":{\"vector\":[3.0]}}}"), message);
  }

  private static void timesAreMillisecondsAlsoInLists() {
    Instant time = Instant.ofEpochMilli(1_700_000_000_123L);
    String item = new String(new Item().attribute("at", time).message(), StandardCharsets.UTF_8);
    check(item.equals("{\"attributes\":{\"at\":1700000000123}}"), item);
    byte[] query = Query.of("films", 1, 1).filter("at in $1", List.of(time)).message("id", 5);
    check(new String(query, StandardCharsets.UTF_8).contains("\"parameters\":[[1700000000123]]"), item);
  }

  public static void main(String[] arguments) throws Exception {
    QueriesTest test = new QueriesTest(arguments);
    test.answersOfOthersAndAnswersThatAreNoneHurtNobody();
    test.closingEndsWhatIsOpen();
    test.aQueryWithoutAnAnswerTimesOut();
    test.aCallbackOfATimeoutHoldsUpNobody();
    test.aWriterDoesNotWaitForItself();
    test.whatIsNotWrittenIsToldOnce();
    test.whatNoDaemonTakesIsRefused();
    test.aQueryDoesNotWaitLongForATopicThatWasDeleted();
    test.partitionsThatAreAddedAreReadFromTheirBeginning();
    test.aTopicThatDoesNotExistIsNamed();
    numbersThatAreNotFiniteAreRefused();
    partsHaveTheNamesOfTheSchema();
    timesAreMillisecondsAlsoInLists();
    System.out.println("13 tests passed");
  }
}
