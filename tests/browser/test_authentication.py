"""The door as people meet it: links opened from a terminal and from another site, a link that was changed, frames, every page's policy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, Page, expect

from isoviz.operations.access import links
from isoviz.operations.access.visitors import Role
from tests.browser.conftest import PATIENCE, OpenTab, Server
from tests.story import Story


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Callable[[str], str]]:
    """`elsewhere(html)`: the address of a page of another site (`localhost` is another than 127.0.0.1)."""
    pages: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            number = self.path.strip("/")
            self.wfile.write(pages[int(number)].encode() if number.isdigit() else b"")

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def publish(html: str) -> str:
        pages.append(html)
        return f"http://localhost:{server.server_port}/{len(pages) - 1}"

    yield publish
    server.shutdown()


def link(server: Server, role: Role = Role.RUNNER, page: str = "", query: str = "") -> str:
    secret = links.read(server.store.folder).secrets[role]
    return f"{server.url}/{page}?{query}{'&' if query else ''}token={secret}"


def inside(page: Page) -> None:
    expect(page.get_by_role("link", name="Explore").first).to_be_visible()


def test_a_link_opens_the_page_it_names_and_leaves_the_address(guarded: Server, open_tab: OpenTab) -> None:
    run = Story(guarded.store).complete()
    page = open_tab(link(guarded, page="run", query=f"id={run.id}"))
    assert page.url == f"{guarded.url}/run?id={run.id}"
    expect(page.locator("[data-figure=loss] .ivz-plot")).to_be_visible()
    (cookie,) = [cookie for cookie in page.context.cookies() if str(cookie["name"]).startswith("isoviz")]
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    assert page.evaluate("document.cookie").find("isoviz") == -1
    assert page.evaluate("document.referrer") == ""


def test_without_a_link_a_page_asks_for_one(
    guarded: Server, open_tab: OpenTab, elsewhere: Callable[[str], str]
) -> None:
    page = open_tab(f"{guarded.url}/train")
    expect(page.get_by_role("heading")).to_have_text("This IsoViz needs a link")
    assert page.locator("script").count() == 0
    page.goto(f"{guarded.url}/?token=wrong")
    expect(page.get_by_role("heading")).to_have_text("This IsoViz needs a link")
    page.goto(elsewhere(f'<a href="{guarded.url}/train">look</a>'))
    page.get_by_text("look").click()
    expect(page.get_by_role("heading")).to_have_text("This IsoViz needs a link")


def test_links_on_another_site_lead_in(guarded: Server, open_tab: OpenTab, elsewhere: Callable[[str], str]) -> None:
    """A Strict cookie is not sent with a visit that another site began: neither the link itself nor a run's address may end there."""
    run = Story(guarded.store).complete()
    teacher = f'<a href="{link(guarded)}">come in</a><a href="{guarded.url}/run?id={run.id}">the run</a>'
    page = open_tab(elsewhere(teacher))
    page.get_by_text("come in").click()
    inside(page)
    assert page.url == f"{guarded.url}/"
    page.goto(elsewhere(teacher))
    page.get_by_text("the run").click()
    expect(page.locator("[data-figure=loss] .ivz-plot")).to_be_visible()
    assert page.url == f"{guarded.url}/run?id={run.id}"


def test_no_page_of_another_site_shows_or_reads_it(
    guarded: Server, chromium: Browser, elsewhere: Callable[[str], str]
) -> None:
    """With a cookie that the browser would send anywhere, as if Strict did not exist."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(link(guarded, Role.VIEWER))
    inside(page)
    (cookie,) = [cookie for cookie in context.cookies() if str(cookie["name"]).startswith("isoviz")]
    context.add_cookies([{"name": cookie["name"], "value": cookie["value"], "url": guarded.url, "sameSite": "Lax"}])
    stream = f"{guarded.url.replace('http', 'ws')}/_stcore/stream"
    page.goto(
        elsewhere(f"""<iframe src="{guarded.url}/train"></iframe><p id=out></p><script>
        const told = [];
        const tell = (what) => {{ told.push(what); document.title = told.join(' '); }};
        fetch("{guarded.url}/isoviz/health").then(() => tell('fetched'), () => tell('refused'));
        const script = document.createElement('script');
        script.src = "{guarded.url}/static/js/index.js";
        script.onload = () => tell('loaded'); script.onerror = () => tell('blocked');
        document.head.append(script);
        const socket = new WebSocket("{stream}", ["streamlit"]);
        socket.onopen = () => tell('open'); socket.onerror = () => tell('closed');
        </script>""")
    )
    page.wait_for_function("document.title.split(' ').length === 3", timeout=PATIENCE)
    assert sorted(page.title().split()) == ["blocked", "closed", "refused"]
    frame = page.frames[1]
    assert frame.url.startswith("chrome-error://")
    context.close()
