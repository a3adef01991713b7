"""The identity of a user in a token that an identity provider signed (JSON Web Token, RFC 7519)."""

from __future__ import annotations

from typing import Any, Final

import jwt
from starlette.requests import Request

from chargeback.api.authentication import SenderIdentity
from chargeback.api.problems import Unauthenticated
from chargeback.api.signing_keys import Jwk, SigningKeys, key_source
from chargeback.config.access import JwtSettings

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
#: How much the clocks of the issuer and of this machine may differ.
LEEWAY_SECONDS: Final = 60

_UNSIGNED: Final = "This request has no token; send one as `Authorization: Bearer …`."


class JwtIdentity:
    """Returns the user whom the issuer of a signed token names in it."""

    def __init__(self, settings: JwtSettings, keys: SigningKeys | None = None) -> None:
        self._settings = settings
        self._keys = keys or SigningKeys(key_source(settings))

    async def __call__(self, _request: Request, bearer: str | None) -> SenderIdentity:
        """Return the identity in a token.

        Raises:
            Unauthenticated: there is no token, or it is not valid.
            KeysUnavailable: it cannot be verified now.
        """
        if bearer is None:
            raise Unauthenticated(_UNSIGNED)
        try:
            header = jwt.get_unverified_header(bearer)
            algorithm = header.get("alg")
            if algorithm not in ALGORITHMS:
                raise jwt.InvalidAlgorithmError
            key = await self._keys.find(header.get("kid"))
            if key is None:
                raise Unauthenticated("The token was signed with a key that its issuer does not have (any more).")
            return self._identity(self._claims(bearer, key, algorithm))
        except jwt.PyJWTError as error:
            raise Unauthenticated(_reason(error)) from None

    def _claims(self, token: str, key: Jwk, algorithm: str) -> dict[str, Any]:
        if key.get("alg", algorithm) != algorithm:
            raise jwt.InvalidAlgorithmError
        return jwt.decode(
            token,
            jwt.PyJWK(dict(key), algorithm),
            algorithms=ALGORITHMS,
            audience=self._settings.audience,
            issuer=self._settings.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True},
        )

    def _identity(self, claims: dict[str, Any]) -> SenderIdentity:
        settings = self._settings
        user, groups = claims.get(settings.user_claim), claims.get(settings.groups_claim, [])
        if not isinstance(user, str):
            raise Unauthenticated(f"The token does not name its user: it has no text `{settings.user_claim}`.")
        if settings.user_claim == "email" and claims.get("email_verified", True) not in (True, "true"):
            raise Unauthenticated("The issuer of the token has not verified the address of its user (email_verified).")
        if isinstance(groups, str):
            groups = [groups]
        if not isinstance(groups, list) or not all(isinstance(each, str) for each in groups):
            raise Unauthenticated(f"`{settings.groups_claim}` of the token is not a list of names.")
        return SenderIdentity.of(user, groups)


def _reason(error: jwt.PyJWTError) -> str:
    """Return why a token is not valid, without quoting it."""
    match error:
        case jwt.ExpiredSignatureError():
            return "The token has expired; get a new one."
        case jwt.ImmatureSignatureError():
            return "The token is not valid yet; the clock of its issuer, or of this service, may be wrong."
        case jwt.InvalidAudienceError():
            return "The token is for another service: its `aud` is not access.jwt.audience."
        case jwt.InvalidIssuerError():
            return "The token is of another issuer: its `iss` is not access.jwt.issuer."
        case jwt.MissingRequiredClaimError():
            return f"The token has no `{error.claim}`."
        case jwt.InvalidAlgorithmError():
            return f"The token is not signed with its key's algorithm, one of {', '.join(ALGORITHMS)}."
        case jwt.InvalidSignatureError():
            return "The signature of the token is wrong."
        case _:
            return "The token is not a valid JWT."
