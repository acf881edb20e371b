"""The page against a staged host: what it shows of captures and attempts, and how it is operated."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tensorviz.contracts.problem import Fault, Problem
from tensorviz.contracts.validate import parse_capture

from .conftest import ROOT, Open
from .staging import TOKEN, Stage, attempt, load, serving

HOSTILE = ROOT / "packages/viewer/test/fixtures/hostile.json"
CORPUS = ROOT / "tests/corpus/valid"


def corpus(name: str, **changes: Any) -> dict[str, Any]:
    return load(CORPUS / f"{name}.json") | changes


def long_capture(**changes: Any) -> dict[str, Any]:
    from contracts.captures import large

    return large(600) | changes


def rows(page: Page) -> Any:
    return page.locator(".grid-body .grid-row")


def selected_row(page: Page) -> Any:
    return page.locator(".grid-row[aria-selected=true]")


def inspector(page: Page) -> Any:
    return page.get_by_role("complementary", name="Inspector")


# -- the page itself


def test_the_fixture_is_a_valid_capture() -> None:
    parse_capture(HOSTILE.read_bytes())


def test_the_built_page_is_one_small_file_with_a_nonce_on_every_tag() -> None:
    html = (ROOT / "backend/tensorviz/page/index.html").read_text(encoding="utf-8")
    tags = re.findall(r"<(?:script|style)\b[^>]*>", html)
    assert len(tags) == 2
    assert all('nonce="__CSP_NONCE__"' in tag for tag in tags)
    assert not re.search(r"<(?:script|link|img)\b[^>]*(?:src|href)=\"(?!data:)", html)
    assert len(html) < 400_000


def test_the_token_leaves_the_address_and_survives_a_reload(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(corpus("linear"))
    page = open_page(port)
    expect(page.locator(".connection")).to_have_text("Live")
    assert "token" not in page.url
    page.reload()
    expect(page.locator(".connection")).to_have_text("Live")
    assert TOKEN not in page.content()


@pytest.mark.parametrize(
    ("token", "why"), [(None, "this tab was opened without one"), ("x" * 43, "the token of another start")]
)
def test_a_page_without_a_valid_token_says_how_to_get_one(
    port: int, open_page: Open, token: str | None, why: str
) -> None:
    page = open_page(port, token=token)
    expect(page.get_by_role("heading")).to_have_text("This page has no access to its host")
    expect(page.get_by_text(why)).to_be_visible()
    expect(page.get_by_text("Use the address that is printed in the terminal")).to_be_visible()
    expect(page.get_by_text("tensorviz open")).to_be_visible()


def test_an_empty_host_tells_what_to_do_and_shows_the_first_capture_by_itself(
    stage: Stage, port: int, open_page: Open
) -> None:
    page = open_page(port)
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing is captured yet")
    stage.hold(corpus("linear"))
    expect(page.get_by_role("tree")).to_be_visible()


def test_the_switch_for_colours_is_remembered(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(corpus("linear"))
    page = open_page(port, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_label("Colours: as the system").click()
    light = page.evaluate(background)
    assert light != dark
    page.reload()
    expect(page.get_by_label("Colours: light")).to_be_visible()
    assert page.evaluate(background) == light


# -- what a capture shows


def test_a_failed_capture_opens_on_its_failing_operation(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(load(HOSTILE))
    page = open_page(port)
    expect(page.get_by_role("region", name="This capture is partial")).to_contain_text("The run raised RuntimeError.")
    expect(selected_row(page)).to_contain_text("addmm")
    expect(selected_row(page)).to_contain_text("failed")
    expect(inspector(page)).to_contain_text("RuntimeError")
    expect(inspector(page)).to_contain_text("models/hostile\\u{202e}gpj.py:13")
    failed = page.locator(".tree-row.failed")
    expect(failed).to_have_count(2)


def test_every_kind_of_argument_is_shown_exactly_and_as_text(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(load(HOSTILE))
    page = open_page(port, "op=o0")
    expect(inspector(page).get_by_role("heading", level=2)).to_have_text("my.everything.default")
    shown = inspector(page).inner_text()
    for text in (
        "9007199254740993", "-10000000000000000000000000000000000000000", "1e-45", "-0.0", "nan", "torch.channels_last",
        "complex(1.5, -0.0)", "generator on cpu", "Mode.FAST", "s0*2 + 1", '"__proto__"', "the same tensor as args[0]",
        "<script>alert(1)</script>", "\\u{202e}right to left", "This container holds itself",
        "temperature", "Show all 3,002 characters", "Show 200 more of 300",
    ):  # fmt: skip
        assert text in shown, text
    inspector(page).get_by_role("button", name="Show 200 more of 300").click()
    expect(inspector(page).get_by_text("249", exact=True).first).to_be_visible()
    assert page.locator("img, iframe, script:not([nonce])").count() == 0


def test_a_tensor_tells_its_facts_and_links_to_who_made_and_reads_it(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(load(HOSTILE))
    page = open_page(port, "op=o2")
    inspector(page).locator("button.arg-line", has_text="f32[4,8]").first.click()
    facts = inspector(page).locator(".tensor-facts")
    for text in ("torch.float32", "cpu", "[8, 1]", "torch.strided", "128 B", "Requires grad", "Storage offset"):
        expect(facts).to_contain_text(text)
    facts.get_by_role("button", name="my.everything #0").click()
    expect(inspector(page).get_by_role("heading", level=2)).to_have_text("my.everything.default")


def test_writes_show_the_values_before_and_after(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(corpus("in_place"))
    page = open_page(port)
    page.locator(".grid-row", has=page.locator(".writes")).first.click()
    writes = inspector(page).locator(".effect").first
    expect(writes).to_contain_text("version 0")
    expect(writes).to_contain_text("version 1")


def test_the_details_explain_every_reason_and_the_conditions_of_the_run(
    stage: Stage, port: int, open_page: Open
) -> None:
    document = load(HOSTILE)
    stage.hold(document)
    page = open_page(port)
    page.get_by_role("button", name=f"All {len(document['reasons'])} reasons").click()
    details = page.get_by_role("dialog", name="Capture details")
    expect(details.locator(".reason")).to_have_count(len(document["reasons"]))
    for text in ("landlock", "enforced", "the kernel knows no TSYNC", "2.13.0", "Operations", "50,000", "16 MiB"):
        expect(details).to_contain_text(text)
    page.keyboard.press("Escape")
    expect(details).to_have_count(0)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_every_capture_of_the_corpus_can_be_looked_through(
    stage: Stage, port: int, open_page: Open, path: Path
) -> None:
    document = load(path)
    stage.hold(document)
    page = open_page(port)
    expect(page.get_by_role("tree")).to_be_visible()
    calls = page.locator(".tree-row.call, .tree-row.run")
    for index in range(calls.count()):
        calls.nth(index).click()
        expect(inspector(page)).to_be_visible()
    calls.first.click()
    for index in range(min(rows(page).count(), 20)):
        rows(page).nth(index).click()
        expect(inspector(page).get_by_role("heading", level=2)).to_have_text(document["operations"][index]["target"])


# -- operating it


def test_search_counts_and_visits_matches(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(load(HOSTILE))
    page = open_page(port)
    expect(page.get_by_role("tree")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("12x8")
    expect(page.get_by_role("search").locator("output")).to_have_text("1 of 1")
    expect(selected_row(page)).to_contain_text("cat")
    page.keyboard.press("Enter")
    expect(page.get_by_role("search").locator("output")).to_have_text("1 of 1")
    expect(selected_row(page)).to_contain_text("cat")
    page.get_by_label("Search operations").fill("there is no such thing")
    expect(page.get_by_role("search").locator("output")).to_have_text("none")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Search operations")).to_have_value("")


def test_typing_in_the_search_shows_the_first_match_and_keeps_the_focus(
    stage: Stage, port: int, open_page: Open
) -> None:
    document = long_capture()
    stage.hold(document)
    page = open_page(port)
    box = page.get_by_label("Search operations")
    box.focus()
    page.keyboard.type("blocks.40 mm")
    found = page.get_by_role("search").locator("output")
    expect(found).to_have_text("1 of 3")
    expect(box).to_be_focused()
    expect(selected_row(page)).to_contain_text("mm")
    expect(selected_row(page)).to_be_in_viewport()
    expect(page.locator(".grid-row.hit")).to_have_count(3)
    first = selected_row(page).get_attribute("id")
    page.keyboard.press("Enter")
    expect(found).to_have_text("2 of 3")
    page.keyboard.press("Shift+Enter")
    expect(found).to_have_text("1 of 3")
    expect(page.locator(f"#{first}")).to_have_attribute("aria-selected", "true")
    expect(box).to_be_focused()
    box.fill("there is no such thing")
    expect(selected_row(page)).to_have_count(0)


def test_another_capture_begins_at_its_top_or_at_the_selected_row(stage: Stage, port: int, open_page: Open) -> None:
    first, second = long_capture(), long_capture(id="cap-00000000000000cc")
    stage.hold(first)
    stage.hold(second)
    page = open_page(port, f"capture={first['id']}")
    expect(rows(page).first).to_be_visible()
    scrollers = ".scroller:has([role=tree]), .scroller:has([role=grid])"
    page.locator(scrollers).evaluate_all("all => all.forEach(e => e.scrollTop = 1500)")
    tops = "all => all.map(e => e.scrollTop)"
    assert all(page.locator(scrollers).evaluate_all(tops))
    page.evaluate(f"location.hash = 'capture={second['id']}'")
    expect(page.locator("#op-0")).to_be_in_viewport()
    assert page.locator(scrollers).evaluate_all(tops) == [0, 0]
    page.evaluate(f"location.hash = 'capture={first['id']}&op=o150'")
    expect(page.locator("#op-150")).to_be_in_viewport()
    expect(selected_row(page)).to_have_attribute("id", "op-150")


def test_arguments_are_separate_in_copied_text(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(corpus("linear"))
    page = open_page(port)
    cell = rows(page).first.locator(".cell-tokens").first
    expect(cell.locator(".token").nth(1)).to_be_visible()
    parts = cell.locator(".token").evaluate_all("all => all.map(e => e.firstChild.textContent)")
    assert cell.inner_text().count(", ") == len(parts) - 1
    copied = cell.evaluate("e => { getSelection().selectAllChildren(e); return getSelection().toString() }")
    assert copied.count(", ") == len(parts) - 1


def test_a_root_call_says_who_made_it(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(corpus("linear"))
    page = open_page(port, "capture=cap-00000000000000aa&call=c0")
    expect(inspector(page)).to_contain_text("tensorviz made this call itself: it is the root call of a planned run.")
    stage.hold(corpus("unregistered_module", id="cap-00000000000000cc"))
    page.evaluate("location.hash = 'capture=cap-00000000000000cc&call=c0'")
    expect(inspector(page)).to_contain_text("The caller made this call, outside of the recorded code.")


def test_a_version_that_is_null_was_not_observed(stage: Stage, port: int, open_page: Open) -> None:
    document = corpus("in_place")
    for value in document["values"]:
        value["version"] = None
    stage.hold(document)
    page = open_page(port)
    page.locator(".grid-row", has=page.locator(".writes")).first.click()
    expect(inspector(page).locator(".effect").first).to_contain_text("version not observed, observation 0")
    inspector(page).locator("button.arg-line", has_text="f32").first.click()
    shown = inspector(page).locator(".tensor-facts").get_by_text("not observed")
    expect(shown).to_have_attribute("title", re.compile("An inference tensor.*gone before autograd"))


def test_everything_can_be_reached_with_the_keyboard(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(load(HOSTILE))
    page = open_page(port)
    tree = page.get_by_role("tree")
    active = page.locator(".tree-row[aria-selected=true]")
    tree.focus()
    page.keyboard.press("ArrowRight")
    expect(active).to_contain_text("blocks.0")
    page.keyboard.press("End")
    expect(active).to_contain_text("Not called (2)")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(active).to_contain_text("drop")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".tree-row.module")).to_have_count(0)
    page.keyboard.press("Home")
    expect(active).to_contain_text("Hostile")
    page.keyboard.press("Enter")
    expect(page.get_by_role("grid")).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    expect(selected_row(page)).to_contain_text("copy_")
    page.keyboard.press("Enter")
    expect(inspector(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(selected_row(page)).to_have_count(0)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard and colours")).to_be_visible()


def test_the_address_names_the_selection_and_going_back_works(stage: Stage, port: int, open_page: Open) -> None:
    first = stage.hold(load(HOSTILE))
    page = open_page(port, f"capture={first}&op=o2")
    expect(selected_row(page)).to_contain_text("cat")
    rows(page).nth(0).click()
    page.locator(".tree-row", has_text="__proto__").click()
    expect(rows(page)).to_have_count(2)
    assert page.url.endswith(f"#capture={first}&call=c3")
    page.go_back()
    expect(selected_row(page)).to_contain_text("everything")
    page.go_back()
    expect(selected_row(page)).to_contain_text("cat")
    page.go_forward()
    expect(selected_row(page)).to_contain_text("everything")


def test_own_operations_and_those_of_nested_calls(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(load(HOSTILE))
    page = open_page(port, "call=c0")
    expect(rows(page)).to_have_count(5)
    page.get_by_role("button", name="Its own").click()
    expect(page.get_by_text("This call ran no operation itself")).to_be_visible()
    page.get_by_role("button", name="Show the 5 of nested calls").click()
    expect(rows(page)).to_have_count(5)


# -- attempts, news and interruptions


def cancelled_capture() -> dict[str, Any]:
    document = corpus("in_flight")
    document["termination"] = {"kind": "cancelled"}
    for reason in document["reasons"]:
        reason["code"] = "cancelled"
    for coverage in document["coverage"].values():
        if isinstance(coverage, dict) and coverage.get("reason"):
            coverage["reason"] = "cancelled"
    return document


def failed_import() -> Problem:
    return Problem(
        code="import_failed",
        title="The file could not be imported",
        detail="net.py, line 3: ModuleNotFoundError: No module named 'einops'",
        hint="the attempt's log has the traceback",
        faults=(),
    )


def test_a_running_attempt_shows_its_progress_and_can_be_cancelled(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(corpus("linear"))
    page = open_page(port)
    running = stage.begin(attempt("models/net.py"))
    strip = page.get_by_role("region", name="Latest run")
    expect(strip).to_contain_text("Capturing net.py")
    stage.move(running, stage="running", operations=1234)
    expect(strip).to_contain_text("Running the model")
    expect(strip).to_contain_text("1,234 operations")
    expect(page.get_by_text("Shown below: the earlier capture")).to_be_visible()
    strip.get_by_role("button", name="Cancel").click()
    expect(strip).to_contain_text("The run was cancelled. It left no capture.")
    expect(page.locator(".banner.bad")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
    assert stage.cancelled == [running.id]


def test_a_capture_of_a_cancelled_run_is_no_error(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(cancelled_capture())
    page = open_page(port)
    notice = page.get_by_role("region", name="This capture is partial")
    expect(notice).to_contain_text(
        "The run was cancelled. Everything up to that is recorded; what would have run after it did not run."
    )
    expect(page.locator(".banner.bad")).to_have_count(0)


def test_a_failed_attempt_shows_its_problem_and_log_and_keeps_the_earlier_capture(
    stage: Stage, port: int, open_page: Open
) -> None:
    stage.hold(corpus("linear"))
    page = open_page(port)
    ended = stage.begin(attempt("models/net.py"))
    stage.move(
        ended, "Traceback\n\x1b[31mred\u202e", stage="ended", outcome="failed", problem=failed_import(),
        ended=ended.started + 900,
    )  # fmt: skip
    alert = page.get_by_role("alert")
    for text in ("The file could not be imported", "No module named 'einops'", "the attempt's log has the traceback"):
        expect(alert).to_contain_text(text)
    alert.get_by_role("button", name="Log").click()
    expect(alert.locator("pre")).to_have_text("Traceback\n\\u{001b}[31mred\\u{202e}")
    expect(page.get_by_role("tree")).to_be_visible()
    alert.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("region", name="Latest run")).to_contain_text("Capturing net.py")
    assert [request.file for request in stage.asked] == ["models/net.py"]


def test_a_new_capture_asked_for_here_is_shown_and_others_are_offered(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(corpus("linear"))
    page = open_page(port)
    expect(page.locator(".picker-target")).to_be_visible()
    stage.hold(
        corpus("scalars", id="cap-00000000000000cc", execution=corpus("scalars")["execution"] | {"target": "Other"})
    )
    expect(page.get_by_role("button", name="Show it")).to_be_visible()
    page.get_by_role("button", name="Show it").click()
    expect(page.locator(".picker-target")).to_contain_text("Other")
    page.get_by_label("New capture").click()
    page.get_by_label("Python file").fill("models/net.py")
    page.get_by_label("Target").fill("Net")
    page.get_by_role("button", name="Capture", exact=True).click()
    expect(page.get_by_role("region", name="Latest run")).to_be_visible()
    begun = stage.ledger.attempts(0, 1).items[0]
    stage.hold(corpus("in_place", id="cap-00000000000000dd", attempt=begun.id))
    stage.move(begun, stage="ended", outcome="complete", capture="cap-00000000000000dd", ended=begun.started + 10)
    expect(page.get_by_text("Capturing net.py")).to_have_count(0)
    expect(page).to_have_url(re.compile("cap-00000000000000dd"))
    assert stage.asked[0].target == "Net"


def test_a_refused_request_names_the_field(stage: Stage, port: int, open_page: Open) -> None:
    stage.refuse_with = Problem(
        code="file_not_found", title="The file cannot be read", detail="models/net.py: there is no such file",
        hint="check the path", faults=(Fault(path=("file",), message="there is no such file"),),
    )  # fmt: skip
    page = open_page(port)
    page.get_by_role("button", name="Capture a file").click()
    page.get_by_label("Python file").fill("models/net.py")
    page.keyboard.press("Enter")
    form = page.get_by_role("dialog", name="New capture")
    expect(form.get_by_role("alert")).to_contain_text("The file cannot be read")
    expect(form.locator(".field .fault")).to_have_text("there is no such file")


def test_the_page_reconnects_by_itself_and_keeps_the_view(open_page: Open) -> None:
    stage = Stage()
    stage.hold(load(HOSTILE))
    with serving(stage) as port:
        page = open_page(port, "op=o2")
        expect(page.locator(".connection")).to_have_text("Live")
    expect(page.locator(".connection")).to_have_text("Reconnecting")
    expect(selected_row(page)).to_contain_text("cat")
    with serving(stage, port):
        expect(page.locator(".connection")).to_have_text("Live", timeout=15_000)
        expect(selected_row(page)).to_contain_text("cat")
        stage.hold(corpus("scalars", id="cap-00000000000000cc"))
        expect(page.get_by_role("button", name="Show it")).to_be_visible()


def test_a_host_that_has_ended_and_one_in_its_place_say_what_to_do(open_page: Open) -> None:
    stage = Stage()
    stage.hold(load(HOSTILE))
    with serving(stage) as port:
        page = open_page(port)
        expect(page.locator(".connection")).to_have_text("Live")
    expect(page.locator(".connection")).to_have_text("Reconnecting")
    page.get_by_label("New capture").click()
    page.get_by_label("Python file").fill("net.py")
    page.get_by_role("button", name="Capture", exact=True).click()
    form = page.get_by_role("dialog", name="New capture")
    for text in ("The host has ended", "use the address that it prints", "keeps showing what it has loaded"):
        expect(form.get_by_role("alert")).to_contain_text(text)
    page.keyboard.press("Escape")
    with serving(stage, port, token="u" * 43):
        refused = page.get_by_role("alert", name="No access")
        expect(refused).to_contain_text("does not accept this page's token", timeout=15_000)
        expect(refused).to_contain_text("Use the address that is printed in the terminal where tensorviz runs")
        expect(page.get_by_role("tree")).to_be_visible()


def test_a_new_capture_begins_with_the_request_of_the_one_that_is_shown(
    stage: Stage, port: int, open_page: Open
) -> None:
    shown = stage.begin(attempt("models/shown.py"))
    stage.hold(corpus("linear", attempt=shown.id))
    stage.move(shown, stage="ended", outcome="complete", capture="cap-00000000000000aa", ended=shown.started + 1)
    page = open_page(port)
    latest = stage.begin(attempt("models/latest.py", started=shown.started + 5))
    stage.move(latest, stage="ended", outcome="failed", problem=failed_import(), ended=shown.started + 6)
    expect(page.get_by_role("alert")).to_contain_text("latest.py")
    page.get_by_label("New capture").click()
    expect(page.get_by_label("Python file")).to_have_value("models/shown.py")


def test_a_capture_that_the_host_released_stays_and_says_so(stage: Stage, open_page: Open) -> None:
    small = Stage(bounds=type(stage.bounds)(captures=1))
    small.hold(corpus("linear"))
    with serving(small) as port:
        page = open_page(port)
        expect(page.get_by_role("tree")).to_be_visible()
        small.hold(
            corpus("scalars", id="cap-00000000000000cc", execution=corpus("scalars")["execution"] | {"target": "X"})
        )
        expect(page.get_by_text("released by the host")).to_be_visible()
        expect(rows(page).first).to_be_visible()


def test_a_link_to_a_capture_that_is_gone_offers_the_newest(stage: Stage, port: int, open_page: Open) -> None:
    stage.hold(corpus("linear"))
    page = open_page(port, "capture=cap-ffffffffffffffff")
    expect(page.get_by_role("alert")).to_contain_text("there is no capture")
    page.get_by_role("button", name="Show the newest capture").click()
    expect(page.get_by_role("tree")).to_be_visible()


def test_what_could_not_be_shown_matters_no_more_once_something_is(stage: Stage, port: int, open_page: Open) -> None:
    name = stage.hold(corpus("linear"))
    page = open_page(port, f"capture={name}")
    expect(page.get_by_role("tree")).to_be_visible()
    page.evaluate("location.hash = 'capture=cap-0000000000000000'")
    expect(page.get_by_role("alert")).to_contain_text("there is no capture")
    page.evaluate(f"location.hash = 'capture={name}'")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("tree")).to_be_visible()


# -- size and shape


def test_fifty_thousand_operations_stay_fluent(stage: Stage, port: int, open_page: Open) -> None:
    from contracts.captures import large

    document = large(50_000)
    stage.hold(document)
    page = open_page(port)
    expect(page.get_by_role("tree")).to_be_visible(timeout=60_000)
    assert rows(page).count() < 120
    assert page.locator(".tree-row").count() < 120
    page.get_by_role("grid").focus()
    began = time.monotonic()
    for key in ["End", "Home", *["PageDown"] * 20]:
        page.keyboard.press(key)
    expect(selected_row(page)).to_be_visible()
    assert time.monotonic() - began < 10
    page.get_by_label("Search operations").fill("blocks.4321 mm")
    expect(page.get_by_role("search").locator("output")).to_have_text("1 of 3")
    expect(selected_row(page)).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(selected_row(page)).to_contain_text("mm")


@pytest.mark.parametrize("width", [1000, 720])
def test_a_narrow_window_never_scrolls_sideways(stage: Stage, port: int, open_page: Open, width: int) -> None:
    stage.hold(load(HOSTILE))
    page = open_page(port, viewport={"width": width, "height": 700})
    expect(page.get_by_role("tree")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_control_has_a_name_and_nothing_has_a_style_attribute_in_its_markup(
    stage: Stage, port: int, open_page: Open
) -> None:
    stage.hold(load(HOSTILE))
    page = open_page(port)
    expect(page.get_by_role("tree")).to_be_visible()
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, input, [role=tree], [role=grid], [role=separator]')]
        .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length))
        .map(e => e.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("[id]").count() == page.evaluate(
        "new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size"
    )
