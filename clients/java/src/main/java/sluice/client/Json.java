// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.JsonSerializer;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;

/** Messages as JSON. */
final class Json {
  private static final ObjectMapper MAPPER =
      new ObjectMapper().registerModule(new SimpleModule().addSerializer(Instant.class, new Times()));

  /** Times are milliseconds since 1970. */
  private static final class Times extends JsonSerializer<Instant> {
    @Override
    public void serialize(Instant time, JsonGenerator out, SerializerProvider provider) throws IOException {
      out.writeNumber(time.toEpochMilli());
    }
  }

  private Json() {}

  static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  /**
   * The value as the daemon takes it: numbers, texts, truth values, times, lists and arrays of them, null. Throws
   * IllegalArgumentException for numbers that no message can have.
   */
  static JsonNode of(Object value) {
    JsonNode node = MAPPER.valueToTree(value);
    verifyFinite(node);
    return node;
  }

  private static void verifyFinite(JsonNode node) {
    if (node.isFloatingPointNumber() && !Double.isFinite(node.doubleValue())) {
      throw new IllegalArgumentException("a number that is not finite: " + node);
    }
    node.forEach(Json::verifyFinite);
  }

  static ArrayNode positions(Positions positions) {
    ArrayNode list = MAPPER.createArrayNode();
    positions.next().forEach((partition, next) -> list.addObject().put("partition", partition).put("next", next));
    return list;
  }

  static byte[] bytes(ObjectNode message) {
    return message.toString().getBytes(StandardCharsets.UTF_8);
  }

  /** Throws IllegalStateException if the bytes are no JSON object. */
  static JsonNode parse(byte[] bytes) {
    try {
      JsonNode message = MAPPER.readTree(bytes);
      if (message.isObject()) {
        return message;
      }
    } catch (IOException error) {
      throw new IllegalStateException("an answer that is no JSON object", error);
    }
    throw new IllegalStateException("an answer that is no JSON object");
  }
}
