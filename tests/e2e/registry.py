# SPDX-License-Identifier: Apache-2.0
"""A schema registry for tests: GET /schemas/ids/ID, as Confluent's answers it."""

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Registry:
    """Has schemas by id, as text. code: another status than 200 for all answers. login: who may ask, as user:password.
    certificate: paths of a certificate and its key; then it is asked by TLS."""

    def __init__(self, schemas, login=None, certificate=None):
        self.schemas, self.code, self.asked = dict(schemas), 200, []
        due = login and "Basic " + base64.b64encode(login.encode()).decode()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                code, body = registry.answer(self.path) if self.headers["authorization"] == due else refusal(
                    401, 401, "Unauthorized")
                body = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.url = self.url.replace("http", "https")
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def answer(self, path):
        self.asked.append(path)
        if self.code != 200:
            return refusal(self.code, self.code, "The store is not ready")
        name = path.removeprefix("/schemas/ids/")
        if name == path or not name.isdigit():
            return refusal(404, 404, "HTTP 404 Not Found")
        text = self.schemas.get(int(name))
        return (200, {"schema": text}) if text else refusal(404, 40403, f"Schema {name} not found")

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def refusal(code, error_code, message):
    return code, {"error_code": error_code, "message": message}
