// Polls the events of a run, once per browser tab, for all components that show it.

const POLL_INTERVAL = 700; // ms between polls of a running run; the worker batches too, and a point still appears within a second
const LONGEST_RETRY = 15000; // ms between retries while the server is not responding
const ENDED_STATUSES = new Set(["finished", "stopped", "failed", "diverged", "lost"]);

// Shared by the separately loaded component scripts of one page.
const feeds = (globalThis.isovizFeeds ??= new Map());

// Calls listener(feed, changed) after each response, even if only the time has changed. feed: {run, meta, error, ended, replaying}. Returns a function that unsubscribes.
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

export function resolveUrl(path) {
  return new URL(path, document.baseURI);
}

class Feed {
  constructor(runId) {
    this.runId = runId;
    this.run = emptyRun();
    this.meta = null; // status, position, stopping, started, ended, now
    this.recording = new Recording(); // all rows, so that a finished run can be replayed
    this.live = null; // the real {run, meta} during a replay, else null
    this.error = null; // shown to the user
    this.unreported = new Set(); // parts that changed since the listeners were last called
    this.listeners = new Set();
    this.failures = 0;
    this.timer = null;
    this.polling = false;
    this.closed = false;
    this.onVisible = () => this.wake();
    document.addEventListener("visibilitychange", this.onVisible);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.onVisible);
  }

  // Polls now: the page has loaded, is visible again, or reports a change of the run.
  wake() {
    if (this.closed || this.polling || document.hidden) return;
    clearTimeout(this.timer);
    this.timer = null;
    this.poll();
  }

  async poll() {
    this.polling = true;
    let wait = POLL_INTERVAL;
    try {
      const url = resolveUrl(`${this.access.events}/${encodeURIComponent(this.runId)}`);
      url.searchParams.set("after", (this.live ?? this).run.cursor);
      const response = await fetch(url);
      if (response.ok) {
        wait = this.accept(await response.json());
      } else {
        this.failures += 1;
        this.error = (await response.text()).slice(0, 200);
        wait = response.status >= 500 ? this.retryDelay() : null;
      }
    } catch {
      this.failures += 1;
      this.error = "The server is not responding. Retrying …";
      wait = this.retryDelay();
    }
    this.polling = false;
    if (this.closed) return;
    if (this.error) this.notify(new Set(["life"]));
    if (wait !== null && !document.hidden) this.timer = setTimeout(() => this.poll(), wait);
  }

  // Returns the milliseconds until the next poll, or null to stop polling.
  accept(response) {
    if (this.live && !response.rows.length && ENDED_STATUSES.has(response.status)) {
      this.error = null; // the page was only drawn again
      return null;
    }
    if (this.live) this.stopReplay(); // the run was resumed
    this.recording.add(response.rows);
    const changed = fold(this.run, response.rows);
    const { rows, more, ...meta } = response;
    const facts = JSON.stringify({ ...meta, now: 0 });
    if (facts !== this.lastFacts || this.error) changed.add("life");
    this.lastFacts = facts;
    this.meta = meta;
    this.hasAllRows = !more;
    this.failures = 0;
    this.error = null;
    for (const part of changed) this.unreported.add(part);
    if (more) return 0;
    this.notify(this.unreported);
    this.unreported = new Set();
    return ENDED_STATUSES.has(meta.status) ? null : POLL_INTERVAL;
  }

  // Whether the run has ended and all its rows are loaded.
  get ended() {
    const { meta } = this.live ?? this;
    return Boolean(meta && ENDED_STATUSES.has(meta.status) && this.hasAllRows);
  }

  get replaying() {
    return this.live !== null;
  }

  // Shows the run as it was `seconds` after its start. The first call starts the replay.
  replayTo(seconds) {
    const parts = this.live ? ["life"] : ["life", "steps", "evaluated", "measured"]; // the complete run was shown until now
    this.live ??= { run: this.run, meta: this.meta };
    const changed = this.recording.playTo(seconds);
    this.run = this.recording.run;
    const { startTime, duration } = this.recording;
    const now = startTime + Math.min(seconds, duration);
    this.meta = { ...this.live.meta, status: seconds < duration ? "running" : this.live.meta.status, stopping: false, started: startTime, ended: null, now };
    for (const part of parts) changed.add(part);
    this.notify(changed);
  }

  // Shows the complete run again.
  stopReplay() {
    if (!this.live) return;
    ({ run: this.run, meta: this.meta } = this.live);
    this.live = null;
    this.recording.rewind();
    this.notify(new Set(["steps", "evaluated", "measured", "life"]));
  }

  retryDelay() {
    return Math.min(LONGEST_RETRY, POLL_INTERVAL * 2 ** Math.min(this.failures, 5));
  }

  notify(changed) {
    for (const listener of [...this.listeners]) listener(this, changed);
  }
}
