// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Sends queries and returns their answers: one producer, one reader of the answer topic, any number of threads. Keep
 * one for the whole process: opening takes far longer than a query.
 */
public final class Queries implements AutoCloseable {
  // How long a query waits for room in the producer, or for its topic, also beyond its timeout.
  private static final Map<String, Object> PRODUCER = Map.of("linger.ms", "0", "max.block.ms", "500");
  // Offsets are never committed. If the topic was created anew, its beginning is read, so that no answer is missed.
  private static final Map<String, Object> CONSUMER = Map.of("enable.auto.commit", "false", "auto.offset.reset",
                                                             "earliest", "allow.auto.create.topics", "false",
                                                             "isolation.level", "read_committed");
  private static final Duration POLL = Duration.ofMillis(50), AFTER_ERROR = Duration.ofMillis(200);
  private static final Duration START_TIMEOUT = Duration.ofSeconds(5); // until the query topic is found
  private static final Duration LIST_TIMEOUT = Duration.ofMillis(500); // meanwhile no answers are read
  private static final Duration MARGIN = Duration.ofMillis(200);
  private static final int REMEMBER = 100_000;

  private final String queriesTopic, answersTopic;
  private final ExecutorService callbacks = Executors.newSingleThreadExecutor(this::callbackThread);
  private final Pending<Answer> pending = new Pending<>(REMEMBER, callbacks);
  private final KafkaProducer<byte[], byte[]> producer;
  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Set<TopicPartition> partitions = new HashSet<>();
  private final Duration refresh;
  private final Thread reader = new Thread(this::read, "sluice answers");
  private volatile Thread callbackThread;
  private volatile boolean closing;

  /** Topics are those of a daemon's defaults. See the other constructor. */
  public Queries(Map<String, ?> kafka) {
    this(kafka, "sluice.queries", "sluice.answers", Duration.ofSeconds(10));
  }

  /**
   * @param kafka properties of Kafka's clients, for producer and consumer both; at least bootstrap.servers
   * @param refresh how often new partitions of the answer topic are looked for
   * @throws KafkaException there are no brokers, or no such topic
   */
  public Queries(Map<String, ?> kafka, String queriesTopic, String answersTopic, Duration refresh) {
    this.queriesTopic = queriesTopic;
    this.answersTopic = answersTopic;
    this.refresh = refresh;
    // partitionsFor() answers from what the consumer knows, so let it look more often than we do.
    Map<String, ?> own = Map.of("metadata.max.age.ms", Math.max(1, refresh.toMillis() / 2));
    consumer = new KafkaConsumer<>(Settings.with(own, Settings.with(kafka, CONSUMER)), new ByteArrayDeserializer(),
                                   new ByteArrayDeserializer());
    try {
      producer = new KafkaProducer<>(Settings.with(kafka, PRODUCER), new ByteArraySerializer(),
                                     new ByteArraySerializer());
    } catch (RuntimeException error) {
      consumer.close();
      throw error;
    }
    try {
      findQueriesTopic();
      // Before the first query is sent, so that no answer can be missed. Without a group: all partitions.
      partitions.addAll(partitionsOf(consumer.partitionsFor(answersTopic)));
      if (partitions.isEmpty()) {
        throw new KafkaException("there is no topic " + answersTopic);
      }
      consumer.assign(partitions);
      consumer.endOffsets(partitions).forEach(consumer::seek);
    } catch (RuntimeException error) {
      consumer.close();
      producer.close(Duration.ZERO);
      throw error;
    }
    reader.setDaemon(true);
    reader.start();
  }

