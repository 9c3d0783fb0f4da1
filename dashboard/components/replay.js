// The bar above the live view of runs that have ended: play them again, faster, from anywhere.

const SPEEDS = [1, 2, 5, 10, 20, 60];
const WANTED = 20; // seconds that a replay takes at the speed that is chosen first, at least
const FRAME = 150; // ms between two pictures: what moves more smoothly costs plotly more than it tells

class ReplayBar {
  constructor(root) {
    this.root = root;
    this.feeds = [];
    this.button = make("button", "ivz-replay-play");
    this.button.type = "button";
    this.button.onclick = () => (this.timer ? this.pause() : this.play());
    this.place = make("input");
    Object.assign(this.place, { type: "range", min: "0", max: "1000", value: "1000", step: "1" });
    this.place.setAttribute("aria-label", "Place in the recorded run");
    this.place.oninput = () => {
      const share = Number(this.place.value) / 1000; // before `pause` writes where the replay is
      this.pause();
      this.seek(share * this.duration);
    };
    this.speed = make("select");
    this.speed.setAttribute("aria-label", "Speed of the replay");
    for (const speed of SPEEDS) this.speed.append(Object.assign(make("option", "", `${speed}×`), { value: String(speed) }));
    this.time = make("output");
    this.whole = make("button", "ivz-replay-end", "Show the whole run");
    this.whole.type = "button";
    this.whole.onclick = () => this.end();
    root.append(this.button, this.speed, this.place, this.time, this.whole);
    this.reset(null);
  }

  // Other runs are shown. wanted: the speed to start at by itself, or null.
  reset(wanted) {
    this.pause();
    for (const feed of this.feeds) feed.stopReplay();
    this.wanted = SPEEDS.includes(wanted) ? wanted : null;
    this.seconds = null; // null while the runs are shown as they are
    this.feeds = [];
    this.offered = false;
    this.root.hidden = true;
    this.say();
  }

  get duration() {
    return Math.max(0, ...this.feeds.map((feed) => feed.record.duration));
  }

  // Called with every answer: the bar is there once all runs have ended.
  offer(feeds) {
    if (this.seconds !== null && feeds.some((feed) => !feed?.ended)) this.reset(null); // one goes on: it was resumed
    const ready = feeds.every((feed) => feed?.ended);
    if (ready === this.offered) return;
    this.offered = ready;
    this.feeds = ready ? feeds : [];
    this.root.hidden = !ready || this.duration === 0;
    if (this.root.hidden) return;
    const fitting = SPEEDS.filter((speed) => this.duration / speed >= WANTED);
    this.speed.value = String(this.wanted ?? fitting.at(-1) ?? 1);
    this.say();
    if (this.wanted && !globalThis.matchMedia("(prefers-reduced-motion: reduce)").matches) queueMicrotask(() => this.play());
    this.wanted = null;
  }

  play() {
    if (this.seconds === null || this.seconds >= this.duration) this.seek(0);
    this.before = performance.now();
    this.timer = setInterval(() => this.move(), FRAME);
    this.say();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.say();
  }

  move() {
    const now = performance.now();
    const passed = ((now - this.before) / 1000) * Number(this.speed.value);
    this.before = now;
    this.seek(this.seconds + passed);
    if (this.seconds >= this.duration) this.end();
  }

  seek(seconds) {
    this.seconds = Math.min(seconds, this.duration);
    for (const feed of this.feeds) feed.replayTo(this.seconds);
    this.say();
  }

  // Back to the runs as they are.
  end() {
    this.pause();
    this.seconds = null;
    for (const feed of this.feeds) feed.stopReplay();
    this.say();
  }

  say() {
    const at = this.seconds ?? this.duration;
    this.button.textContent = this.timer ? "❚❚ Pause" : this.seconds === null ? "▶ Replay" : "▶ Continue";
    this.whole.hidden = this.seconds === null;
    this.place.value = String(this.duration ? Math.round((1000 * at) / this.duration) : 1000);
    this.time.textContent = `${duration(at)} of ${duration(this.duration)}`;
    this.place.setAttribute("aria-valuetext", this.time.textContent);
  }

  close() {
    clearInterval(this.timer);
    for (const feed of this.feeds) feed.stopReplay();
  }
}
