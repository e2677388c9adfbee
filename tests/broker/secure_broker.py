# SPDX-License-Identifier: Apache-2.0
"""A broker that listens in every way that clients authenticate: a listener for each, all on 127.0.0.1.

    PLAINTEXT  without passwords, for the tests themselves; the principal is User:ANONYMOUS, a super user
    TLS        the broker has a certificate
    MTLS       the client needs one too; its principal is User:CN=NAME
    EXPIRED    the broker's certificate has expired
    SASL       TLS, and the client has a user and a password, or a token

An authorizer refuses everything to users who are not super users and have no entry in an access list.
"""

import subprocess
from pathlib import Path

import kafka_broker
from certificates import Authority
from kafka_node import free_ports, jars_dir

LISTENERS = {"TLS": "SSL", "MTLS": "SSL", "EXPIRED": "SSL", "SASL": "SASL_SSL"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
LOGIN = "org.apache.kafka.common.security"
# Users who may do everything. The user "least" may do what tests allow.
SUPER_USERS = ("User:ANONYMOUS", "User:everything", "User:CN=sluice")


def jaas(plain_users):
    """How the broker checks each mechanism. {user: password} are those of PLAIN."""
    users = " ".join(f'user_{name}="{password}"' for name, password in plain_users.items())
    scram = f"{LOGIN}.scram.ScramLoginModule required;"
    return {"plain": f"{LOGIN}.plain.PlainLoginModule required {users};",
            "scram-sha-256": scram, "scram-sha-512": scram,
            "oauthbearer": f'{LOGIN}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="b";'}


class SecureBroker(kafka_broker.KafkaBroker):
    def __init__(self, plain_users):
        ports = free_ports(len(LISTENERS) + 2)
        self.ports = dict(zip(LISTENERS, ports[2:]))
        super().__init__(ports[0])
        self.authority = Authority(self.folder, "authority")
        keystore = self.authority.bundle("broker")
        expired = self.authority.bundle("expired-broker", begin="20200101000000Z", end="20210101000000Z")
        names = "".join(f",{name}://127.0.0.1:{port}" for name, port in self.ports.items())
        protocols = "".join(f",{name}:{protocol}" for name, protocol in LISTENERS.items())
        self.properties["listeners"] += names
        self.properties["advertised.listeners"] += names
        self.properties["listener.security.protocol.map"] += protocols
        self.properties |= {
            "ssl.keystore.type": "PEM", "ssl.keystore.location": keystore,
            "ssl.truststore.type": "PEM", "ssl.truststore.location": self.authority.ca,
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.expired.ssl.keystore.type": "PEM", "listener.name.expired.ssl.keystore.location": expired,
            "listener.name.sasl.sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": ";".join(SUPER_USERS),
            "connection.failed.authentication.delay.ms": 100,
            **kafka_broker.RESTARTS_SOON,
        }
        for mechanism, text in jaas(plain_users).items():
            self.properties[f"listener.name.sasl.{mechanism}.sasl.jaas.config"] = text
        self.users = None

    def address(self, listener):
        return f"127.0.0.1:{self.ports[listener]}"

    def start(self):
        super().start()
        if self.users is None:
            self.users = subprocess.Popen(
                ["java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                 f"-Dlog4j.configuration=file:{self.folder}/log4j.properties", "-cp", f"{jars_dir().resolve()}/*",
                 str(Path(__file__).with_name("KafkaUsers.java")), self.bootstrap],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return self

    def change(self, *words):
        """Change users or access lists: the words of a line of KafkaUsers.java."""
        self.users.stdin.write(" ".join(words) + "\n")
        self.users.stdin.flush()
        answer = next((line for line in self.users.stdout if line.startswith("answer: ")), "it has ended").strip()
        if answer != "answer: done":
            raise RuntimeError(f"{' '.join(words)}: {answer}")

    def close(self):
        if self.users:
            self.users.stdin.close()
            self.users.wait(30)
            self.users.stdout.close()
            self.users = None
        super().close()
