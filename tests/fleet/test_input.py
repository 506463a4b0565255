"""Questions of a task and people's answers, when every process that had a part in it dies."""

from .conftest import Fleet, Server


def test_answers_reach_their_task_although_whoever_read_the_question_and_whoever_sent_the_reply_were_killed(
    fleet: Fleet, server: Server
) -> None:
    """One task asks two questions. A reads them and is killed. A person answers the first one from a process of its
    own; B sends the reply and is killed while the server is still silent, so nobody knows whether it arrived. C finds
    the open intent: the contract lets a reply be repeated, so it sends the same one again. The second answer goes
    through C. The server took the first reply it heard for each question, and one call."""
    fleet.aim(
        f"tools: {{url: '{server.url}', protocol: mcp-2026-07-28, qps: 200, burst: 50, poll: {{min_s: 0.2}},"
        " send_by_s: 2, credentials: 'env:WHO'}"
    )
    fleet.environ["COUNTERFOIL_POLL_LEASE_S"] = "5"
    fleet.announce()
    given = {"node": "n", "secs": 0.2, "asks": 2, "update_after_s": 1.5}
    fleet.client.submit("tools", "work", given, call_node_id="n")
    first = fleet.start(solo=True, WHO="a")
    fleet.until("both questions wait", lambda: fleet.client.get("n").input_round == 2, 30)
    first.kill()
    answered = fleet.say("inputs", "answer", "n", '{"month": "May"}', "--round", "1", "--actor", "ann", "-o", "json")
    assert '"state":"replied"' in answered.replace(" ", "")
    second = fleet.start(solo=True, WHO="b")
    fleet.until("the reply is out", lambda: server.said("tasks/update") == ["b"], 30)
    second.kill()
    fleet.start(solo=True, WHO="c")
    fleet.until("it is sent again", lambda: server.said("tasks/update") == ["b", "c"], 30)
    fleet.say("inputs", "answer", "n", '{"month": "June"}', "--actor", "ben")
    fleet.until("the receipt is there", lambda: fleet.client.receipt("n") is not None, 30)
    receipt = fleet.client.receipt("n")
    assert receipt is not None
    assert (receipt.outcome, receipt.unanswered_rounds, receipt.problems()) == ("succeeded", 0, [])
    assert receipt.result == {
        "node": "n",
        "answers": {
            "q0": {"action": "accept", "content": {"month": "May"}},
            "q1": {"action": "accept", "content": {"month": "June"}},
        },
    }
    assert server.said("tools/call") == ["a"]
    assert server.said("tasks/update") == ["b", "c", "c"]
    late = fleet.run("inputs", "answer", "n", '{"month": "July"}', "--round", "2", "--actor", "ben")
    assert (late.returncode, late.stderr.partition(":")[0]) == (8, "E_INPUT_ROUND_CLOSED")
