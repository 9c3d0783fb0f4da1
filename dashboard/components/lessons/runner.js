// The lessons: a list, and the open lesson beside a playground that it controls.
//
//   const lessons = new Lessons(root, { lessons, words, hidden })   lessons: documents from isoviz.lessons; words: the playground's
//   lessons.open(slug, step)     steps 1 … n are questions, n + 1 is the end; resolves once the step is shown
//   lessons.place()              { lesson, step }; root receives "lessons:place" with it whenever it changes
//   lessons.playground           the current playground
//   lessons.claims()             at the end: [{ says, holds }], evaluated on the numbers shown
//   lessons.teach(on)            allows showing answers without a guess
//   root also receives "lessons:guess" with { lesson, step, guess }, and "lessons:answer" when an answer is shown
//   hidden: names of controls that stay hidden even at the end of a lesson. printable: whether printing the page gives only the handout.

const ALL_CONTROLS = ["d", "n", "spectrum", "decay", "rank", "floor", "shift", "rogue", "rogueScale", "block", "rho", "rotation", "tails", "clusters", "separation", "duplicates", "scale", "zeta"];
const GUIDED = ["presets", "controls", "numbers", "transforms", "plots"];
const DONE = "isoviz-lessons-done";
const MAIN = { className: "ivl-main" };
const TITLES = { best_accuracy: "Best possible accuracy", ev_1: "Strongest direction (EV₁)", rogue_share: "Widest dimension's share" };

export class Lessons {
  constructor(root, { lessons, words, hidden = [], printable = true }) {
    Object.assign(this, { root, lessons, words, hidden, printable, opening: 0 });
    root.classList.add("ivl");
    this.list = make("ol", "ivl-list");
    this.article = make("article", "ivl-lesson");
    this.handout = make("section", "ivl-handout");
    root.replaceChildren(make("nav", "", { "aria-label": "Lessons" }, this.list), this.article, this.handout);
    root.addEventListener("fullscreenchange", () => this.labelFullScreen());
    this.drawList();
  }

  place() {
    return { lesson: this.lesson?.slug ?? null, step: this.step ?? null };
  }

  async open(slug, step = 1) {
    const lesson = this.lessons.find((candidate) => candidate.slug === slug) ?? this.lessons[0];
    const opening = (this.opening += 1);
    this.leave();
    this.lesson = lesson;
    this.names = namesOf(lesson);
    this.at = [];
    this.reached = false; // set by answering the last question, not by opening a link to the end
    this.step = Math.min(Math.max(1, Math.round(step) || 1), lesson.steps.length + 1);
    this.build();
    this.drawList();
    this.announcePlace();
    this.playground = new Playground(this.stage, { words: this.words, state: { ...lesson.states[0], hidden: GUIDED } });
    // a cloud that a lesson moves away leaves the origin at one scale
    this.playground.parts.before.room = 2.2 * Math.max(...lesson.states.map(({ shift = 0, scale = 1 }) => shift * scale));
    this.stage.addEventListener("playground:change", () => this.followNumbers());
    for (let k = 0; k < this.step; k += 1) {
      await this.moveTo(k, false);
      if (opening !== this.opening) return;
    }
    this.draw();
  }

  // for tests that compare these with the engine
  get kinds() {
    return { DEFAULTS, BOUNDS, bestAccuracy };
  }

  teach(on) {
    this.teaching = on;
    const send = this.form?.querySelector("[type=submit]");
    if (send && on) send.disabled = false;
  }

  // Index of the option that is true at a step; -1 if none is.
  rightOption(step) {
    return this.lesson.steps[step - 1].guess.options.findIndex(({ tree }) => claimHolds(tree, this.valueAt));
  }

  close() {
    this.leave();
    this.root.replaceChildren();
  }

  claims() {
    return this.lesson.claims.map(({ says, tree }) => ({ says: this.fill(says), holds: claimHolds(tree, this.valueAt) }));
  }

  // ---- moving through a lesson

  leave() {
    clearTimeout(this.pollTimer);
    this.playground?.close();
    this.playground = null;
  }

  valueAt = (name, step) => this.at[step]?.[name] ?? NaN;

