"""What the host says never makes it wait, whether or not somebody reads."""

import os
import time

from tensorviz.edges.lines import Lines


def test_lines_arrive_in_order() -> None:
    reading, writing = os.pipe()
    lines = Lines(writing)
    for number in range(20):
        lines.say(f"{number}\n")
    lines.close()
    os.close(writing)
    with open(reading, encoding="utf-8") as stream:
        assert stream.read().split() == [str(number) for number in range(20)]


def test_nobody_who_says_something_waits_for_a_reader() -> None:
    reading, writing = os.pipe()
    lines = Lines(writing)
    started = time.monotonic()
    for _ in range(2_000):
        lines.say("x" * 1_000)
    lines.close()
    assert time.monotonic() - started < 30  # writing it all would never end
    os.close(reading)
    os.close(writing)
