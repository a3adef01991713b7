"""An issuer of signed tokens: its keys, the set of public keys, and tokens like those of identity providers."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

ISSUER = "https://idp.example.com"
AUDIENCE = "https://costs.example.com"


@cache
def private_key(algorithm: str, key_id: str) -> Any:
    """Return a private key for an algorithm; each id has a different key."""
    if algorithm.startswith("ES"):
        return ec.generate_private_key(ec.SECP384R1() if algorithm == "ES384" else ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate() if algorithm == "EdDSA" else rsa.generate_private_key(65537, 2048)


@dataclass
class Issuer:
    """Signs with a key of ``algorithm`` that has the id ``key_id``."""

    algorithm: str = "ES256"
    key_id: str = "key-1"
    claims: dict[str, Any] = field(default_factory=dict)

    @property
    def jwk(self) -> dict[str, Any]:
        """Return the public key as a JWK."""
        public = private_key(self.algorithm, self.key_id).public_key()
        written = get_default_algorithms()[self.algorithm].to_jwk(public, as_dict=True)
        return {**written, "kid": self.key_id, "alg": self.algorithm, "use": "sig"}

    def publish(self, file: Path, *more: dict[str, Any]) -> Path:
        """Write the set of keys to a file, in one step."""
        new = file.with_suffix(".new")
        new.write_text(json.dumps({"keys": [self.jwk, *more]}), encoding="utf-8")
        return new.replace(file)

    def token(self, user: str = "ann@example.com", *groups: str, **claims: Any) -> str:
        """Return a token of a user that is valid for five minutes; a claim of None is omitted, a duration is relative
        to now."""
        now = int(time.time())
        content = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "iat": now,
            "nbf": now,
            "exp": now + 300,
            "sub": "1234",
            "email": user,
            "groups": list(groups),
        }
        given = {
            name: now + int(value.total_seconds()) if isinstance(value, timedelta) else value
            for name, value in (content | self.claims | claims).items()
            if value is not None
        }
        key = private_key(self.algorithm, self.key_id)
        return jwt.encode(given, key, algorithm=self.algorithm, headers={"kid": self.key_id})