  fill(text) {
    return fillIn(text, this.valueAt);
  }

  // Moves the controls to the state after step k, and stores the numbers measured there.
  async moveTo(k, animate) {
    const playground = this.playground;
    const state = normalised({ ...this.lesson.states[k], hidden: GUIDED });
    const target = JSON.stringify(state);
    playground.set(state, { animate });
    for (;;) {
      if (this.playground !== playground) return;
      const values = JSON.stringify(playground.state()) === target ? valuesOf(playground, this.names) : undefined;
      if (values) {
        this.at[k] = values;
        return this.drawNumbers(values, k);
      }
      this.drawNumbers(undefined, k);
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  }

  async answer(guess) {
    const [step, stepNumber] = [this.lesson.steps[this.step - 1], this.step];
    if (guess !== null) this.root.dispatchEvent(new CustomEvent("lessons:guess", { detail: { ...this.place(), guess } }));
    this.form.replaceWith(make("p", "ivl-wait", "The lesson moves the controls …"));
    if (this.stage.parentElement.offsetTop > this.body.offsetTop) this.stage.scrollIntoView({ block: "nearest" }); // on a phone the cloud is below
    await this.moveTo(stepNumber, true);
    if (this.step !== stepNumber || !this.playground) return;
    const result = make("div", "ivl-result", { role: "status" }, guess === null ? [] : this.verdict(step, guess, stepNumber), make("p", "", this.fill(step.answer)));
    const last = stepNumber === this.lesson.steps.length;
    this.reached = last;
    const next = button(last ? "What can you defend now?" : "Next question", () => this.go(stepNumber + 1), MAIN);
    this.body.querySelector(".ivl-wait").replaceWith(result, next);
    next.focus({ preventScroll: true });
    this.root.dispatchEvent(new CustomEvent("lessons:answer"));
  }

  verdict(step, guess, stepNumber) {
    const line = make("p", "ivl-verdict");
    if (step.guess.kind === "number") {
      const value = this.valueAt(step.guess.of, stepNumber);
      const off = Math.abs(value - guess);
      line.textContent = `You guessed ${formatted(guess)}. It is ${formatted(value, step.guess.of)}: off by ${formatted(off)}.`;
      line.classList.toggle("ivl-right", off <= 3 * step.guess.step);
      return line;
    }
    const right = this.rightOption(stepNumber);
    const answer = step.guess.options[right]?.text ?? "none of these";
    line.textContent = guess === right ? `Right: ${lowered(answer)}.` : `You chose “${step.guess.options[guess].text}”. The answer is “${answer}”.`;
    line.classList.toggle("ivl-right", guess === right);
    return line;
  }

  go(step) {
    this.step = step;
    this.announcePlace();
    this.draw();
    this.body.querySelector("h3")?.focus({ preventScroll: false });
  }

  announcePlace() {
    this.root.dispatchEvent(new CustomEvent("lessons:place", { detail: this.place(), bubbles: true }));
  }

  // ---- drawing

  drawList() {
    const done = doneLessons();
    this.list.replaceChildren(...this.lessons.map((lesson) => {
      const parts = [make("span", "ivl-title", lesson.title), done.has(lesson.slug) ? make("span", "ivl-done", "done") : null];
      return make("li", "", button("", () => this.open(lesson.slug), parts, lesson === this.lesson ? { "aria-current": true } : null));
    }));
    const current = this.list.querySelector("[aria-current]"); // on a phone the list is one row that scrolls
    if (current) this.list.scrollLeft = current.offsetLeft - this.list.offsetLeft;
  }

  build() {
    const { title, idea, show } = this.lesson;
    this.fullScreenButton = button("", () => this.enlarge());
    this.labelFullScreen();
    const tools = make("div", "ivl-tools", this.fullScreenButton, this.printable ? button("Print handout", () => this.print()) : null);
    this.body = make("div", "ivl-body", make("p", "ivl-wait", "Drawing the cloud …"));
    this.stage = make("div");
    this.tile = Object.fromEntries(show.map((name) => [name, make("dd", "", { "data-number": name })]));
    const tiles = show.map((name) => {
      const measure = this.words.measures[name];
      return make("div", "", make("dt", "", { title: measure?.tip ?? "" }, TITLES[name] ?? measure.title), this.tile[name]);
    });
    const head = make("header", "", make("h2", "", title), make("p", "ivl-idea", idea), tools);
    this.article.replaceChildren(head, this.body, make("div", "ivl-side", make("dl", "ivl-numbers", tiles), this.stage));
    this.article.classList.remove("ivl-free");
  }

  drawNumbers(values, k) {
    for (const [name, cell] of Object.entries(this.tile)) {
      const [current, earlier] = [values?.[name], k > 0 ? this.at[k - 1]?.[name] : undefined];
      if (values) {
        const [text, earlierText] = [formatted(current, name), earlier === undefined ? "" : formatted(earlier, name)];
        cell.replaceChildren(...(earlierText && earlierText !== text ? [make("s", "", earlierText), " → "] : []), text);
        cell.dataset.value = String(current);
        cell.removeAttribute("aria-busy");
      } else cell.setAttribute("aria-busy", "true");
    }
  }

  // At the end of a lesson the student moves the controls; updates the numbers.
  followNumbers() {
    if (!this.article.classList.contains("ivl-free")) return;
    clearTimeout(this.pollTimer);
    const values = valuesOf(this.playground, this.names);
    this.drawNumbers(values, 0);
    if (!values) this.pollTimer = setTimeout(() => this.followNumbers(), 60);
  }

  draw() {
    const { steps } = this.lesson;
    if (this.step > steps.length) this.drawEnd();
    else this.drawQuestion(steps[this.step - 1], steps.length);
  }

  drawQuestion(step, count) {
    const heading = make("h3", "", { tabIndex: -1 }, `Question ${this.step} of ${count}`);
    this.form = step.guess.kind === "number" ? this.numberForm(step) : this.choiceForm(step);
    this.body.replaceChildren(heading, make("p", "", this.fill(step.text)), make("p", "ivl-question", this.fill(step.question)), this.form);
  }

  numberForm({ guess, question }) {
    const { low, high, step } = guess;
    const field = make("input", "", { type: "range", min: low, max: high, step, value: (low + high) / 2, "aria-label": `Your guess: ${this.fill(question)}` });
    const readout = make("output", "", "?");
    const row = make("label", "ivl-guess", make("span", "", "Your guess"), readout, field, ends(guess));
    const send = this.submit();
    let chosen = null;
    // pointerup too: a click on the initial value is a guess, but no change
    field.oninput = field.onpointerup = () => {
      chosen = Number(field.value);
      readout.textContent = formatted(chosen);
      field.style.setProperty("--at", `${(100 * (field.value - low)) / (high - low)}%`);
      send.disabled = false;
    };
    return make("form", "ivl-form", { onsubmit: (event) => (event.preventDefault(), this.answer(chosen)) }, row, send);
  }

  choiceForm({ guess, question }) {
    const send = this.submit();
    let chosen = null;
    const options = guess.options.map(({ text }, index) => {
      const pick = () => ([chosen, send.disabled] = [index, false]);
      return make("label", "ivl-option", make("input", "", { type: "radio", name: "ivl-option", value: String(index), onchange: pick }), make("span", "", text));
    });
    const group = make("fieldset", "", make("legend", "ivl-visually-hidden", this.fill(question)), options);
    return make("form", "ivl-form", { onsubmit: (event) => (event.preventDefault(), this.answer(chosen)) }, group, send);
  }

  submit() {
    return make("button", "ivl-main", { type: "submit", disabled: !this.teaching }, "Show the answer");
  }

  drawEnd() {
    const heading = make("h3", "", { tabIndex: -1 }, "What you can defend");
    const claims = this.claims().map(({ says, holds }) => {
      const spoken = make("span", "ivl-visually-hidden", holds ? " This holds." : " This does not hold.");
      return make("li", holds ? "ivl-holds" : "ivl-fails", { "data-holds": holds }, says, spoken);
    });
    const next = this.lessons[this.lessons.indexOf(this.lesson) + 1];
    const onward = make("div", "ivl-onward", next ? button(`Next lesson: ${next.title}`, () => this.open(next.slug), MAIN) : null);
    onward.append(button("Start again", () => this.open(this.lesson.slug)));
    this.body.replaceChildren(heading, make("blockquote", "ivl-sentence", this.fill(this.lesson.sentence)), make("ul", "ivl-claims", claims), make("p", "ivl-hint", "Now move the controls yourself: does it still hold?"), onward);
    if (this.reached) markDone(this.lesson.slug);
    this.drawList();
    const freeControls = new Set(this.lesson.controls.filter((name) => !this.hidden.includes(name)));
    const hidden = ["presets", "numbers", "plots", ...ALL_CONTROLS.filter((name) => !freeControls.has(name)), ...(freeControls.has("transforms") ? [] : ["transforms"])];
    this.article.classList.add("ivl-free");
    this.playground.set({ ...this.playground.state(), hidden });
  }

  // ---- full screen and handout

  labelFullScreen() {
    if (this.fullScreenButton) this.fullScreenButton.textContent = document.fullscreenElement ? "Exit full screen" : "Full screen";
  }

  enlarge() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen?.();
  }

