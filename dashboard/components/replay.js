// The bar above the live view of finished runs. It replays them at any speed from any point.

const SPEEDS = [1, 2, 5, 10, 20, 60];
const SHORTEST_REPLAY = 20; // seconds; the default speed is the fastest that takes at least this long
const FRAME_INTERVAL = 150; // ms between frames; a smoother replay would keep plotly busy and show no more

class ReplayBar {
  constructor(root) {
    this.root = root;
    this.feeds = [];
    this.button = button("", () => (this.timer ? this.pause() : this.play()), { className: "ivz-replay-play" });
    const moved = () => {
      const fraction = Number(this.slider.value) / 1000; // read before `pause` resets the slider
      this.pause();
      this.seek(fraction * this.duration);
    };
    this.slider = make("input", "", { type: "range", min: 0, max: 1000, step: 1, "aria-label": "Position in the recorded run", oninput: moved });
    this.speed = menu("Replay speed", Object.fromEntries(SPEEDS.map((speed) => [speed, `${speed}×`])));
    this.time = make("output");
    this.showAll = button("Show the full run", () => this.end(), { className: "ivz-replay-end" });
    root.append(this.button, this.speed, this.slider, this.time, this.showAll);
    this.reset(null);
  }

  // Called when other runs are selected. initialSpeed: start playing at this speed; null: wait for the button.
  reset(initialSpeed) {
    this.pause();
    for (const feed of this.feeds) feed.stopReplay();
    this.initialSpeed = SPEEDS.includes(initialSpeed) ? initialSpeed : null;
    this.seconds = null; // null while the complete runs are shown
    this.feeds = [];
    this.offered = false;
    this.root.hidden = true;
    this.render();
  }

  get duration() {
    return Math.max(0, ...this.feeds.map((feed) => feed.recording.duration));
  }

  // Called after every poll. Shows the bar once all runs have ended.
  offer(feeds) {
    if (this.seconds !== null && feeds.some((feed) => !feed?.ended)) this.reset(null); // a run was resumed
    const ready = feeds.every((feed) => feed?.ended);
    if (ready === this.offered) return;
    this.offered = ready;
    this.feeds = ready ? feeds : [];
    this.root.hidden = !ready || this.duration === 0;
    if (this.root.hidden) return;
    const slowEnough = SPEEDS.filter((speed) => this.duration / speed >= SHORTEST_REPLAY);
    this.speed.value = String(this.initialSpeed ?? slowEnough.at(-1) ?? 1);
    this.render();
    if (this.initialSpeed && !globalThis.matchMedia("(prefers-reduced-motion: reduce)").matches) queueMicrotask(() => this.play());
    this.initialSpeed = null;
  }

  play() {
    if (this.seconds === null || this.seconds >= this.duration) this.seek(0);
    this.lastTick = performance.now();
    this.timer = setInterval(() => this.advance(), FRAME_INTERVAL);
    this.render();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.render();
  }

  advance() {
    const now = performance.now();
    const elapsed = ((now - this.lastTick) / 1000) * Number(this.speed.value);
    this.lastTick = now;
    this.seek(this.seconds + elapsed);
    if (this.seconds >= this.duration) this.end();
  }

  seek(seconds) {
    this.seconds = Math.min(seconds, this.duration);
    for (const feed of this.feeds) feed.replayTo(this.seconds);
    this.render();
  }

  // Shows the complete runs again.
  end() {
    this.pause();
    this.seconds = null;
    for (const feed of this.feeds) feed.stopReplay();
    this.render();
  }

  render() {
    const seconds = this.seconds ?? this.duration;
    this.button.textContent = this.timer ? "❚❚ Pause" : this.seconds === null ? "▶ Replay" : "▶ Continue";
    this.showAll.hidden = this.seconds === null;
    this.slider.value = String(this.duration ? Math.round((1000 * seconds) / this.duration) : 1000);
    this.time.textContent = `${duration(seconds)} of ${duration(this.duration)}`;
    this.slider.setAttribute("aria-valuetext", this.time.textContent);
  }

  close() {
    clearInterval(this.timer);
    for (const feed of this.feeds) feed.stopReplay();
  }
}
