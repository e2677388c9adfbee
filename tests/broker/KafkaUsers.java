// SPDX-License-Identifier: Apache-2.0
// Changes users and access lists of a broker, as lines on standard input say: one JVM for a whole test. Each line is
// answered with "answer: done", or with the error. The log is on standard output too.
//
//     scram NAME MECHANISM PASSWORD       set a password
//     allow PRINCIPAL TYPE NAME OPERATION add an entry to an access list
//     forbid PRINCIPAL TYPE NAME OPERATION remove it
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

public class KafkaUsers {
  static AclBinding binding(String[] w) {
    ResourcePattern resource = new ResourcePattern(ResourceType.fromString(w[2]), w[3], PatternType.LITERAL);
    return new AclBinding(resource, new AccessControlEntry(w[1], "*", AclOperation.fromString(w[4]),
                                                           AclPermissionType.ALLOW));
  }

  static void run(Admin admin, String[] w) throws Exception {
    if (w[0].equals("allow")) {
      admin.createAcls(List.of(binding(w))).all().get();
    } else if (w[0].equals("forbid")) {
      admin.deleteAcls(List.of(binding(w).toFilter())).all().get();
    } else {
      ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.fromMechanismName(w[2]), 4096);
      admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(w[1], info, w[3]))).all().get();
    }
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) args[0]))) {
      for (String line; (line = in.readLine()) != null;) {
        try {
          run(admin, line.split(" "));
          System.out.println("answer: done");
        } catch (Exception e) {
          System.out.println("answer: " + e);
        }
      }
    }
  }
}
