#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the Debian package: lintian, the hardening, and a day of an operator in a root that systemd has booted.

The root is an overlay over this machine's, in memory, in a mount namespace of its own: nothing outside it changes.
systemd-nspawn boots it with a network of its own, and booted.py runs there.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import data
import harness

UNIT = """[Unit]
Description=Steps of tests/e2e/booted.py
[Service]
Type=oneshot
Environment=SLUICE_SLOWNESS={slowness}
ExecStart=/usr/bin/python3 /opt/sluice-test/booted.py
ExecStopPost=/bin/systemctl --no-block exit 0
StandardOutput=file:/opt/sluice-test/report
StandardError=file:/opt/sluice-test/report
TimeoutStartSec=infinity
"""

# This shell is the first process of its own process and mount namespaces: when it ends, or the test is killed, no
# process and no mount is left. Containers share a control group, so only one runs at a time.
IN_NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec")
ALONE = "exec 9>/run/lock/sluice-container && flock 9\n"

# $1: the folder with what the root gets.
BOOT = ALONE + """
mount -t tmpfs -o size=2g tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root
rm -f /mnt/root/usr/sbin/policy-rc.d # that of container images lets packages start nothing
mkdir -p /mnt/root/opt/sluice-test
cp "$1"/* /mnt/root/opt/sluice-test/
mv /mnt/root/opt/sluice-test/*.service /mnt/root/etc/systemd/system/
status=0
systemd-nspawn -q -D /mnt/root --register=no --keep-unit --private-network -b systemd.unit=sluice-test.service \
  </dev/null >"$1/console" 2>&1 || status=$?
cp /mnt/root/opt/sluice-test/report "$1/report" || { cat "$1/console"; exit 1; }
exit $status
"""


def what_is_missing():
    """Return what the test needs and a person can give; None if it is all there."""
    for program in ("systemd-nspawn", "dh", "lintian", "unshare"):
        if not shutil.which(program):
            return f"there is no {program}: run ops/setup"
    return "it needs root" if os.geteuid() != 0 else None


def why_no_container():
    """Why can this machine not boot a root?"""
    tried = subprocess.run([*IN_NAMESPACES, ALONE + """
        mount -t tmpfs tmpfs /mnt
        mkdir /mnt/upper /mnt/work /mnt/root
        mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root
        timeout 60 systemd-nspawn -q -D /mnt/root --register=no --keep-unit --private-network true </dev/null
        """], capture_output=True, text=True)
    return f"this machine cannot run a container: {tried.stderr.strip()[-300:]}" if tried.returncode else None


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = what_is_missing()
        if reason and data.CI:
            raise AssertionError(f"the package cannot be tested: {reason}")
        reason = reason or why_no_container()
        if reason:
            raise unittest.SkipTest(f"NO PACKAGE WAS TESTED, because {reason}")
        cls.folder = Path(tempfile.mkdtemp(prefix="sluice-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.made = subprocess.run([data.ROOT / "ops/package", "--from", harness.build_dir(), "--to", cls.folder / "made"],
                                  capture_output=True, text=True)

    def test_lintian_finds_nothing(self):
        self.assertEqual(self.made.returncode, 0, self.made.stdout + self.made.stderr)

    def test_it_has_the_version_of_the_daemon(self):
        said = subprocess.run([harness.build_dir() / "sluiced", "--version"], capture_output=True, text=True).stdout
        packed = subprocess.run(["dpkg-deb", "-f", self.deb(), "Version"], capture_output=True, text=True).stdout
        self.assertEqual(f"sluiced {packed}", said)

    def test_the_units_are_hardened(self):
        units = self.folder / "units"
        subprocess.run(["dpkg-deb", "-x", self.deb(), units], check=True)
        service = units / "lib/systemd/system/sluiced.service"
        self.assert_exposure_below(1.2, service)
        self.assert_exposure_below(1.2, service.with_name("sluiced@.service"))
        with_gpu = service.with_name("with-gpu.service")
        drop_in = (data.ROOT / "systemd/sluiced.service.d/gpu.conf").read_text()
        with_gpu.write_text(service.read_text().replace("[Install]", drop_in + "\n[Install]"))
        self.assert_exposure_below(2.0, with_gpu)

    def assert_exposure_below(self, limit, unit):
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={limit * 10:.0f}", unit],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def deb(self):
        (path,) = self.folder.glob("made/sluice_*.deb")
        return path

    def test_a_day_of_an_operator(self):
        given = self.folder / "given"
        given.mkdir()
        shutil.copy(self.deb(), given / "first.deb")
        self.write_next_version(given / "second.deb")
        shutil.copy(data.ROOT / "tests/e2e/booted.py", given)
        (given / "sluice-test.service").write_text(UNIT.format(slowness=harness.SLOWNESS))
        done = subprocess.run([*IN_NAMESPACES, BOOT, "sh", given], capture_output=True, text=True,
                              timeout=800 * harness.SLOWNESS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = (given / "report").read_text()
        self.assertIn("all steps passed\n", report, report)
        print(report, file=sys.stderr)

    def write_next_version(self, to):
        """Pack the same files as a later version."""
        folder = self.folder / "next"
        subprocess.run(["dpkg-deb", "-R", self.deb(), folder], check=True)
        control = folder / "DEBIAN/control"
        control.write_text(control.read_text().replace("\nVersion: ", "\nVersion: 1:"))
        subprocess.run(["dpkg-deb", "-Znone", "-b", folder, to], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    data.main()
