"""`counterfoil check`: what a server is good for, and what is wrong with one that is good for nothing."""

import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from counterfoil.console.probe import MAX_TOOLS
from counterfoil.tests.adapters.test_wire_answers import self_signed

from .conftest import Ended, Run
from .mcp_server import Answer, Respond, error, mcp_2025, result, serving, tool

SECRET = "hunter2-do-not-show"
TASKS = {"execution": {"taskSupport": "optional"}}


@pytest.fixture
def run(cli_in: Callable[..., Run]) -> Run:
    """`counterfoil …` with nothing around it: no database, no broker, no file."""
    return cli_in()


def checked(told: Ended) -> dict[str, Any]:
    found = json.loads(told.out)
    assert isinstance(found, dict)
    assert found["format"] == "check.v1"
    assert found["ok"] == (told.code == 0)
    return found


# -- what a server is good for -----------------------------------------------------------------------------------------


def test_a_tool_that_takes_tasks_is_told_from_one_that_blocks_and_the_first_protocol_is_proposed(run: Run) -> None:
    with serving(mcp_2025(tool("report", **TASKS), tool("add"), tasks=True)) as server:
        told = run("check", server.url, "--json")
    found = checked(told)
    assert found["proposed"] == "mcp-2025-11-25"
    assert found["target"] == {"url": server.url, "protocol": "mcp-2025-11-25"}
    report, add = found["tools"]
    assert (report["name"], report["protocol"]) == ("report", "mcp-2025-11-25")
    assert "as a task" in report["words"]["long"]
    assert "person is asked to check for effects" in report["words"]["cancel"]
    assert (add["name"], add["protocol"]) == ("add", "mcp-sync")
    assert "sync_bound_s" in add["words"]["long"]
    assert "Can't be cancelled" in add["words"]["cancel"]
    for judged in (report, add):
        assert "Can't be looked up: no way to ask for it by its key is declared" in judged["words"]["lost_submit"]
        assert "when the answer to a submit is lost" in judged["words"]["person"]
    assert "a poll every 1 s to 5 min" in report["words"]["limits"]


def test_words_for_people_name_each_tool_each_protocol_and_the_lines_to_pin(run: Run) -> None:
    with serving(mcp_2025(tool("report", **TASKS), tool("add"), tasks=True)) as server:
        told = run("check", server.url)
    assert told.code == 0
    assert told.err == ""
    assert "mcp-2025-11-25  yes, 1 of 2 tools, proposed" in told.out
    assert "\nreport\n" in told.out
    assert "\nadd (with a target of `protocol: mcp-sync`)\n" in told.out
    assert told.out.endswith(f"targets:\n  my-server:\n    url: {server.url}\n    protocol: mcp-2025-11-25\n")


def test_a_blocking_tools_lines_say_which_bound_is_missing(run: Run) -> None:
    with serving(mcp_2025(tool("add"))) as server:
        told = run("check", server.url)
    assert told.code == 0
    assert "    # sync_bound_s: " in told.out


def test_a_server_is_asked_once_for_each_protocol_however_many_tools_it_has_and_every_session_is_ended(
    run: Run,
) -> None:
    with serving(mcp_2025(*(tool(f"t{number}") for number in range(100)), pages=3)) as server:
        assert len(checked(run("check", server.url, "--json"))["tools"]) == 100
    assert server.asked.count("tools/list") == 2 * 3
    assert server.asked.count("initialize") == server.asked.count("DELETE") == 2


def test_more_tools_than_anybody_reads_are_counted_and_one_can_be_named(run: Run) -> None:
    with serving(mcp_2025(*(tool(f"t{number}") for number in range(MAX_TOOLS + 5)))) as server:
        assert checked(run("check", server.url, "--json"))["protocols"][2]["left_out"] == 5
        last = checked(run("check", server.url, "--json", "--tool", f"t{MAX_TOOLS + 4}"))
    assert [found["name"] for found in last["tools"]] == [f"t{MAX_TOOLS + 4}"]


def test_a_named_tool_that_is_not_there_exits_1_and_names_the_near_one(run: Run) -> None:
    with serving(mcp_2025(tool("generate_report"))) as server:
        told = run("check", server.url, "--tool", "genrate_report")
    assert told.code == 1
    assert "E_TOOL_UNKNOWN" in told.out
    assert "Near names: generate_report" in " ".join(told.out.split())


