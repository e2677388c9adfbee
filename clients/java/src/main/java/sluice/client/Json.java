// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Instant;

/** Messages as JSON. */
final class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  /** The value as the daemon takes it: numbers, texts, truth values, lists and arrays of them, times, null. */
  static JsonNode of(Object value) {
    if (value instanceof Instant) {
      return MAPPER.valueToTree(((Instant) value).toEpochMilli());
    }
    return MAPPER.valueToTree(value);
  }

  /** Throws IllegalArgumentException for numbers that no message can have. */
  static ArrayNode numbers(float[] vector) {
    ArrayNode numbers = MAPPER.createArrayNode();
    for (float number : vector) {
      if (!Float.isFinite(number)) {
        throw new IllegalArgumentException("the vector has a number that is not finite: " + number);
      }
      numbers.add(number);
    }
    return numbers;
  }

  static ArrayNode positions(Positions positions) {
    ArrayNode list = MAPPER.createArrayNode();
    positions.next().forEach((partition, next) -> list.addObject().put("partition", partition).put("next", next));
    return list;
  }

  static byte[] bytes(ObjectNode message) {
    return message.toString().getBytes(StandardCharsets.UTF_8);
  }

  static JsonNode parse(byte[] bytes) throws java.io.IOException {
    return MAPPER.readTree(bytes);
  }
}
