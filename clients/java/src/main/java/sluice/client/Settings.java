// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import java.util.HashMap;
import java.util.Map;

/** Properties of Kafka's clients. */
final class Settings {
  private Settings() {}

  /** What the caller set, and the defaults of what he did not set. */
  static Map<String, Object> with(Map<String, Object> kafka, Map<String, Object> defaults) {
    Map<String, Object> all = new HashMap<>(defaults);
    all.putAll(kafka);
    return all;
  }
}
