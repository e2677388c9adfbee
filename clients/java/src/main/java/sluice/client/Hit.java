// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * An item that was found.
 *
 * @param key its key as text; if that is not UTF-8, the message has its bytes
 * @param message all fields, such as `attributes`, `value` and `similarity`
 */
public record Hit(String key, float score, JsonNode message) {
  static Hit of(JsonNode hit) {
    return new Hit(hit.path("key").asText(), hit.path("score").floatValue(), hit);
  }
}
