#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the package and its units promise, tested in a root of its own that systemd has booted (test_package.py).

Each function is one step of an operator's day, and goes on where the one before it ended. There is no Kafka here: the
embedded broker of the instance `broker` takes its place. A step only waits for what must happen, however slow the
machine is.
"""

import contextlib
import glob
import json
import os
import pwd
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
SLOWNESS = float(os.environ.get("SLUICE_SLOWNESS") or 1)
PATIENCE_S = 60 * SLOWNESS
DROP_IN = Path("/etc/systemd/system/sluiced.service.d/test.conf")
CONFIG = Path("/etc/sluice/sluice.yaml")
BROKER_HTTP, MAIN_HTTP, KAFKA = 8322, 8321, 9092


def run(*words, check=True):
    done = subprocess.run(words, capture_output=True, text=True)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(words)} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def systemctl(*words, check=True):
    return run("systemctl", *words, check=check)


def show(name, unit="sluiced"):
    return systemctl("show", "--value", "-p", name, unit).stdout.strip()


def journal(unit="sluiced"):
    run("journalctl", "--sync")
    return run("journalctl", "-q", "-o", "cat", "-u", unit).stdout


def events(name=None, unit="sluiced"):
    """Return the journal's entries of an event, or of all, as dictionaries."""
    run("journalctl", "--sync")
    lines = run("journalctl", "-q", "-o", "json", "-u", unit, *([f"SLUICE_EVENT={name}"] if name else ())).stdout
    return [entry for line in lines.splitlines() if "SLUICE_EVENT" in (entry := json.loads(line))]


def eventually(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"no {what} after {PATIENCE_S:.0f} s")
        time.sleep(0.05)
    return value


def same(found, due, what=""):
    if found != due:
        raise AssertionError(f"{what}: {found!r}, not {due!r}")


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except urllib.error.URLError:
        return 0, "nothing listens yet"


def write_config(path, store, port, more):
    path.write_text(f"store:\n  path: {store}\nspaces:\n  films:\n    model: /etc/sluice/films.safetensors\n"
                    f"engine:\n  backend: cpu\nhttp:\n  listen: 127.0.0.1:{port}\n{more}")


def write_drop_in(text):
    DROP_IN.parent.mkdir(exist_ok=True)
    DROP_IN.write_text(text)
    systemctl("daemon-reload")


def install(name):
    """Install a package without triggers, which rebuild the index of all manual pages."""
    run("dpkg", "-i", "--force-unsafe-io", "--no-triggers", str(HERE / name))


def restarted(pid):
    """Wait until another process than `pid` is the daemon, and ready."""
    eventually(lambda: show("MainPID") not in (pid, "0") and show("ActiveState") == "active", "restarted daemon")


# ------------------------------------------------------------------------------------------------------------- steps


def the_package_installs_and_starts_nothing():
    install("first.deb")
    same(pwd.getpwnam("sluice").pw_dir, "/var/lib/sluice")
    same(systemctl("is-enabled", "sluiced", check=False).stdout, "disabled\n")
    same(show("ActiveState"), "inactive")
    for page in ("sluiced.8", "sluicectl.1", "sluice.yaml.5"):
        run("man", "-w", page)


def the_units_have_no_fault():
    same(run("systemd-analyze", "verify", *glob.glob("/lib/systemd/system/sluice*.service")).stderr, "")


def without_a_configuration_a_start_fails_once():
    same(systemctl("start", "sluiced", check=False).returncode, 1)
    same((show("ActiveState"), show("ExecMainStatus"), show("NRestarts")), ("failed", "78", "0"))
    assert "/etc/sluice/sluice.yaml" in journal(), journal()


def a_wrong_configuration_fails_once_and_is_explained():
    CONFIG.write_text("store:\n  pth: /var/lib/sluice\n")
    same(systemctl("start", "sluiced", check=False).returncode, 1)
    same((show("ActiveState"), show("ExecMainStatus"), show("NRestarts")), ("failed", "78", "0"))
    assert "sluice.yaml:2" in journal(), journal()


def an_instance_has_its_own_configuration_and_store():
    write_model()
    write_config(Path("/etc/sluice/broker.yaml"), "/var/lib/sluice/broker", BROKER_HTTP,
                 "query:\n  group: broker\nembedded_broker:\n  enabled: true\n")
    systemctl("start", "sluiced@broker")
    assert Path("/var/lib/sluice/broker").owner() == "sluice"
    item = '{"parts": {"films": {"vector": [3, 1]}}}'
    run("sluicectl", "--config", "/etc/sluice/broker.yaml", "put", "alien", item)