def test_one_protocol_can_be_asked_for_alone(run: Run) -> None:
    with serving(mcp_2025(tool("report", **TASKS), tasks=True)) as server:
        found = checked(run("check", server.url, "--protocol", "mcp-sync", "--json"))
    assert [attempt["protocol"] for attempt in found["protocols"]] == ["mcp-sync"]


def test_the_credential_is_sent_and_never_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    with serving(mcp_2025(tool("add"))) as server:
        told = run("check", server.url, "--credential", "env:MY_TOKEN")
    assert server.headers["authorization"] == f"Bearer {SECRET}"
    assert told.code == 0
    assert "credentials: env:MY_TOKEN" in told.out
    assert SECRET not in told.out + told.err


def test_what_a_server_calls_itself_can_not_move_the_terminal(run: Run) -> None:
    with serving(mcp_2025(tool("add\x1b[2J\u202e"))) as server:
        told = run("check", server.url)
    assert "\x1b" not in told.out
    assert "\u202e" not in told.out
    assert "add\\x1b[2J\\u202e" in told.out


def test_an_input_schema_that_is_none_takes_the_tool_away_and_leaves_the_others(run: Run) -> None:
    tools = (tool("bad", inputSchema={"type": "nonsense"}), tool("worse", inputSchema="none"), tool("good"))
    with serving(mcp_2025(*tools)) as server:
        found = {judged["name"]: judged for judged in checked(run("check", server.url, "--json"))["tools"]}
        assert run("check", server.url, "--tool", "bad").code == 1
    assert (found["bad"]["code"], found["worse"]["code"], found["good"]["code"]) == (
        *("E_SCHEMA_INVALID", "E_SCHEMA_INVALID"),
        None,
    )
    assert "inputSchema" in found["bad"]["why"]


# -- servers that are good for nothing ---------------------------------------------------------------------------------


def failed(told: Ended) -> tuple[str, str]:
    """Code and text of the one error, the same for people and in JSON."""
    assert told.code == 1
    assert "Traceback" not in told.err
    found = checked(told)
    assert told.err.startswith(f"{found['error']['code']}: {found['error']['message']}\n  ")
    assert found["error"]["next_step"]
    return found["error"]["code"], found["error"]["message"]


def page(_method: str, _message: dict[str, Any]) -> Answer:
    return 200, {"Content-Type": "text/html"}, b"<html>hello</html>"


def test_a_web_page_is_no_mcp_server(run: Run) -> None:
    with serving(page) as server:
        code, message = failed(run("check", server.url, "--json"))
    assert code == "E_NOT_MCP"
    assert "HTTP 200, text/html" in message


def test_another_version_of_mcp_is_named(run: Run) -> None:
    with serving(mcp_2025(tool("add"), version="2024-11-05")) as server:
        code, message = failed(run("check", server.url, "--json"))
    assert code == "E_CAPABILITY_UNSUPPORTED"
    assert "mcp-sync: " in message
    assert "2024-11-05" in message


def test_a_redirect_to_another_host_is_told_and_not_followed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    with serving(page) as other:

        def elsewhere(_method: str, _message: dict[str, Any]) -> Answer:
            return 307, {"Location": f"http://user:pw@127.0.0.1:{other.port}/in?token={SECRET}"}, b""

        with serving(elsewhere) as server:
            told = run("check", server.url, "--json", "--credential", "env:MY_TOKEN")
            code, message = failed(told)
    assert code == "E_REDIRECT"
    assert f"another host, http://127.0.0.1:{other.port}/in (HTTP 307)" in message
    assert SECRET not in told.out + told.err
    assert (len(server.asked), other.asked) == (1, [])


def test_a_list_of_tools_of_30_mb_is_cut_at_the_cap(run: Run) -> None:
    with serving(mcp_2025(tool("add", description="x" * 30_000_000))) as server:
        code, message = failed(run("check", server.url, "--protocol", "mcp-sync", "--json"))
    assert code == "E_ANSWER_TOO_LARGE"
    assert "more than 8388608 bytes" in message


