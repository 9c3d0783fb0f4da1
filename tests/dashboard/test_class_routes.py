"""The routes of a class: who opens one, what a student may send, and what is refused with one line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import segno
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from dashboard.server import class_routes, routes
from dashboard.server.authentication import Authentication
from dashboard.shared import resources, visitor
from isoviz.lessons.classes import Classes
from isoviz.operations.access.allowed_hosts import READ_ONLY, AllowedHosts
from isoviz.operations.access.visitors import OPERATOR, Role, Visitor

ADA = "a" * 32
OPENING = {"lesson": "clusters"}
GUESS: dict[str, Any] = {"student": ADA, "lesson": "clusters", "step": 1, "guess": 0.5}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(class_routes, "CLASSES", Classes())
    yield
    resources.close()


class Everyone:
    """An sign_in that lets everyone in with one role."""

    def __init__(self, person: Visitor) -> None:
        self.found = person

    def visitor(self, cookies: object) -> Visitor:
        return self.found


def client_of(person: Visitor = OPERATOR, base: str = "") -> TestClient:
    inner = Starlette(routes=routes.routes(base))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Authentication(inner, Everyone(person), AllowedHosts(None, hosts=frozenset({"testserver"})), base)(
            scope, receive, send
        )

    return TestClient(app)


def opened(client: TestClient) -> dict[str, str]:
    answer = client.post("/isoviz/classes", json=OPENING)
    assert answer.status_code == 201, answer.text
    created: dict[str, str] = answer.json()
    return created


def test_a_class_from_opening_to_closing() -> None:
    teacher, student = client_of(), client_of(Visitor("pupil", Role.VIEWER))
    session = opened(teacher)
    address, key = f"/isoviz/classes/{session['code']}", {class_routes.KEY_HEADER: session["key"]}
    assert session["link"] == f"lessons?class={session['code']}"
    assert student.post(address, json={"student": ADA}).json() == OPENING
    for _ in range(2):
        assert student.post(address, json=GUESS).status_code == 200
    assert teacher.get(address, headers=key).json() == {"students": 1, "guesses": {"clusters": {"1": [0.5]}}}
    assert student.get(address).status_code == 404
    assert student.delete(address, headers=key).status_code == 403
    assert teacher.delete(address, headers=key).status_code == 200
    ended = student.post(address, json=GUESS)
    assert (ended.status_code, ended.text) == (404, f"No open class has the code {session['code']}. Check the code.")


def test_viewers_open_none_and_no_one_does_on_a_read_only_server(monkeypatch: pytest.MonkeyPatch) -> None:
    viewer = client_of(Visitor("pupil", Role.VIEWER))
    assert viewer.post("/isoviz/classes", json=OPENING).status_code == 403
    monkeypatch.setenv(READ_ONLY, "1")
    refused = client_of(Visitor("public", Role.RUNNER)).post("/isoviz/classes", json=OPENING)
    assert (refused.status_code, refused.text) == (403, "This server is read-only")


def test_the_link_of_a_class_lets_viewers_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_link = visitor.ByLink(lambda: tmp_path, "isoviz_0", (Role.RUNNER, Role.VIEWER))
    monkeypatch.setattr(visitor, "_sign_in", by_link)
    link = opened(client_of(Visitor("teacher", Role.RUNNER)))["link"]
    assert link.endswith(f"&token={by_link.links().secrets[Role.VIEWER]}")


def test_the_teacher_changes_the_lesson_and_students_do_not() -> None:
    teacher, student = client_of(), client_of(Visitor("pupil", Role.VIEWER))
    session = opened(teacher)
    address, key = f"/isoviz/classes/{session['code']}", {class_routes.KEY_HEADER: session["key"]}
    assert student.put(address, json={"lesson": "scale"}, headers=key).status_code == 403
    assert teacher.put(address, json={"lesson": "scale"}).status_code == 404
    assert teacher.put(address, json={"lesson": "scale"}, headers=key).status_code == 200
    assert student.post(address, json={"student": ADA}).json() == {"lesson": "scale"}


def test_the_qr_code_is_the_link() -> None:
    session = client_of().post("/isoviz/classes", json=OPENING | {"address": "https://iso.example.org/base/"}).json()
    code = segno.make(f"https://iso.example.org/base/{session['link']}", error="m", micro=False)
    assert session["qr"] == code.svg_data_uri(light="#fff")
    refused = client_of().post("/isoviz/classes", json=OPENING | {"address": "javascript:alert()"})
    assert (refused.status_code, refused.text[:9]) == (400, "address: ")


def test_the_code_of_an_open_class_makes_a_viewer_until_it_ends(tmp_path: Path) -> None:
    sign_in = visitor.ByLink(lambda: tmp_path, "isoviz_0", (Role.RUNNER, Role.VIEWER), class_routes.is_open)
    door = Authentication(
        Starlette(routes=routes.routes("")), sign_in, AllowedHosts(None, hosts=frozenset({"testserver"}))
    )
    teacher, student = client_of(Visitor("teacher", Role.RUNNER)), TestClient(door, follow_redirects=False)
    session = opened(teacher)
    address = f"/isoviz/classes/{session['code']}"
    page = student.get("/")
    assert page.status_code == 401 and 'name="letters"' in page.text
    assert student.post(address, json={"student": ADA}).status_code == 401
    assert student.get(f"/lessons?class={session['code']}").status_code == 401

    wrong = student.get("/lessons?letters=AAAAA")
    assert wrong.status_code == 401 and "No open class has the code AAAAA" in wrong.text and not student.cookies
    joined = student.get(f"/lessons?letters={session['code'].lower()}")
    assert (joined.status_code, joined.headers["location"]) == (303, f"./lessons?class={session['code']}")
    person = sign_in.visitor(student.cookies)
    assert person is not None and person.role is Role.VIEWER
    assert student.post(address, json={"student": ADA}).json() == OPENING
    assert student.post("/isoviz/classes", json=OPENING).status_code == 403
    forged = {"isoviz_0": student.cookies["isoviz_0"].replace("student", "viewer")}
    assert sign_in.visitor(forged) is None

    assert teacher.delete(address, headers={class_routes.KEY_HEADER: session["key"]}).status_code == 200
    assert student.post(address, json={"student": ADA}).status_code == 401
    again = student.get(f"/lessons?letters={session['code']}")
    assert again.status_code == 401 and "set-cookie" not in again.headers


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("", 400, "body: "),
        ('{"student": "me"}', 400, "student: "),
        ('{"student": "ADA", "lesson": "clusters", "step": 1, "guess": NaN}', 400, "guess: "),
        ('{"student": "ADA", "lesson": "clusters", "step": 1, "guess": 7}', 400, "guess: expected a number from"),
        ('{"student": "ADA", "lesson": "clusters", "step": 7, "guess": 0}', 400, "step: expected 1 to"),
        ('{"student": "ADA", "lesson": "none", "step": 1, "guess": 0}', 400, "lesson: unknown lesson 'none'"),
        ('{"student": "ADA"}' + " " * 1000, 413, "The request is longer than 1,000 bytes."),
    ],
)
def test_bad_bodies_are_refused_with_one_line(body: str, status: int, message: str) -> None:
    client = client_of()
    session = opened(client)
    answer = client.post(f"/isoviz/classes/{session['code']}", content=body.replace("ADA", ADA))
    assert (answer.status_code, answer.text[: len(message)]) == (status, message)
    assert "\n" not in answer.text.strip()
    key = {class_routes.KEY_HEADER: session["key"]}
    assert client.get(f"/isoviz/classes/{session['code']}", headers=key).json()["guesses"] == {}
