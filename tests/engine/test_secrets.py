"""No credential of a known shape stays in a text that is published; every other word does.

The credentials here are made up, and put together so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import pytest

from lra.engine.process.secrets import MASK, mask_credentials

BODY = "aB3dE5fG7hJ9kL1mN3pQ5rS7"
JWT = ".".join(("ey" + "JhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIn0", "dozjgNryP4J3jVmN"))
KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n{KEY}=\n-----END RSA PRIVATE KEY-----"

TOKENS = {
    "hugging face": "hf" + f"_{BODY}",
    "openai": "sk" + f"-{BODY}",
    "openai of a project": "sk" + f"-proj-{BODY}",
    "github": "gh" + f"p_{BODY}",
    "github oauth": "gh" + f"o_{BODY}",
    "github fine": "github" + f"_pat_{BODY}",
    "amazon": "AK" + "IAIOSFODNN7EXAMPLE",
    "slack": "xo" + "xb-123456789012-abcdef",
    "slack's app": "xa" + "pp-1-A0123-0123-abcdef",
    "gitlab": "gl" + f"pat-{BODY}",
    "google": "AI" + f"za{BODY}{BODY}",
    "stripe": "sk" + f"_live_{BODY}",
    "stripe, restricted": "rk" + f"_test_{BODY}",
    "npm": "np" + f"m_{BODY}",
    "pypi": "py" + f"pi-AgEI{BODY}",
    "json web token": JWT,
    "key": PEM,
    "key on one line": " ".join(PEM.split()),
    "end of a key": PEM.partition("\n")[2],
}


@pytest.mark.parametrize("secret", TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize(
    "around",
    ["cannot log in with {}", "refused ({}), try again", "'{}'", "url?x:{}&y=1", "a\n{}\nb"],
)
def test_a_credential_is_masked_and_the_words_around_it_stay(secret: str, around: str) -> None:
    found = mask_credentials(around.format(secret))
    assert found == around.format(MASK)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("get https://me:pa55@host.org/x failed", f"get https://{MASK}@host.org/x failed"),
        ("postgres://me:p@ss:w@db:5432/x", f"postgres://{MASK}@db:5432/x"),
        ("Authorization: Bearer abc123def456", f"Authorization: Bearer {MASK}"),
        ("login(password=hunter) failed", f"login(password={MASK}) failed"),
        ("{'password': 'two words', 'n': 3}", f"{{'password': '{MASK}', 'n': 3}}"),
        ('{"api_key": "abc"}', f'{{"api_key": "{MASK}"}}'),
        ("DB_PASSWORD=x1 HOST=y", f"DB_PASSWORD={MASK} HOST=y"),
        ("password: hunter2 is wrong", f"password: {MASK} is wrong"),
        ("aws_secret_access_key = ab/cd+ef", f"aws_secret_access_key = {MASK}"),
        ("token=supersecret in the call", f"token={MASK} in the call"),
        ("HF_TOKEN=a1b2c3d4e5", f"HF_TOKEN={MASK}"),
        ("load(token='a1b2c3d4e5', n=3)", f"load(token='{MASK}', n=3)"),
        ("?access_token=a1b2c3d4e5&n=3", f"?access_token={MASK}&n=3"),
        ("login(password=b'hunter2')", f"login(password='{MASK}')"),
        (r"{'password': 'it\'s \"2\"', 'n': 3}", f"{{'password': '{MASK}', 'n': 3}}"),
        (r'"{\"password\": \"two words\"}"', rf'"{{\"password\": \"{MASK}\"}}"'),
        ("clientSecret: 's3' PGPASSWORD=x1", f"clientSecret: '{MASK}' PGPASSWORD={MASK}"),
        ("{'X-Api-Key': 'abc'}", f"{{'X-Api-Key': '{MASK}'}}"),
        ("Authorization: Basic bWU6cGFzczE=", f"Authorization: Basic {MASK}"),
        (
            "for url: h://a/b?Expires=1&Signature=aB~-9_&n=3",
            f"for url: h://a/b?Expires=1&Signature={MASK}&n=3",
        ),
        ("mysql --password x -h host", f"mysql --password {MASK} -h host"),
        ("['mysql', '--password', 'two words']", f"['mysql', '--password', '{MASK}']"),
        ("push --api-key a1b2 --hf-token=a1b2c3d4", f"push --api-key {MASK} --hf-token={MASK}"),
        ("upload --token hunter now", f"upload --token {MASK} now"),
        ("Server=a;Uid=b;Pwd=x;Port=1", f"Server=a;Uid=b;Pwd={MASK};Port=1"),
        ("AccountName=a;AccountKey=ab/c+d==;E=x", f"AccountName=a;AccountKey={MASK};E=x"),
        ("xxx" + TOKENS["hugging face"], f"xxx{MASK}"),
        ("MY_" + TOKENS["github"], f"MY_{MASK}"),
        ("login(password='two words", f"login(password='{MASK}"),
        ("{'password': 'two wo\nin line 3", f"{{'password': '{MASK}\nin line 3"),
        ("?X-Amz-Security-Token=aB%2F9&sig=c%3D", f"?X-Amz-Security-Token={MASK}&sig={MASK}"),
    ],
)
def test_what_a_name_tells_is_masked(text: str, left: str) -> None:
    assert mask_credentials(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "record 0123456789abcdef0123 of commit 1fb2d1c1d8b8b28b2f2c0f3f9e0e4d8f1a2b3c4d",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "TypeError: forward() got an unexpected keyword argument 'cls_token'",
        "KeyError: 'token'",
        "pad_token=0, mask_token='[MASK]', num_tokens=4096, tokens: 16384",
        "PWD=/opt/x OLDPWD=~/y pwd='C:/z' and pwd=./a",
        "give --password to log in; --token is not given, --password must be",
        "--pad-token 5 --tokens 4096 --tokenizer bytes",
        "task_live_1234567890abcdef, npm_install_a_package, pypi-mirror-of-the-house",
        "token=5 of 1024; token: expected shape (2, 3)",
        "token=tensor(12345678) and token=None",
        "a token = the piece of a text",
        "password: must be given; password=None",
        "secret must be given, api_key: missing",
        "the bearer of responsibilities",
        "sk-learn-compatible-estimator-names",
        "shape (4, 8) and 50% of [1, 2], q @ k.T with a:b@c",
        "see https://example.org:8080/a/b@c and git@host.org:a/b",
        "ssh://git@host.org/a and tcp://10.0.0.1:8786",
        "CUDA error: out of memory at 0x7f3b2c000000",
        "signature=(q, k, v), authorization: basic, a basic transformer1234 layer",
        "lra.attention hf_bigbird peer:hf_bigbird xoxo-1",
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_ordinary_words_are_let_be(text: str) -> None:
    assert mask_credentials(text) == text


def test_a_long_text_takes_no_long_time() -> None:
    from time import process_time

    parts = (
        "a", "A1+/", "a:", "a_", "a-", "- ", "sk-", "hf_", "eyJaaaaaaaa.", "bearer ", "://a:",
        "token=", "token:", "password:", "password='", "--password ", "abcdefghijklmnop ",
    )  # fmt: skip
    began = process_time()
    for part in parts:
        mask_credentials("://" + part * (50_000 // len(part)) + " PRIVATE KEY-----")
    assert process_time() - began < 5
