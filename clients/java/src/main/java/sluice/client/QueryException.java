// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import java.util.Set;

/** The daemon answered with an error. */
public final class QueryException extends RuntimeException {
  private static final long serialVersionUID = 1;
  private static final Set<String> PASSING = Set.of("NOT_SEEN", "UNAVAILABLE", "PARTIAL");
  private final String code;

  QueryException(String code, String message) {
    super(code + ": " + message);
    this.code = code;
  }

  /** Its name, such as "BAD_QUERY"; docs/protocol.md lists them. */
  public String code() {
    return code;
  }

  /** Can the same query succeed if it is sent again? */
  public boolean canRetry() {
    return PASSING.contains(code);
  }
}
