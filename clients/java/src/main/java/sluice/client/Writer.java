// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Writes records to one topic, and knows how far they reach. Any thread may call. */
abstract class Writer implements AutoCloseable {
  private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(60);

  private final String topic;
  private final KafkaProducer<byte[], byte[]> producer;
  private Positions positions = Positions.of(Map.of());
  private long failures;
  private Exception firstFailure;

  Writer(Map<String, Object> kafka, String topic) {
    this.topic = topic;
    // Kafka's producer is idempotent: a repeated request cannot swap two records of a key.
    producer = new KafkaProducer<>(Settings.with(kafka, Map.of("linger.ms", "5")), new ByteArraySerializer(),
                                   new ByteArraySerializer());
  }

  /** How far the records reach that Kafka has taken: all that this object has written. */
  public synchronized Positions positions() {
    return positions;
  }

  /**
   * Waits until Kafka has taken or refused every record written so far, and returns how far they reach.
   *
   * @throws KafkaException some were not written since the last flush
   */
  public Positions flush() {
    producer.flush();
    synchronized (this) {
      if (failures > 0) {
        KafkaException error = new KafkaException(
            failures + " records were not written to topic " + topic + "; the first: " + firstFailure, firstFailure);
        failures = 0;
        firstFailure = null;
        throw error;
      }
      return positions;
    }
  }

  /** Flushes and closes the producer. */
  @Override
  public void close() {
    try {
      flush();
    } finally {
      producer.close(CLOSE_TIMEOUT);
    }
  }

  /** A record without a value deletes what its key names. */
  CompletableFuture<Positions> write(String key, byte[] value) {
    CompletableFuture<Positions> future = new CompletableFuture<>();
    byte[] bytes = key.getBytes(StandardCharsets.UTF_8);

    producer.send(new ProducerRecord<>(topic, bytes, value), (at, error) -> {
      if (error != null) {
        fail(error);
        future.completeExceptionally(error);
      } else {
        Positions reached = Positions.of(Map.of(at.partition(), at.offset() + 1));
        reach(reached);
        future.complete(reached);
      }
    });
    return future;
  }

  private synchronized void reach(Positions reached) {
    positions = Positions.merged(positions, reached);
  }

  private synchronized void fail(Exception error) {
    failures++;
    firstFailure = firstFailure == null ? error : firstFailure;
  }
}
