"""The webhooks file, the event's body, its signature: values only."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from counterfoil.ledger.pushes import Push
from counterfoil.workers.webhooks import (
    BadSecretError,
    Webhook,
    WebhooksError,
    event_body,
    load_webhooks,
    secret_key,
    signed_headers,
)

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

RECEIPT = Push(
    id=UUID(int=1),
    deliveries=1,
    fresh=True,
    created_at=datetime(2026, 11, 29, 10, 0, 0, 5, tzinfo=UTC),
    call_node_id="run/1",
    operation_id=UUID(int=2),
    word="succeeded",
    code=None,
    why=None,
    receipt_id=UUID(int=3),
    receipt_digest=b"\x01" * 32,
    target="reports",
    tool="generate",
    effects_possible=True,
    result_digest=b"\x02" * 32,
    result_pointer="/result/structuredContent",
    result_body=None,
    failures=0,
    now_s=1614265330,
    ledger_id=UUID(int=4),
)
NOTICE = replace(
    RECEIPT, word="attention", code="E_SUBMISSION_UNKNOWN", why="lost", receipt_id=None, receipt_digest=None
)


def written(folder: Path, text: str) -> Path:
    path = folder / "webhooks.yaml"
    path.write_text(text)
    return path


def problems(folder: Path, text: str) -> list[str]:
    path = written(folder, text)
    with pytest.raises(WebhooksError) as caught:
        load_webhooks(path)
    return [problem.removeprefix(f"{path}:") for problem in caught.value.problems]


def event(push: Push) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(event_body(push, "billing"))
    return parsed


# -- the file --------------------------------------------------------------------------------------------------------


def test_a_file_names_each_namespace_with_its_endpoint(tmp_path: Path) -> None:
    text = """
webhooks:
  billing: {url: "https://hooks.example.com/in?key=1", secret: env:BILLING}
  ops:
    url: http://127.0.0.1:9000
    secret: [env:NEW, file:/run/secrets/old]
    allow_private: true
    include_result: true
"""
    assert load_webhooks(written(tmp_path, text)) == {
        "billing": Webhook("billing", "https://hooks.example.com/in?key=1", ("env:BILLING",), False, False),
        "ops": Webhook("ops", "http://127.0.0.1:9000/", ("env:NEW", "file:/run/secrets/old"), True, True),
    }


def test_every_fault_is_told_with_its_line_and_the_nearest_right_key(tmp_path: Path) -> None:
    text = """webhooks:
  a: {url: "ftp://x", secret: env:A}
  b:
    url: https://b.example.com
    secrets: env:B
  c: {url: "https://user:pw@c.example.com", secret: env:C}
  d: {url: "https://d.example.com/#x", secret: env:D}
  e: {url: "https://e.example.com", secret: []}
  f: 5
  a: {}
