// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Writes records to one topic, and knows how far they reach. Any thread may call. */
abstract class Writer implements AutoCloseable {
  private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(60);
  private static final int KEY_BYTES_MAX = 256;
  // Idempotence: a repeated request cannot swap two records of a key, and positions are known.
  private static final Map<String, Object> DEFAULTS = Map.of("linger.ms", "5", "enable.idempotence", "true");

  private final String topic;
  private final KafkaProducer<byte[], byte[]> producer;
  private Positions positions = Positions.of(Map.of());
  private long failures;
  private Exception firstFailure;
  private final ThreadLocal<Boolean> isInCallback = ThreadLocal.withInitial(() -> false);

  Writer(Map<String, ?> kafka, String topic) {
    this.topic = topic;
    producer = new KafkaProducer<>(Settings.with(kafka, DEFAULTS), new ByteArraySerializer(),
                                   new ByteArraySerializer());
  }

  /** How far the records reach that Kafka has taken: all that this object has written. */
  public synchronized Positions positions() {
    return positions;
  }

  /**
   * Waits until Kafka has taken or refused every record written so far, and returns how far they reach. Not in a
   * callback of a future, which would wait for its own thread.
   *
   * @throws KafkaException some were not written since the last flush
   */
  public Positions flush() {
    if (isInCallback.get()) {
      throw new IllegalStateException("flush() or close() in a callback would wait for its own thread");
    }
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

    if (bytes.length == 0 || bytes.length > KEY_BYTES_MAX) {
      throw new IllegalArgumentException("a key of " + bytes.length + " bytes; it has 1 to " + KEY_BYTES_MAX);
    }
    producer.send(new ProducerRecord<>(topic, bytes, value), (at, error) -> {
      isInCallback.set(true);
      try {
        end(future, at, error);
      } finally {
        isInCallback.set(false);
      }
    });
    return future;
  }

  private void end(CompletableFuture<Positions> future, RecordMetadata at, Exception error) {
    if (error != null) {
      fail(error);
      future.completeExceptionally(error);
    } else {
      Positions reached = Positions.of(Map.of(at.partition(), at.offset() + 1));
      reach(reached);
      future.complete(reached);
    }
  }

  private synchronized void reach(Positions reached) {
    positions = Positions.merged(positions, reached);
  }

  private synchronized void fail(Exception error) {
    failures++;
    firstFailure = firstFailure == null ? error : firstFailure;
  }
}