  async print() {
    const { title, idea, steps } = this.lesson;
    const picture = await this.startPicture();
    const withBlanks = (text) => fillIn(text, this.valueAt, "_______");
    this.handout.replaceChildren(make("h1", "", title), make("p", "", idea), picture);
    steps.forEach((step, k) => {
      this.handout.append(make("h2", "", `Question ${k + 1}`), make("p", "", withBlanks(step.text)), make("p", "", withBlanks(step.question)));
      if (step.guess.kind === "choice") this.handout.append(make("ul", "", step.guess.options.map(({ text }) => make("li", "", `☐ ${text}`))));
      this.handout.append(make("p", "", "Your guess: ______________    The answer: ______________"));
    });
    this.handout.append(make("h2", "", "What can you defend now?"), make("p", "ivl-lines"));
    globalThis.print();
  }

  // The cloud before the first question, in the colours of paper.
  async startPicture() {
    const state = normalised(this.lesson.states[0]);
    const { points, labels } = await this.playground.cloud({ state, after: state.transforms.length > 0 });
    const axes = Math.min(3, state.d);
    const coordinates = new Float32Array(3 * state.n);
    const mean = [0, 0, 0];
    for (let i = 0; i < state.n; i += 1) {
      for (let k = 0; k < axes; k += 1) {
        coordinates[3 * i + k] = points[i * state.d + k];
        mean[k] += coordinates[3 * i + k] / state.n;
      }
    }
    const view = new CloudView("Cloud");
    const stage = make("div", "ivp ivl-offscreen", view.element);
    this.root.append(stage);
    view.show({ coordinates, mean }, labels, state, lookOf(make("div"))); // an element outside the page has no theme: light colours
    const picture = make("img", "", { src: view.canvas.toDataURL(), alt: "The cloud at the start" });
    view.close();
    stage.remove();
    await picture.decode();
    return picture;
  }
}

const ends = ({ low, high }) => make("span", "ivl-ends", make("span", "", formatted(low)), make("span", "", formatted(high)));
const lowered = (text) => text[0].toLowerCase() + text.slice(1);

function doneLessons() {
  try {
    return new Set(JSON.parse(localStorage.getItem(DONE) ?? "[]"));
  } catch { // storage is disabled
    return new Set();
  }
}

function markDone(slug) {
  try {
    localStorage.setItem(DONE, JSON.stringify([...doneLessons().add(slug)]));
  } catch { /* storage is disabled; the mark is optional */ }
}

// Parses "#lesson=rotation&step=2&hidden=scale~d" to { lesson, step, hidden }; null without a lesson.
export function placeOf(hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  if (!parameters.get("lesson")) return null;
  return { lesson: parameters.get("lesson"), step: Number(parameters.get("step") ?? 1), hidden: (parameters.get("hidden") ?? "").split("~").filter(Boolean) };
}

export function hashOf({ lesson, step }, hidden = []) {
  return `#lesson=${lesson}&step=${step}${hidden.length ? `&hidden=${hidden.join("~")}` : ""}`;
}
