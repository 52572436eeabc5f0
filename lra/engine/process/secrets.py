"""Credentials in error text, masked by the shapes that they are known by.

Somebody's own exception may quote what it was called with: a token, an address with a password, a
key. The words around stay. A credential of no known shape and under no telling name is not found.
"""

from __future__ import annotations

import re

MASK = "[masked]"

_TOKENS = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}"  # Hugging Face
    r"|\bsk-(?=[\w-]*\d)[\w-]{16,}"  # OpenAI, Anthropic
    r"|\bgh[oprsu]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}"
    r"|\bglpat-[\w-]{16,}"  # GitLab
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"  # Amazon
    r"|\bAIza[\w-]{30,}"  # Google
    r"|\b(?:xox[a-z]|xapp)-[\w-]{10,}"  # Slack
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"  # JSON web tokens
)
_PEM = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    # Without its beginning, where a text is the end of a longer one.
    r"|(?<![\w+/])(?:[A-Za-z0-9+/=]{16,}\s+)*[A-Za-z0-9+/=]*\s*-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)
_ADDRESS = re.compile(r"(?<=://)[^\s/:@\"'<>]*:[^\s/\"'<>]+(?=@)")
"""User and password of an address; a user alone is none."""
_BEARER = re.compile(
    r"(\bbearer\s+|\bauthorization[\"']?\s*[:=]\s*[\"']?(?:basic|token)\s+)"
    r"(?=\S*\d|\S{20})[\w.~+/=-]{8,}",
    re.IGNORECASE,
)
_SIGNED = re.compile(
    r"([?&](?:x-(?:amz|goog)-)?(?:signature|security-token|sig)=)[^&\s\"'<>]+", re.IGNORECASE
)
"""An address that opens a file to whoever has it."""

_BEFORE, _BETWEEN = r"(?<!\w)", r"""\\?["']?\s*(?:=>?|:)\s*"""
_SECRET = (
    r"(?:\w+-)?\w*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|secret[_-]?key"
    r"|private[_-]?key|credentials?)"
)
_TOKEN = (
    r"(?<![A-Za-z0-9_-])(?:\w*(?:access|api|auth|hf|hub|github|gitlab|refresh|security|session|user)"
    r"[_-])?token"
)
"""In this field tokens are pieces of text: `pad_token`, `tokens` and numbers are none."""
_NONE = r"(?!(?:none|null|true|false|nan)\b)"
_QUOTED = r"""[bru]?(?P<quote>\\?["'])(?:(?!(?P=quote))(?:\\.|[^\\\n]))+(?P=quote)"""
"""Bytes too, with escapes inside, and in a text that is itself quoted."""
_BARE = r"""[^\s"',;&(){}\[\]<>]"""
_ASSIGNED = re.compile(
    rf"(?P<name>{_BEFORE}{_SECRET}{_BETWEEN})"
    rf"(?:{_QUOTED}|{_NONE}(?:(?:(?<==)|(?<== )){_BARE}+|(?=\S*\d){_BARE}{{4,}})(?![\w(]))",
    re.IGNORECASE,
)
"""After a colon a word of letters alone is a sentence's: `password: must be given`."""
_ASSIGNED_TOKEN = re.compile(
    rf"(?P<name>{_TOKEN}{_BETWEEN})(?P<open>[\"']?)"
    rf"(?:(?=\S*[A-Za-z])(?=\S*\d){_BARE}{{8,}}|(?<==){_NONE}(?=\S*[A-Za-z]){_BARE}{{8,}})(?![\w(])",
    re.IGNORECASE,
)


def mask_credentials(text: str) -> str:
    """Return a text with what looks like a credential masked."""
    if "PRIVATE KEY-----" in text:
        text = _PEM.sub(MASK, text)
    text = _ADDRESS.sub(MASK, text)
    text = _TOKENS.sub(MASK, text)
    text = _BEARER.sub(rf"\g<1>{MASK}", text)
    text = _SIGNED.sub(rf"\g<1>{MASK}", text)
    text = _ASSIGNED.sub(_mask_assignment, text)
    return _ASSIGNED_TOKEN.sub(rf"\g<name>\g<open>{MASK}", text)


def _mask_assignment(match: re.Match[str]) -> str:
    quote = match["quote"] or ""
    return f"{match['name']}{quote}{MASK}{quote}"
