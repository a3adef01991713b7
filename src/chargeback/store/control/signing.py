"""Signatures of receipts (Ed25519, RFC 8032): who has the public key can tell that the holder of the private one wrote
them."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature, and the public key that it is checked with, both in base64."""

    public_key: str
    signature: str

    def is_of(self, text: str) -> bool:
        """Return whether it is that of a text, in UTF-8."""
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(self.public_key))
        try:
            key.verify(base64.b64decode(self.signature), text.encode())
        except InvalidSignature:
            return False
        return True


def sign(private_key: bytes, text: str) -> Signature:
    """Return the signature of a text by the private key of 32 bytes."""
    key = Ed25519PrivateKey.from_private_bytes(private_key)
    public = key.public_key().public_bytes_raw()
    return Signature(base64.b64encode(public).decode(), base64.b64encode(key.sign(text.encode())).decode())