def test_a_certificate_that_nobody_signed_is_told_as_such(run: Run, tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(self_signed(tmp_path, "localhost"))
    with serving(page, tls) as server:
        code, message = failed(run("check", f"https://127.0.0.1:{server.port}/mcp", "--json"))
    assert (code, server.asked) == ("E_TLS", [])
    assert "CERTIFICATE_VERIFY_FAILED" in message


@pytest.mark.parametrize("host", ["10.0.0.1", "169.254.169.254", "[fe80::1]", "192.168.1.20:8000"])
def test_a_private_or_link_local_address_is_not_dialled_unless_it_is_allowed(run: Run, host: str) -> None:
    told = run("check", f"http://{host}/mcp", "--json")
    code, message = failed(told)
    assert code == "E_ADDRESS_REFUSED"
    assert "private, link-local" in message
    assert "--allow-private" in told.err


def test_a_server_that_wants_a_credential_says_how_to_name_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(_method: str, _message: dict[str, Any]) -> Answer:
        return 401, {"WWW-Authenticate": "Bearer"}, b""

    monkeypatch.setenv("MY_TOKEN", SECRET)
    with serving(locked) as server:
        told = run("check", server.url, "--json")
        assert failed(told)[0] == "E_AUTH"
        assert "--credential env:NAME" in told.err
        wrong = run("check", server.url, "--json", "--credential", "env:MY_TOKEN")
        assert "refuses the credential" in failed(wrong)[1]
        unset = run("check", server.url, "--json", "--credential", "env:MY_TOKN")
    assert failed(unset) == ("E_CREDENTIAL", "the variable MY_TOKN is not set or holds no token.")
    assert SECRET not in wrong.out + wrong.err


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_that_only_has_trouble_is_not_taken_for_another_kind_of_server(run: Run, status: int) -> None:
    with serving(lambda _method, _message: (status, {}, b"")) as server:
        code, message = failed(run("check", server.url, "--json"))
    assert (code, f"HTTP {status}" in message) == ("E_UNREACHABLE", True)


def test_a_server_that_is_not_there_is_told_at_once(run: Run) -> None:
    with serving(page) as server:
        pass
    told = run("check", server.url, "--json")
    assert failed(told)[0] == "E_UNREACHABLE"
    assert len(checked(told)["protocols"]) == 1  # the others would find nobody either


HOSTILE: dict[str, Respond] = {
    "null": lambda _method, message: result(message, None),
    "tools are no list": lambda _method, message: result(message, {"protocolVersion": "2025-11-25", "tools": {"a": 1}}),
    "internal error": lambda _method, message: error(message, -32603, "\x00\ud800"),
    "deep": lambda _method, _message: (200, {"Content-Type": "application/json"}, b"[" * 1_000_000),
    "unstorable": mcp_2025(tool("a\x00b"), tool("c", description="\ud800"), {"name": 7}),
    "twice": mcp_2025(tool("a"), tool("a", inputSchema={"type": 5})),
    "an endless list": lambda method, message: (
        result(message, {"tools": [], "nextCursor": message["id"]})
        if method == "tools/list"
        else mcp_2025()(method, message)
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_ends_in_an_answer_of_ours(run: Run, kind: str) -> None:
    with serving(HOSTILE[kind]) as server:
        told = run("check", server.url, "--json")
    assert told.code in (0, 1)
    assert "Traceback" not in told.err
    checked(told)


# -- what is handed in -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["ftp://127.0.0.1/mcp"], "http:// or https://"),
        ([f"http://me:{SECRET}@127.0.0.1/mcp"], "must hold no user or password"),
        (["http://127.0.0.1/mcp", "--credential", SECRET], "name where the token is, never the token"),
        (["http://127.0.0.1/mcp", "--protocol", "mcp-snyc"], "Did you mean 'mcp-sync'?"),
    ],
    ids=["scheme", "password", "pasted token", "protocol"],
)
def test_what_no_targets_file_could_hold_is_bad_input(run: Run, arguments: list[str], why: str) -> None:
    told = run("check", *arguments)
    assert (told.code, told.err.partition(":")[0], told.out) == (2, "E_TARGETS", "")
    assert why in told.err
    assert SECRET not in told.err
