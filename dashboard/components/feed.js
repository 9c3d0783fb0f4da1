// One poll per run and browser tab, however many components look at it.

const TICK = 700; // ms between questions while the run lives: with the worker's own batching a point is shown within a second
const SLOWEST = 15000; // ms between attempts while the server does not answer
const OVER = new Set(["finished", "stopped", "failed", "diverged", "lost"]);

// Shared by the separately loaded component scripts of one page.
const feeds = (globalThis.isovizFeeds ??= new Map());

// Calls listener(feed, changed) after each answer, also when nothing but the time has changed. feed: {run, meta, error}; returns the function that unsubscribes.
export function subscribe(runId, access, listener) {
  let feed = feeds.get(runId);
  if (!feed) {
    feed = new Feed(runId);
    feeds.set(runId, feed);
  }
  feed.access = access;
  feed.listeners.add(listener);
  feed.wake();
  if (feed.meta) queueMicrotask(() => listener(feed, new Set(["steps", "evaluated", "measured", "life"])));
  return () => {
    feed.listeners.delete(listener);
    if (feed.listeners.size === 0) {
      feed.close();
      feeds.delete(runId);
    }
  };
}

export function addressOf(path) {
  return new URL(path, document.baseURI);
}

class Feed {
  constructor(runId) {
    this.runId = runId;
    this.run = emptyRun();
    this.meta = null; // status, position, stopping, started, ended, now
    this.error = null; // a sentence for people
    this.untold = new Set(); // what changed since the listeners were last called
    this.listeners = new Set();
    this.failures = 0;
    this.timer = null;
    this.asking = false;
    this.closed = false;
    this.onVisible = () => this.wake();
    document.addEventListener("visibilitychange", this.onVisible);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.onVisible);
  }

  // Ask now: the page is new, visible again, or says that something happened to the run.
  wake() {
    if (this.closed || this.asking || document.hidden) return;
    clearTimeout(this.timer);
    this.timer = null;
    this.ask();
  }

  async ask() {
    this.asking = true;
    let wait = TICK;
    try {
      const url = addressOf(`${this.access.events}/${encodeURIComponent(this.runId)}`);
      url.searchParams.set("after", this.run.cursor);
      const answer = await fetch(url, { headers: { "x-isoviz-token": this.access.token } });
      if (answer.ok) {
        wait = this.take(await answer.json());
      } else {
        this.failures += 1;
        this.error = (await answer.text()).slice(0, 200);
        wait = answer.status >= 500 ? this.patience() : null;
      }
    } catch {
      this.failures += 1;
      this.error = "The server does not answer. Trying again …";
      wait = this.patience();
    }
    this.asking = false;
    if (this.closed) return;
    if (this.error) this.tell(new Set(["life"]));
    if (wait !== null && !document.hidden) this.timer = setTimeout(() => this.ask(), wait);
  }

  // Returns the time to wait before the next question, null for none.
  take(answer) {
    const changed = fold(this.run, answer.rows);
    const { rows, more, ...meta } = answer;
    const facts = JSON.stringify({ ...meta, now: 0 });
    if (facts !== this.facts || this.error) changed.add("life");
    this.facts = facts;
    this.meta = meta;
    this.failures = 0;
    this.error = null;
    for (const part of changed) this.untold.add(part);
    if (more) return 0;
    this.tell(this.untold);
    this.untold = new Set();
    return OVER.has(meta.status) ? null : TICK;
  }

  patience() {
    return Math.min(SLOWEST, TICK * 2 ** Math.min(this.failures, 5));
  }

  tell(changed) {
    for (const listener of [...this.listeners]) listener(this, changed);
  }
}
