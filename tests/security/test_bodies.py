"""Bodies are bounded in size and time, and whatever they hold gives an attempt or a Problem."""

import json
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .hosting import JSON, Host, read_answer

KIB = 2**10


def head(host: Host, *headers: str) -> bytes:
    lines = ("POST /api/attempts HTTP/1.1", host.name, host.bearer, JSON, *headers, "", "")
    return "\r\n".join(lines).encode()


def test_a_body_over_the_bound_is_refused_before_it_is_sent(host: Host) -> None:
    answer = host.send(head(host, f"Content-Length: {64 * KIB + 1}"))
    assert (answer.status, answer.code) == (413, "body_too_large")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("length", [2**63, 10**30])
def test_an_absurd_length_is_refused(length: int, host: Host) -> None:
    assert host.send(head(host, f"Content-Length: {length}")).status in (400, 413)


def test_a_body_of_unknown_length_is_read_up_to_the_bound_and_no_further(host: Host) -> None:
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    with socket.create_connection(("127.0.0.1", host.port), 10) as connection:
        connection.sendall(head(host, "Transfer-Encoding: chunked"))
        for _ in range(17):
            connection.sendall(chunk)
        answer = read_answer(connection)
        assert (answer.status, answer.code) == (413, "body_too_large")
        assert connection.recv(1) == b"", "the connection is closed, and the rest never read"


def test_a_body_at_the_bound_is_read(host: Host) -> None:
    body = b'{"file":"none.py"}'.ljust(64 * KIB)
    assert host.ask("POST", "/api/attempts", host.name, host.bearer, JSON, body=body).status == 202


def test_a_body_that_does_not_arrive_is_given_up(host: Host) -> None:
    with socket.create_connection(("127.0.0.1", host.port), 30) as connection:
        connection.sendall(head(host, "Content-Length: 10") + b"{")
        answer = read_answer(connection)
    assert (answer.status, answer.code) == (422, "invalid_request")
    assert "did not arrive" in answer.json()["detail"]


def test_a_client_that_leaves_in_the_middle_harms_nobody(host: Host) -> None:
    with socket.create_connection(("127.0.0.1", host.port), 10) as connection:
        connection.sendall(head(host, "Content-Length: 10") + b"{")
    assert host.ask("GET", "/api/info", host.name, host.bearer).status == 200


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"", []),
        (b"{", []),
        (b"[]", []),
        (b'"model.py"', []),
        (b"\xff\xfe", []),
        (b"[" * 30_000, []),
        (b"{}", ["file"]),
        (b'{"file":7}', ["file"]),
        (b'{"file":""}', ["file"]),
        (b'{"file":"a.py","surprise":1}', ["surprise"]),
        (b'{"file":"a.py","mode":"fast"}', ["mode"]),
        (b'{"file":"a.py","timeout":"60"}', ["timeout"]),
        (b'{"file":"a.py","timeout":0}', ["timeout"]),
        (b'{"file":"a.py","timeout":NaN}', []),
        (b'{"file":"a.py","limits":{"bytes":-1}}', ["limits", "bytes"]),
        (b'{"file":"a.py","limits":{"bytes":1.5}}', ["limits", "bytes"]),
        (b'{"file":"a.py","inputs":{"file":"b.py"}}', ["inputs", "function"]),
    ],
)
def test_a_wrong_request_is_told_where_it_is_wrong(body: bytes, path: list[str], host: Host) -> None:
    answer = host.ask("POST", "/api/attempts", host.name, host.bearer, JSON, body=body)
    assert (answer.status, answer.code) == (422, "invalid_request")
    assert answer.json()["faults"][0]["path"] == path


@pytest.mark.parametrize("query", ["offset=-1", "offset=x", "limit=0", "limit=1001", "offset=1e3", f"offset={2**53}"])
def test_a_wrong_page_is_told_where_it_is_wrong(query: str, host: Host) -> None:
    answer = host.ask("GET", f"/api/captures?{query}", host.name, host.bearer)
    assert (answer.status, answer.code) == (422, "invalid_request")
    assert answer.json()["faults"][0]["path"] == ["query", query.partition("=")[0]]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
FILES = st.sampled_from(["none.py", "../out.py", "/etc/passwd", "a\0.py", "~/x.py", "x" * 1024, "\ud800.py"]) | st.text(
    max_size=20
)
NEARLY = st.fixed_dictionaries(
    {"file": FILES | ANYTHING},
    optional={
        "target": FILES | ANYTHING,
        "inputs": st.fixed_dictionaries({"file": FILES, "function": FILES}) | ANYTHING,
        "python": st.sampled_from(["no-such-python", "/no/python", "a\0", "~x/y", ""]) | ANYTHING,
        "mode": st.sampled_from(["eval", "train", "as_is"]) | ANYTHING,
        "fake": st.booleans() | ANYTHING,
        "timeout": st.floats() | ANYTHING,
        "limits": st.dictionaries(st.sampled_from(["bytes", "values", "text", "argumentDepth"]), st.integers())
        | ANYTHING,
    },
)


@settings(max_examples=150, deadline=None)
@given(NEARLY | ANYTHING)
def test_any_json_gives_an_attempt_or_a_problem(host: Host, request: object) -> None:
    check(host, json.dumps(request).encode())


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_problem(host: Host, body: bytes) -> None:
    check(host, body)


def check(host: Host, body: bytes) -> None:
    answer = host.ask("POST", "/api/attempts", host.name, host.bearer, JSON, body=body)
    if answer.status == 202:
        assert answer.json()["stage"] == "queued"
    elif answer.status == 429:
        assert answer.code == "busy"
    else:
        assert answer.status == 422, answer.raw
        assert answer.code == "invalid_request"
    assert host.process.poll() is None


def test_all_those_attempts_were_refused_and_none_was_a_defect_of_ours(host: Host) -> None:
    """The last of this file: what the tests above have started ended as it should."""
    items = host.wait_for("/api/attempts?limit=1000", lambda page: all(item["outcome"] for item in page["items"]))[
        "items"
    ]
    codes = {item["problem"]["code"] for item in items}
    assert codes <= {"file_not_found", "file_outside_workspace", "interpreter_not_found", "cancelled"}, codes
    assert items