def write_model():
    header = json.dumps({"__metadata__": {"sluice.similarity": "dot", "sluice.dim": "2"}}).encode()
    Path("/etc/sluice/films.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)


def a_start_waits_for_kafka_beyond_its_time_limit():
    """Nothing listens at Kafka's address yet. TimeoutStartSec= is extended for as long as the daemon makes progress."""
    write_config(CONFIG, "/var/lib/sluice", MAIN_HTTP,
                 f"kafka:\n  bootstrap.servers: 127.0.0.1:{KAFKA}\n  reconnect.backoff.max.ms: 500\n")
    write_drop_in(f"[Service]\nTimeoutStartSec={2 * SLOWNESS}\nRestartSec=100ms\n")
    systemctl("start", "--no-block", "sluiced", "sluice-wait")
    eventually(lambda: "not ready" in show("StatusText"), "status of a daemon that waits")
    eventually(lambda: get(MAIN_HTTP, "/readyz")[0] == 503, "page")
    time.sleep(3 * SLOWNESS)
    same((show("ActiveState"), show("NRestarts")), ("activating", "0"))
    same(show("ActiveState", "sluice-wait"), "inactive")


def a_start_ends_when_the_daemon_is_ready():
    waiting = show("StatusText")
    forward_kafka()
    eventually(lambda: show("ActiveState") == "active", "start")
    same(get(MAIN_HTTP, "/readyz"), (200, "ready\n"))
    eventually(lambda: re.match("ready; 1 items", show("StatusText")), f"other status than {waiting}")
    eventually(lambda: show("ActiveState", "sluice-wait") == "active", "end of sluice-wait")


def forward_kafka():
    """Forward Kafka's usual port to the embedded broker. Its answers name its own port, so only the first connection of
    a client comes through here."""
    host, port = json.loads(get(BROKER_HTTP, "/status")[1])["kafka"]["bootstrap"].split(":")
    listener = socket.create_server(("127.0.0.1", KAFKA))

    def serve():
        while True:
            threading.Thread(target=forward, args=(listener.accept()[0], (host, int(port))), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()


def forward(near, address):
    """Copy between a connection and a new one to the address, until one of them ends."""
    with near, contextlib.suppress(OSError), socket.create_connection(address) as far:
        while True:
            for ready in select.select([near, far], [], [])[0]:
                content = ready.recv(65536)
                if not content:
                    return
                (far if ready is near else near).sendall(content)


def the_hardening_is_in_force():
    status = Path(f"/proc/{show('MainPID')}/status").read_text()
    for name, value in (("Seccomp", "2"), ("NoNewPrivs", "1"), ("CapEff", "0" * 16), ("CapBnd", "0" * 16)):
        assert f"{name}:\t{value}\n" in status, f"{name} is not {value}:\n{status}"
    same(Path(f"/proc/{show('MainPID')}").owner(), "sluice")


def the_daemon_may_stand_back_for_searches():
    """Where systemd itself may not raise the limit, as in some containers, the daemon says that it does not."""
    limits = Path(f"/proc/{show('MainPID')}/limits").read_text()
    may_return = re.search(r"Max nice priority +20 ", limits) is not None
    same(not events("no_background"), may_return, "no_background")


def a_reload_takes_effect_and_a_wrong_one_changes_nothing():
    pid, right = show("MainPID"), CONFIG.read_text()
    CONFIG.write_text(right + "log:\n  level: debug\n")
    systemctl("reload", "sluiced")
    eventually(lambda: [e["SLUICE_CHANGED"] for e in events("reloaded")] == ["log.level"], "reload")
    CONFIG.write_text(right + "log:\n  level: loud\n")
    systemctl("reload", "sluiced")
    eventually(lambda: len(events("reload_refused")) == 2, "refusal: the problem, and their number")
    same((show("ActiveState"), show("MainPID")), ("active", pid))
    CONFIG.write_text(right)


def the_journal_has_each_event_with_its_fields():
    problem, summary = events("reload_refused")
    same((problem["PRIORITY"], problem["SYSLOG_IDENTIFIER"]), ("3", "sluiced"))
    same(problem["_SYSTEMD_UNIT"], "sluiced.service")
    assert "loud" in problem["SLUICE_PROBLEM"], problem
    assert problem["MESSAGE"].startswith('A reload was refused: problem="'), problem
    same((summary["SLUICE_CONFIG"], summary["SLUICE_PROBLEMS"]), (str(CONFIG), "1"))
    (started,) = events("started")
    same((started["PRIORITY"], started["SLUICE_CONFIG"]), ("6", str(CONFIG)))


def the_journal_explains_events():
    run("dpkg", "--triggers-only", "systemd")  # install() has put it off
    (problem, _) = events("reload_refused")
    text = run("journalctl", "-q", "-x", f"MESSAGE_ID={problem['MESSAGE_ID']}").stdout
    assert "Subject: A reload was refused" in text, text
    assert problem["SLUICE_PROBLEM"] in text.split("Subject:")[1], text
    assert "The daemon goes on with the configuration that it had." in text, text


def a_killed_daemon_is_restarted():
    pid = show("MainPID")
    os.kill(int(pid), signal.SIGKILL)
    restarted(pid)
    eventually(lambda: "ready; 1 items" in show("StatusText"), "item from the store")


def a_credential_reaches_the_daemon():
    secret, without = Path("/etc/sluice/kafka-password"), CONFIG.read_text()
    secret.touch(mode=0o600)
    secret.write_text("correct horse\n")
    CONFIG.write_text(without.replace("kafka:\n", "kafka:\n  sasl.password: credential:kafka-password\n"))
    same(systemctl("restart", "sluiced", check=False).returncode, 1)  # it is not there yet
    same(show("ExecMainStatus"), "78")
    write_drop_in("[Service]\nLoadCredential=kafka-password:/etc/sluice/kafka-password\n"
                  f"WatchdogSec={5 * SLOWNESS}\nTimeoutAbortSec=1\nRestartSec=100ms\nLimitCORE=0\n")
    systemctl("start", "sluiced")
    refused = len(events("reload_refused"))
    systemctl("reload", "sluiced")
    eventually(lambda: len(events("reloaded")) == 2, "second reload")
    same(len(events("reload_refused")), refused)
    CONFIG.write_text(without)


def a_stopped_daemon_is_restarted_by_the_watchdog():
    pid = show("MainPID")
    os.kill(int(pid), signal.SIGSTOP)
    restarted(pid)
    assert "Watchdog timeout" in journal(), journal()


def a_daemon_that_always_fails_is_given_up():
    systemctl("stop", "sluiced")
    write_drop_in("[Unit]\nStartLimitBurst=3\n[Service]\nRestartSec=100ms\n")
    systemctl("reset-failed", "sluiced", check=False)  # forget the restarts so far
    with socket.create_server(("127.0.0.1", MAIN_HTTP)):  # the address is in use: exit status 1, which a restart may help
        systemctl("start", "--no-block", "sluiced")
        eventually(lambda: show("ActiveState") == "failed", "end of the restarts")
    same((show("ExecMainStatus"), show("NRestarts")), ("1", "3"))
    systemctl("reset-failed", "sluiced")


def an_upgrade_restarts_a_running_daemon_but_no_instance():
    write_drop_in("[Service]\nRestartSec=100ms\n")
    systemctl("enable", "--now", "sluiced")
    pid, instance = show("MainPID"), show("MainPID", "sluiced@broker")
    install("second.deb")
    same(show("ActiveState"), "active")
    assert show("MainPID") != pid
    same(show("MainPID", "sluiced@broker"), instance)
    same(systemctl("is-enabled", "sluiced").stdout, "enabled\n")


def a_stop_is_clean():
    systemctl("stop", "sluiced")
    same((show("ActiveState"), show("Result"), show("ExecMainStatus")), ("inactive", "success", "0"))
    last = events()[-1]
    same((last["SLUICE_EVENT"], last["SLUICE_STATUS"]), ("stopped", "0"))


def a_removal_stops_all_and_keeps_configuration_and_store():
    systemctl("start", "sluiced")
    run("dpkg", "-r", "--no-triggers", "sluice")
    same(show("ActiveState"), "inactive")
    same(show("ActiveState", "sluiced@broker"), "inactive")
    assert CONFIG.exists() and Path("/var/lib/sluice/data.mdb").exists(), os.listdir("/var/lib/sluice")


def a_purge_deletes_the_store():
    run("dpkg", "-P", "--no-triggers", "sluice")
    assert not Path("/var/lib/sluice").exists()
    assert CONFIG.exists()
    same(glob.glob("/etc/systemd/system/multi-user.target.wants/sluice*"), [])


STEPS = (the_package_installs_and_starts_nothing, the_units_have_no_fault, without_a_configuration_a_start_fails_once,
         a_wrong_configuration_fails_once_and_is_explained, an_instance_has_its_own_configuration_and_store,
         a_start_waits_for_kafka_beyond_its_time_limit, a_start_ends_when_the_daemon_is_ready,
         the_hardening_is_in_force, the_daemon_may_stand_back_for_searches,
         a_reload_takes_effect_and_a_wrong_one_changes_nothing,
         the_journal_has_each_event_with_its_fields, the_journal_explains_events, a_killed_daemon_is_restarted,
         a_credential_reaches_the_daemon, a_stopped_daemon_is_restarted_by_the_watchdog,
         a_daemon_that_always_fails_is_given_up, an_upgrade_restarts_a_running_daemon_but_no_instance, a_stop_is_clean,
         a_removal_stops_all_and_keeps_configuration_and_store, a_purge_deletes_the_store)


def main():
    for step in STEPS:
        started = time.monotonic()
        try:
            step()
        except Exception:
            print(f"{step.__name__}: FAILED\n{traceback.format_exc()}", flush=True)
            print(systemctl("status", "sluiced", "sluiced@broker", check=False).stdout, journal()[-4000:], flush=True)
            return 1
        print(f"{step.__name__}: ok, {time.monotonic() - started:.1f} s", flush=True)
    print("all steps passed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