  /**
   * Sends a query and returns the future of its answer. It ends with a QueryException if the daemon answers with an
   * error, a TimeoutException if there is no answer in time, a KafkaException if Kafka does not take the query, and an
   * IllegalStateException if the client is closed or the answer is none. It waits while the producer is full or the
   * topic is away, for 0.5 s at most (max.block.ms).
   *
   * <p>The query's deadline is a little earlier, by a tenth of the timeout and at most 0.2 s, so that the daemon's error
   * arrives: the clocks of client and daemon must agree. Callbacks of futures run one after the other in a thread of the
   * client: one that blocks holds up the others.
   */
  public CompletableFuture<Answer> submit(Query query, Duration timeout) {
    Duration tenth = timeout.dividedBy(10), margin = tenth.compareTo(MARGIN) < 0 ? tenth : MARGIN;
    long deadline = Instant.now().plus(timeout.minus(margin)).toEpochMilli();
    Pending.Request<Answer> request = pending.add(timeout);
    byte[] key = request.id().getBytes(StandardCharsets.UTF_8);

    try {
      // The answer has its query's key: answers to other clients are not even parsed.
      producer.send(new ProducerRecord<>(queriesTopic, key, query.message(request.id(), deadline)), (at, error) -> {
        if (error != null) {
          pending.fail(request.id(), error);
        }
      });
    } catch (RuntimeException error) {
      pending.fail(request.id(), error);
    }
    return request.future();
  }

  /** Sends a query and waits for its answer. Not in a callback of a future: use submit() there. */
  public Answer ask(Query query, Duration timeout) throws InterruptedException, TimeoutException {
    if (Thread.currentThread() == callbackThread) {
      throw new IllegalStateException("ask() in a callback would wait for its own thread: use submit()");
    }
    try {
      return submit(query, timeout).get();
    } catch (ExecutionException error) {
      if (error.getCause() instanceof TimeoutException cause) {
        throw cause;
      }
      throw error.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(error.getCause());
    }
  }

  public Counters counters() {
    return pending.counters();
  }

  /** Stops reading. Requests that are open end with an IllegalStateException. A second call does nothing. */
  @Override
  public void close() {
    closing = true;
    consumer.wakeup();
    try {
      reader.join();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  /** Connects, so that the first query does not wait for that. */
  private void findQueriesTopic() {
    for (long end = System.nanoTime() + START_TIMEOUT.toNanos();;) {
      try {
        producer.partitionsFor(queriesTopic);
        return;
      } catch (org.apache.kafka.common.errors.TimeoutException error) {
        if (System.nanoTime() - end > 0) {
          throw error;
        }
      }
    }
  }

  private Thread callbackThread(Runnable run) {
    callbackThread = new Thread(run, "sluice callbacks");
    callbackThread.setDaemon(true);
    return callbackThread;
  }

  private void read() {
    long refreshed = System.nanoTime();

    try {
      while (!closing) {
        try {
          pending.expire();
          consumer.poll(POLL).forEach(this::take);
          if (System.nanoTime() - refreshed > refresh.toNanos()) {
            refreshed = System.nanoTime();
            addNewPartitions();
          }
        } catch (WakeupException | InterruptException error) {
          break;
        } catch (KafkaException error) { // it may pass: a login that is refused for a moment
          pending.note(error);
          Thread.sleep(AFTER_ERROR.toMillis());
        }
      }
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    } finally {
      closing = true;
      pending.close();
      producer.close(Duration.ZERO); // waits for its thread, which may be ending a request
      callbacks.shutdown();
      consumer.close(Duration.ZERO);
    }
  }

  private void take(ConsumerRecord<byte[], byte[]> record) {
    if (record.key() != null && record.value() != null) {
      pending.answer(new String(record.key(), StandardCharsets.UTF_8), () -> answerOf(record.value()));
    }
  }

  private static Answer answerOf(byte[] value) {
    JsonNode message = Json.parse(value), error = message.get("error");

    if (error != null) {
      throw new QueryException(error.path("code").asText(), error.path("message").asText());
    }
    return Answer.of(message);
  }

  /** Reads partitions that the topic has grown by from their beginning. */
  private void addNewPartitions() {
    List<TopicPartition> added = partitionsOf(consumer.partitionsFor(answersTopic, LIST_TIMEOUT));

    added.removeAll(partitions);
    if (!added.isEmpty()) {
      partitions.addAll(added);
      consumer.assign(partitions); // those that were assigned go on where they are
      consumer.seekToBeginning(added);
    }
  }

  private List<TopicPartition> partitionsOf(List<PartitionInfo> found) {
    List<TopicPartition> out = new ArrayList<>();

    if (found != null) {
      found.forEach(partition -> out.add(new TopicPartition(answersTopic, partition.partition())));
    }
    return out;
  }
}
