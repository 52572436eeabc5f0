"""Credentials in error text, masked by their known shapes.

Somebody's own exception may quote its arguments: a token, an address with a password, a key. The
words around them stay. A credential of no known shape and under no telling name is not found.
"""

from __future__ import annotations

import re

MASK = "[masked]"

_TOKENS = re.compile(
    # These prefixes are unmistakable, though a word may stand right before them.
    r"(?:\bhf|hf(?=_[A-Za-z]{0,80}\d))_[A-Za-z0-9]{16,}"  # Hugging Face
    r"|gh[oprsu]_[A-Za-z0-9]{16,}|github_pat_\w{16,}"
    r"|glpat-[\w-]{16,}"  # GitLab
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}"  # Amazon
    r"|\b(?:sk|pypi)-(?=[\w-]{0,80}\d)[\w-]{16,}"  # OpenAI, Anthropic; PyPI
    r"|\b[prs]k_(?:live|test)_\w{8,}"  # Stripe
    r"|\bnpm_(?=[A-Za-z]{0,80}\d)[A-Za-z0-9]{16,}"
    r"|\bAIza[\w-]{30,}"  # Google
    r"|\b(?:xox[a-z]|xapp)-[\w-]{10,}"  # Slack
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"  # JSON web tokens
)
_PEM = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    # Without its beginning, where the text is the end of a longer one.
    r"|(?<![\w+/=])(?:[A-Za-z0-9+/=]{16,}\s{1,2}){0,100}[A-Za-z0-9+/=]*\s?"
    r"-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)
_ADDRESS = re.compile(r"(?<=://)[^\s/:@\"'<>]*:[^\s/\"'<>]+(?=@)")
"""User and password of an address; a user alone is none."""
_BEARER = re.compile(
    r"(\bbearer\s+|\bauthorization[\"']?\s*[:=]\s*[\"']?(?:basic|token)\s+)"
    r"(?=\S{0,80}\d|\S{20})[\w.~+/=-]{8,}",
    re.IGNORECASE,
)
_SIGNED = re.compile(
    r"([?&](?:x-(?:amz|goog)-)?(?:signature|security-token|sig)=)[^&\s\"'<>]+", re.IGNORECASE
)
"""Signature of an address, which opens a file to anyone who has it."""

_BEFORE, _BETWEEN = r"(?<!\w)", r"""\\?["']?\s*(?:=>?|:)\s*"""
_SECRET = (
    r"(?:\w+-)?\w*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|secret[_-]?key"
    r"|private[_-]?key|account[_-]?key|credentials?"
    # Before a folder `pwd` has another meaning.
    r"|pwd(?!\s*=\s*[\"']?(?:[/~.]|[A-Za-z]:)))"
)
_TOKEN = (
    r"(?<![A-Za-z0-9_-])(?:\w*(?:access|api|auth|hf|hub|github|gitlab|refresh|security|session|user)"
    r"[_-])?token"
)
"""Names of credentials called tokens. In this field tokens are also pieces of text: `pad_token`,
`tokens` and numbers are none."""
_NONE = r"(?!(?:none|null|true|false|nan)\b)"
_QUOTED = r"""[bru]?(?P<quote>\\?["'])(?:(?!(?P=quote))(?:\\.|[^\\\n]))+(?:(?P<end>(?P=quote))|$)"""
"""A value in quotes: also bytes, with escapes inside, in a text that is itself quoted, and where a
line was cut."""
_BARE = r"""[^\s"',;&(){}\[\]<>]"""
_ASSIGNED = re.compile(
    rf"(?P<name>{_BEFORE}{_SECRET}{_BETWEEN})"
    rf"(?:{_QUOTED}|{_NONE}(?:(?:(?<==)|(?<== )){_BARE}+|(?=\S{{0,80}}\d){_BARE}{{4,}})(?![\w(]))",
    re.IGNORECASE | re.MULTILINE,
)
"""A value after the name of a secret. After a colon a word of letters alone belongs to a sentence:
`password: must be given`."""
_ASSIGNED_TOKEN = re.compile(
    rf"(?P<name>{_TOKEN}{_BETWEEN})(?P<open>[\"']?)"
    rf"(?:(?=\S{{0,80}}[A-Za-z])(?=\S{{0,80}}\d){_BARE}{{8,}}"
    rf"|(?<==){_NONE}(?=\S{{0,80}}[A-Za-z]){_BARE}{{8,}})(?![\w(])",
    re.IGNORECASE,
)
_WORDS = (
    r"(?!(?:an?|and|as|at|before|by|can|cannot|does|expected|for|from|given|has|have|if|in|instead|is"
    r"|may|missing|must|need|needs|no|not|of|on|or|option|requires?|so|takes?|than|that|the|to|twice"
    r"|unknown|was|were|when|which|with|without)\b)"
)
_FLAG = re.compile(
    r"(?P<name>(?<![\w-])--(?:(?:\w+-){0,3}(?:password|passwd|passphrase|secret"
    r"|(?:api|access|secret|private|account)-key)"
    r"|(?:(?:access|api|auth|hf|hub|github|gitlab|refresh|session|user)-)?token)"
    r"(?P<close>[\"']?)(?:=|,?\s)(?P<open>[\"']?))"
    rf"(?:(?<=[\"'])[^\"'\n]+|{_WORDS}[^\s\"'-][^\s\"',)\]]*)",
    re.IGNORECASE,
)
"""A flag of a command, in a line or a list. A sentence may go on after a flag's name."""


def mask_credentials(text: str) -> str:
    """Return a text with everything that looks like a credential masked."""
    if "PRIVATE KEY-----" in text:
        text = _PEM.sub(MASK, text)
    text = _ADDRESS.sub(MASK, text)
    text = _TOKENS.sub(MASK, text)
    text = _BEARER.sub(rf"\g<1>{MASK}", text)
    text = _SIGNED.sub(rf"\g<1>{MASK}", text)
    text = _FLAG.sub(rf"\g<name>{MASK}", text)
    text = _ASSIGNED.sub(_assigned, text)
    return _ASSIGNED_TOKEN.sub(rf"\g<name>\g<open>{MASK}", text)


def _assigned(match: re.Match[str]) -> str:
    return f"{match['name']}{match['quote'] or ''}{MASK}{match['end'] or ''}"
