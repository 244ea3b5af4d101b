"""The server's side of SCRAM (RFC 5802) in Python, written from the RFC, to judge the core's client by."""

import base64
import hashlib
import hmac
import os


class ScramServer:
    """One conversation with a client; the server knows its user name and password."""

    def __init__(self, digest, username, password, iterations=4096, salt=None):
        self.digest = digest
        self.username = username
        self.iterations = iterations
        self.salt = os.urandom(16) if salt is None else salt
        self.nonce = base64.b64encode(os.urandom(12))
        salted = hashlib.pbkdf2_hmac(digest, password, self.salt, iterations)
        self.stored_key = hashlib.new(digest, self._hmac(salted, b"Client Key")).digest()
        self.server_key = self._hmac(salted, b"Server Key")

    def _hmac(self, key, data):
        return hmac.new(key, data, self.digest).digest()

    def first(self, message):
        """The client's first message → the server's."""
        assert message.startswith(b"n,,")
        self.client_first = message[3:]
        name, nonce = self.client_first.split(b",")
        assert name[:2] == b"n=" and nonce[:2] == b"r="
        assert name[2:].replace(b"=2C", b",").replace(b"=3D", b"=") == self.username
        self.client_nonce = nonce[2:]
        assert len(base64.b64decode(self.client_nonce)) >= 16
        self.server_first = b"r=%s%s,s=%s,i=%d" % (
            self.client_nonce, self.nonce, base64.b64encode(self.salt), self.iterations)
        return self.server_first

    def final(self, message):
        """The client's proof → the server's signature, or its refusal."""
        without_proof, proof = message.rsplit(b",p=", 1)
        if without_proof != b"c=biws,r=" + self.client_nonce + self.nonce:
            return b"e=invalid-encoding"
        auth = b",".join((self.client_first, self.server_first, without_proof))
        signature = self._hmac(self.stored_key, auth)
        key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
        if hashlib.new(self.digest, key).digest() != self.stored_key:
            return b"e=invalid-proof"
        return b"v=" + base64.b64encode(self._hmac(self.server_key, auth))
