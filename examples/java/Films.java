// SPDX-License-Identifier: Apache-2.0
// Writes items and queries them from Java, as JSON, with Kafka's client and Jackson.
//
//     java -cp 'build/deps/kafka/*' examples/java/Films.java [HOST:PORT]     the default is 127.0.0.1:9092
//
// ops/setup fetches both libraries into build/deps/kafka. The program needs a daemon with a space `films` for vectors
// with 2 numbers, such as that of the README, and a real Kafka (ops/kafka start): Java's client does not work with the
// embedded broker.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Films {
  static final ObjectMapper JSON = new ObjectMapper();
  static final String CATALOGUE = "sluice.catalogue", QUERIES = "sluice.queries", ANSWERS = "sluice.answers";

  /** Sends queries and finds their answers. One object serves all threads. */
  static class Client implements AutoCloseable {
    private final KafkaProducer<String, String> producer;
    private final KafkaConsumer<String, String> consumer;
    private final Map<String, CompletableFuture<JsonNode>> open = new ConcurrentHashMap<>();
    private final String prefix = UUID.randomUUID().toString();
    private final AtomicInteger sent = new AtomicInteger();
    private final Thread reader = new Thread(this::read, "answers");
    private volatile boolean closing;
    /** Answers to own queries that were answered or given up before: second ones, and late ones. */
    final AtomicInteger useless = new AtomicInteger();

    Client(String kafka, KafkaProducer<String, String> producer) {
      this.producer = producer;
      consumer = new KafkaConsumer<>(Map.of("bootstrap.servers", kafka, "enable.auto.commit", "false"),
                                     new StringDeserializer(), new StringDeserializer());
      // Without a group: read all partitions from where they end now, before the first query is sent.
      List<TopicPartition> partitions =
          consumer.partitionsFor(ANSWERS).stream().map(p -> new TopicPartition(ANSWERS, p.partition())).toList();
      consumer.assign(partitions);
      consumer.endOffsets(partitions).forEach(consumer::seek);
      reader.setDaemon(true);
      reader.start();
    }

    /** Send a query, with an id and a deadline of its own. */
    CompletableFuture<JsonNode> submit(ObjectNode query, Duration timeout) {
      String id = prefix + "-" + sent.incrementAndGet();
      CompletableFuture<JsonNode> answer = new CompletableFuture<JsonNode>();
      open.put(id, answer);
      query.put("id", id).put("deadline_unix_ms", System.currentTimeMillis() + timeout.toMillis());
      producer.send(new ProducerRecord<>(QUERIES, id, query.toString()), (metadata, error) -> {
        if (error != null) {
          answer.completeExceptionally(error);
        }
      });
      answer.orTimeout(timeout.toMillis(), TimeUnit.MILLISECONDS).whenComplete((value, error) -> open.remove(id));
      return answer;
    }

    /** Send the bytes of a query again, as a client does that got no answer before a restart. */
    void repeat(ObjectNode query) {
      producer.send(new ProducerRecord<>(QUERIES, query.get("id").textValue(), query.toString()));
    }

    private void read() {
      while (!closing) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
          // The answer has its query's key. The topic has other clients' answers too.
          if (record.key() != null && record.key().startsWith(prefix)) {
            take(record);
          }
        }
      }
      consumer.close();
    }

    private void take(ConsumerRecord<String, String> record) {
      CompletableFuture<JsonNode> answer = open.remove(record.key());
      if (answer == null) {
        useless.incrementAndGet();
        return;
      }
      try {
        JsonNode message = JSON.readTree(record.value());
        if (message.has("error")) {
          answer.completeExceptionally(new IllegalStateException(message.get("error").toString()));
        } else {
          answer.complete(message);
        }
      } catch (Exception error) {
        answer.completeExceptionally(error);
      }
    }

    @Override
    public void close() throws InterruptedException {
      closing = true;
      reader.join();
    }
  }

  static ObjectNode query(int k, double... vector) {
    ObjectNode query = JSON.createObjectNode().put("space", "films").put("k", k);
    ArrayNode numbers = query.putArray("vector");
    for (double number : vector) {
      numbers.add(number);
    }
    return query;
  }

  /** Ask for an answer that has seen these writes: for each partition, the offset after the last of them. */
  static ObjectNode atLeast(ObjectNode query, List<Future<RecordMetadata>> writes) throws Exception {
    Map<Integer, Long> next = new HashMap<>();
    for (Future<RecordMetadata> write : writes) {
      next.merge(write.get().partition(), write.get().offset() + 1, Math::max);
    }
    ArrayNode positions = query.putArray("at_least");
    next.forEach((partition, offset) -> positions.addObject().put("partition", partition).put("next", offset));
    return query;
  }

  static ProducerRecord<String, String> item(String key, double x, double y) {
    return new ProducerRecord<>(CATALOGUE, key, "{\"parts\": {\"films\": {\"vector\": [" + x + ", " + y + "]}}}");
  }

  static String hits(JsonNode answer) {
    StringBuilder text = new StringBuilder();
    answer.get("hits").forEach(hit -> text.append(' ').append(hit.get("key").textValue())
                                          .append('=').append(hit.get("score").floatValue()));
    return text.toString();
  }

  public static void main(String[] arguments) throws Exception {
    String kafka = arguments.length > 0 ? arguments[0] : "127.0.0.1:9092";
    Duration timeout = Duration.ofSeconds(Integer.getInteger("patience_s", 10));
    Map<String, Object> properties = Map.of("bootstrap.servers", kafka, "linger.ms", "0");
    try (var producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
         var client = new Client(kafka, producer)) {
      // Load, and ask for an answer that has seen it.
      List<Future<RecordMetadata>> writes =
          List.of(producer.send(item("alien", 3, 1)), producer.send(item("heat", 1, 0)),
                  producer.send(item("ran", 0, 2)));
      ObjectNode first = atLeast(query(2, 1, 0), writes);
      System.out.println("answer:" + hits(client.submit(first, timeout).get()));

      // A query may be answered twice, for example after a crash. Here it is sent twice.
      client.repeat(first);
      for (long end = System.nanoTime() + timeout.toNanos(); client.useless.get() == 0 && System.nanoTime() < end;) {
        Thread.sleep(10);
      }
      System.out.println("duplicates: " + client.useless.get());

      // Delete an item. A tombstone is a record without a value.
      var tombstone = List.of(producer.send(new ProducerRecord<String, String>(CATALOGUE, "alien", null)));
      System.out.println("without alien:" + hits(client.submit(atLeast(query(2, 1, 0), tombstone), timeout).get()));

      try {
        client.submit(query(2, 1), timeout).get();
      } catch (java.util.concurrent.ExecutionException error) {
        System.out.println("error: " + error.getCause().getMessage());
      }
    }
  }
}
