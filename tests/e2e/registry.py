# SPDX-License-Identifier: Apache-2.0
"""A schema registry for tests: GET of schemas by id, and of versions of subjects, as Confluent's answers it."""

import base64
import json
import re
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


class Registry:
    """Has schemas by id: text, or what the registry answers. subjects: the same by SUBJECT/VERSION. code: another
    status than 200 for all answers; broken: ids that get status 500. login: who may ask, as user:password.
    certificate: paths of a certificate and its key; then it is asked by TLS."""

    def __init__(self, schemas, login=None, certificate=None, subjects=None):
        self.schemas, self.subjects, self.code, self.asked = dict(schemas), subjects or {}, 200, []
        self.broken, self.login = set(), login
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                code, body = registry.answer(self.path) if self.headers["authorization"] == registry.due() else refusal(
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

    def due(self):
        return self.login and "Basic " + base64.b64encode(self.login.encode()).decode()

    def answer(self, path):
        self.asked.append(path)
        if self.code != 200:
            return refusal(self.code, self.code, "The store is not ready")
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path):
            if int(found[1]) in self.broken:
                return refusal(500, 50001, "Error in the backend data store")
            return found_or(self.schemas.get(int(found[1])), f"Schema {found[1]} not found", 40403)
        if found := re.fullmatch(r"/subjects/([^/]+)/versions/(\d+)", path):
            return found_or(self.subjects.get(f"{unquote(found[1])}/{found[2]}"), "Subject not found", 40401)
        return refusal(404, 404, "HTTP 404 Not Found")

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def found_or(schema, message, error_code):
    if schema is None:
        return refusal(404, error_code, message)
    return 200, {"schema": schema} if isinstance(schema, str) else schema


def refusal(code, error_code, message):
    return code, {"error_code": error_code, "message": message}
