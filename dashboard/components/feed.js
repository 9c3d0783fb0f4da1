// One poll per run and browser tab, however many components look at it.

const TICK = 700; // ms between questions while the run lives: with the worker's own batching a point is shown within a second
const SLOWEST = 15000; // ms between attempts while the server does not answer
const OVER = new Set(["finished", "stopped", "failed", "diverged", "lost"]);

// Shared by the separately loaded component scripts of one page.
const feeds = (globalThis.isovizFeeds ??= new Map());

// Calls listener(feed, changed) after each answer, also when nothing but the time has changed. feed: {run, meta, error, ended, replaying}; returns the function that unsubscribes.
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
    this.record = new Recording(); // all rows, so that a run that has ended can be played again
    this.live = null; // {run, meta} as they really are, while `run` and `meta` are those of a replay
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
      url.searchParams.set("after", (this.live ?? this).run.cursor);
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
    if (this.live) this.stopReplay(); // the run goes on: it was resumed
    this.record.add(answer.rows);
    const changed = fold(this.run, answer.rows);
    const { rows, more, ...meta } = answer;
    const facts = JSON.stringify({ ...meta, now: 0 });
    if (facts !== this.facts || this.error) changed.add("life");
    this.facts = facts;
    this.meta = meta;
    this.complete = !more;
    this.failures = 0;
    this.error = null;
    for (const part of changed) this.untold.add(part);
    if (more) return 0;
    this.tell(this.untold);
    this.untold = new Set();
    return OVER.has(meta.status) ? null : TICK;
  }

  // Whether all of a run is here and no more will come.
  get ended() {
    const { meta } = this.live ?? this;
    return Boolean(meta && OVER.has(meta.status) && this.complete);
  }

  get replaying() {
    return this.live !== null;
  }

  // Show the run as it was so many seconds after it began; the first call begins the replay.
  replayTo(seconds) {
    this.live ??= { run: this.run, meta: this.meta };
    const changed = this.record.playTo(seconds);
    this.run = this.record.run;
    const { begin, duration } = this.record;
    const now = begin + Math.min(seconds, duration);
    this.meta = { ...this.live.meta, status: seconds < duration ? "running" : this.live.meta.status, stopping: false, started: begin, ended: null, now };
    this.tell(changed.add("life"));
  }

  // Show it as it is.
  stopReplay() {
    if (!this.live) return;
    ({ run: this.run, meta: this.meta } = this.live);
    this.live = null;
    this.record.rewind();
    this.tell(new Set(["steps", "evaluated", "measured", "life"]));
  }

  patience() {
    return Math.min(SLOWEST, TICK * 2 ** Math.min(this.failures, 5));
  }

  tell(changed) {
    for (const listener of [...this.listeners]) listener(this, changed);
  }
}
