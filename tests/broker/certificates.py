# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made with the openssl program: an authority, and what it issues."""

import subprocess
from pathlib import Path


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=60)


class Authority:
    """A certificate authority. Its certificate is `ca`."""

    def __init__(self, folder, name):
        self.folder = Path(folder) / name
        self.folder.mkdir(parents=True)
        self.ca, self.key = self.folder / "ca.pem", self.folder / "ca.key"
        self._run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 30, "-subj",
                  f"/CN={name}", "-keyout", self.key, "-out", self.ca)
        (self.folder / "index").touch()
        (self.folder / "serial").write_text("01\n")
        (self.folder / "ca.conf").write_text(
            f"[ca]\ndefault_ca=us\n[us]\ndatabase={self.folder}/index\nserial={self.folder}/serial\n"
            f"new_certs_dir={self.folder}\ndefault_md=sha256\npolicy=any\nunique_subject=no\ncopy_extensions=copy\n"
            "[any]\ncommonName=supplied\n")

    @staticmethod
    def _run(*words):
        openssl(*words)

    def issue(self, name, begin="20200101000000Z", end="20490101000000Z"):
        """Issue a certificate for 127.0.0.1 and return the paths of certificate and key."""
        certificate, key, request = (self.folder / f"{name}.{kind}" for kind in ("pem", "key", "csr"))
        self._run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                  "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out", request)
        self._run("ca", "-batch", "-notext", "-config", self.folder / "ca.conf", "-cert", self.ca, "-keyfile", self.key,
                  "-startdate", begin, "-enddate", end, "-in", request, "-out", certificate)
        return certificate, key

    def bundle(self, name, **times):
        """Issue a certificate, and return the path of one file with its key and the chain, as Java takes it."""
        certificate, key = self.issue(name, **times)
        both = self.folder / f"{name}.both.pem"
        both.write_text(key.read_text() + certificate.read_text() + self.ca.read_text())
        return both
