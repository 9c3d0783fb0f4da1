"""The app as a web server: access control, pages, routes of the live components, and the runner's lifetime.

Started by `python -m isoviz app` (or `python -m streamlit run dashboard/server/main.py` in the project root).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402
from starlette.middleware import Middleware  # noqa: E402

from dashboard.server import announcing  # noqa: E402
from dashboard.server.app_page import AppPage  # noqa: E402
from dashboard.server.authentication import Authentication  # noqa: E402
from dashboard.server.routes import routes  # noqa: E402
from dashboard.server.upload_quota import UploadQuota  # noqa: E402
from dashboard.shared import resources, visitor  # noqa: E402
from dashboard.streamlit_private import ignore_cache_clearing, keep_uploads_on_disk, tidy  # noqa: E402
from isoviz import limits  # noqa: E402
from isoviz.errors import InputError  # noqa: E402
from isoviz.operations.access import uploads  # noqa: E402

# Files written by the app and its workers (uploads, logs, results) are private to this account.
os.umask(0o077)
limits.raise_open_files()
limits.share_arenas()

try:
    ALLOWED, SIGN_IN = announcing.settings()
except InputError as error:
    print(f"isoviz: {error}", file=sys.stderr)
    sys.exit(2)
BASE = (st.get_option("server.baseUrlPath") or "").strip("/")
visitor.sign_in_by(SIGN_IN)
ignore_cache_clearing()
keep_uploads_on_disk(lambda: uploads.private_folder(resources.store().folder))


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Runs the queue while the server is running, whether or not a page is open."""
    resources.begin()
    announcing.announce(ALLOWED, SIGN_IN, BASE)
    tidying = asyncio.create_task(tidy())
    try:
        yield
    finally:
        tidying.cancel()
        resources.close()


app = st.App(
    ROOT / "dashboard" / "app.py",
    lifespan=lifespan,
    routes=routes(BASE),
    middleware=[
        Middleware(Authentication, sign_in=SIGN_IN, allowed=ALLOWED, base_url=BASE),
        Middleware(UploadQuota),
        Middleware(AppPage, base_url=BASE),
    ],
)