"""
    found = problems(tmp_path, text)
    assert [line.partition(":")[0] for line in found] == ["2", "3", "5", "6", "7", "8", "9", "10"]
    told = dict(line.partition(": ")[::2] for line in found)
    assert told["2"] == "webhooks.a.url: URL scheme should be 'http' or 'https'."
    assert told["3"] == "webhooks.b.secret: is missing."
    assert told["5"] == "webhooks.b.secrets: there is no such setting; did you mean secret?"
    assert "user or password" in told["6"]
    assert "fragment" in told["7"]
    assert "1 to 3 secrets" in told["8"]
    assert told["9"] == "webhooks.f: must be a mapping: indented lines of `key: value`."
    assert "second time (first on line 2)" in told["10"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1: webhooks: is missing."),
        ("webhooks: {}", "1: webhooks: names no namespace."),
        ("webhooks: 3", "1: webhooks: must be a mapping"),
        ("webhook: {}", "1: webhook: there is no such setting; did you mean webhooks?"),
        ("webhooks:\n\ta: 1", "2: a tab can't indent YAML"),
        (
            f"webhooks: {{{'n' * 600}: {{url: 'http://h.example', secret: env:A}}}}",
            "1: the namespace has 600 characters",
        ),
    ],
)
def test_what_is_no_webhooks_file_says_so(tmp_path: Path, text: str, said: str) -> None:
    assert any(problem.startswith(said) for problem in problems(tmp_path, text))


def test_a_pasted_secret_is_refused_and_not_repeated(tmp_path: Path) -> None:
    path = written(tmp_path, f"webhooks:\n  a: {{url: 'https://a.example.com', secret: {SECRET}}}\n")
    with pytest.raises(WebhooksError, match="name where the secret is") as caught:
        load_webhooks(path)
    assert SECRET not in str(caught.value)
    assert caught.value.code == "E_WEBHOOKS"


def test_a_file_that_is_not_there_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(WebhooksError, match="COUNTERFOIL_WEBHOOKS_FILE"):
        load_webhooks(tmp_path / "none.yaml")


# -- the event -------------------------------------------------------------------------------------------------------


def test_a_receipt_is_a_cloud_event_that_refers_to_it_and_names_its_digest() -> None:
    assert event(RECEIPT) == {
        "specversion": "1.0",
        "id": "00000000-0000-0000-0000-000000000001",
        "source": "/counterfoil/00000000-0000-0000-0000-000000000004",
        "type": "dev.counterfoil.operation.succeeded.v1",
        "subject": "run/1",
        "time": "2026-11-29T10:00:00.000005Z",
        "datacontenttype": "application/json",
        "data": {
            "namespace": "billing",
            "call_node_id": "run/1",
            "operation_id": "00000000-0000-0000-0000-000000000002",
            "target": "reports",
            "tool": "generate",
            "outcome": "succeeded",
            "error_code": None,
            "effects_possible": True,
            "receipt_id": "00000000-0000-0000-0000-000000000003",
            "receipt_digest": "01" * 32,
            "result_digest": "02" * 32,
            "result_pointer": "/result/structuredContent",
        },
    }


@pytest.mark.parametrize("outcome", ["succeeded", "failed", "cancelled", "refused", "abandoned"])
def test_the_type_names_the_outcome(outcome: str) -> None:
    assert event(replace(RECEIPT, word=outcome))["type"] == f"dev.counterfoil.operation.{outcome}.v1"


def test_a_notice_tells_what_a_person_is_asked_and_holds_no_outcome() -> None:
    told = event(NOTICE)
    assert told["type"] == "dev.counterfoil.operation.attention.v1"
    assert (told["data"]["notice"], told["data"]["code"], told["data"]["why"]) == (
        "attention",
        "E_SUBMISSION_UNKNOWN",
        "lost",
    )
    assert "outcome" not in told["data"]


def test_a_result_that_came_along_is_the_payload_alone_and_labelled() -> None:
    told = event(replace(RECEIPT, result_body=b'{"result":{"structuredContent":{"rows":3},"secret":1}}'))["data"]
    assert told["result"] == {"rows": 3}
    assert told["result_trust"] == "untrusted_tool_output"


@pytest.mark.parametrize("number", ["1e400", "9" * 5000, "[" * 50_000 + "]" * 50_000])
def test_a_result_that_can_not_be_written_again_is_left_out(number: str) -> None:
    body = b'{"result":{"structuredContent":%s}}' % number.encode()
    assert "result" not in event(replace(RECEIPT, result_body=body))["data"]


def test_what_a_tool_said_reaches_the_receiver_as_ascii() -> None:
    body = event_body(replace(NOTICE, why="naïve\n\ud800\u2028", call_node_id="läuft"), "billing")
    assert body.isascii()
    assert b"\n" not in body


# -- the signature ---------------------------------------------------------------------------------------------------


def test_the_signature_is_the_one_of_the_standard() -> None:
    """The example that Standard Webhooks' own libraries are tested with."""
    headers = signed_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', [secret_key(SECRET)])
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_while_a_secret_is_rotated_each_one_signs() -> None:
    old, new = secret_key(SECRET), b"n" * 32
    both = signed_headers("id", 1, b"body", [new, old])["webhook-signature"]
    alone = [signed_headers("id", 1, b"body", [key])["webhook-signature"] for key in (new, old)]
    assert both == " ".join(alone)


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "hunter2", "whsec_MfKQ", "whsec_" + "!" * 40, base64.b64encode(b"x" * 65).decode()]
)
def test_a_secret_that_can_not_sign_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(BadSecretError, match="openssl rand") as caught:
        secret_key(secret)
    assert not secret or len(secret) < 8 or secret not in str(caught.value)


def test_a_secret_may_go_without_its_prefix() -> None:
    assert secret_key(SECRET.removeprefix("whsec_")) == secret_key(SECRET)
