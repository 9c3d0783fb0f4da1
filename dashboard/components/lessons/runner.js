// The lessons: a list, and one lesson at a time beside a playground that it moves itself.
//
//   const lessons = new Lessons(root, { lessons, words, hidden })   `lessons` as isoviz.lessons writes them, `words` the playground's
//   lessons.open(slug, step)     step 1 … n asks, n + 1 is the end; resolves once it stands
//   lessons.place()              { lesson, step }; root hears "lessons:place" with it whenever it changes
//   lessons.playground           the one on screen
//   lessons.claims()             at the end: [{ says, holds }], judged on the shown numbers
//   lessons.teach(on)            answers are shown without a guess
//   root also hears "lessons:guess" with { lesson, step, guess }, and "lessons:answer" when an answer is shown
//   hidden: names of controls that stay hidden at the end of a lesson, too. printable: whether the page prints nothing but its handout.

const ALL_CONTROLS = ["d", "n", "spectrum", "decay", "rank", "floor", "shift", "rogue", "rogueScale", "block", "rho", "rotation", "tails", "clusters", "separation", "duplicates", "scale", "zeta"];
const GUIDED = ["presets", "controls", "numbers", "transforms", "plots"];
const DONE = "isoviz-lessons-done";
const TITLES = { best_accuracy: "Best possible accuracy", ev_1: "Strongest direction (EV₁)", rogue_share: "Widest dimension's share" };

export class Lessons {
  constructor(root, { lessons, words, hidden = [], printable = true }) {
    Object.assign(this, { root, lessons, words, hidden, printable, opening: 0 });
    root.classList.add("ivl");
    this.list = make("ol", "ivl-list");
    this.article = make("article", "ivl-lesson");
    const nav = make("nav");
    nav.setAttribute("aria-label", "Lessons");
    nav.append(this.list);
    root.replaceChildren(nav, this.article);
    this.handout = make("section", "ivl-handout");
    root.append(this.handout);
    this.drawList();
  }

  place() {
    return { lesson: this.lesson?.slug ?? null, step: this.step ?? null };
  }

  async open(slug, step = 1) {
    const lesson = this.lessons.find((one) => one.slug === slug) ?? this.lessons[0];
    const opening = (this.opening += 1);
    this.leave();
    this.lesson = lesson;
    this.names = namesOf(lesson);
    this.at = [];
    this.reached = false; // by answering the last question: a link to the end is no lesson done
    this.step = Math.min(Math.max(1, Math.round(step) || 1), lesson.steps.length + 1);
    this.build();
    this.drawList();
    this.tell();
    this.playground = new Playground(this.stage, { words: this.words, state: { ...lesson.states[0], hidden: GUIDED } });
    this.stage.addEventListener("playground:change", () => this.followNumbers());
    for (let k = 0; k < this.step; k += 1) {
      await this.moveTo(k, false);
      if (opening !== this.opening) return;
    }
    this.draw();
  }

  // what tests hold against the engine
  get kinds() {
    return { DEFAULTS, BOUNDS, normalBelow };
  }

  teach(on) {
    this.teaching = on;
    const send = this.form?.querySelector("[type=submit]");
    if (send && on) send.disabled = false;
  }

  // The place of the option that came true at a step; -1 where none did.
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

  // ---- what it does

  leave() {
    clearTimeout(this.watch);
    this.playground?.close();
    this.playground = null;
  }

  valueAt = (name, step) => this.at[step]?.[name] ?? NaN;

  fill(text) {
    return filled(text, this.valueAt);
  }

  // Moves the controls to the state after step k, and stores the numbers measured there.
  async moveTo(k, animate) {
    const playground = this.playground;
    const wanted = normalised({ ...this.lesson.states[k], hidden: GUIDED });
    const target = JSON.stringify(wanted);
    playground.set(wanted, { animate });
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
    const [step, place] = [this.lesson.steps[this.step - 1], this.step];
    if (guess !== null) this.root.dispatchEvent(new CustomEvent("lessons:guess", { detail: { ...this.place(), guess } }));
    this.form.replaceWith(make("p", "ivl-wait", "The lesson moves the controls …"));
    await this.moveTo(place, true);
    if (this.step !== place || !this.playground) return;
    const result = make("div", "ivl-result");
    result.setAttribute("role", "status");
    result.append(...(guess === null ? [] : [this.verdict(step, guess, place)]), make("p", "", this.fill(step.answer)));
    const last = place === this.lesson.steps.length;
    this.reached = last;
    const next = button(last ? "What can you defend now?" : "Next question", () => this.go(place + 1));
    next.classList.add("ivl-main");
    this.body.querySelector(".ivl-wait").replaceWith(result, next);
    next.focus({ preventScroll: true });
    this.root.dispatchEvent(new CustomEvent("lessons:answer"));
  }

  verdict(step, guess, place) {
    const line = make("p", "ivl-verdict");
    if (step.guess.kind === "number") {
      const value = this.valueAt(step.guess.of, place);
      const off = Math.abs(value - guess);
      line.textContent = `You guessed ${written(guess)}. It is ${written(value, step.guess.of)}: off by ${written(off)}.`;
      line.classList.toggle("ivl-right", off <= 3 * step.guess.step);
      return line;
    }
    const right = this.rightOption(place);
    const answer = step.guess.options[right]?.text ?? "none of these";
    line.textContent = guess === right ? `Right: ${lowered(answer)}.` : `You chose “${step.guess.options[guess].text}”. The answer is “${answer}”.`;
    line.classList.toggle("ivl-right", guess === right);
    return line;
  }

  go(step) {
    this.step = step;
    this.tell();
    this.draw();
    this.body.querySelector("h3")?.focus({ preventScroll: false });
  }

  tell() {
    this.root.dispatchEvent(new CustomEvent("lessons:place", { detail: this.place(), bubbles: true }));
  }

  // ---- what it draws

  drawList() {
    const done = doneLessons();
    this.list.replaceChildren(...this.lessons.map((lesson) => {
      const item = make("li");
      const opener = button("", () => this.open(lesson.slug));
      opener.append(make("span", "ivl-title", lesson.title));
      if (done.has(lesson.slug)) opener.append(make("span", "ivl-done", "done"));
      if (lesson.slug === this.lesson?.slug) opener.setAttribute("aria-current", "true");
      item.append(opener);
      return item;
    }));
  }

  build() {
    const { title, idea, show } = this.lesson;
    const head = make("header");
    head.append(make("h2", "", title), make("p", "ivl-idea", idea));
    const tools = make("div", "ivl-tools");
    tools.append(button("Full screen", () => this.enlarge()));
    if (this.printable) tools.append(button("Print handout", () => this.print()));
    this.body = make("div", "ivl-body");
    this.body.append(make("p", "ivl-wait", "Drawing the cloud …"));
    const side = make("div", "ivl-side");
    this.stage = make("div");
    this.tiles = make("dl", "ivl-numbers");
    this.tile = {};
    for (const name of show) {
      const cell = make("div");
      const value = make("dd");
      value.dataset.number = name;
      const words = this.words.measures[name];
      const term = make("dt", "", TITLES[name] ?? words.title);
      if (words) term.title = words.tip;
      cell.append(term, value);
      this.tiles.append(cell);
      this.tile[name] = value;
    }
    side.append(this.tiles, this.stage);
    head.append(tools);
    this.article.replaceChildren(head, this.body, side);
    this.article.classList.remove("ivl-free");
  }

  drawNumbers(values, k) {
    for (const [name, cell] of Object.entries(this.tile)) {
      const [now, then] = [values?.[name], k > 0 ? this.at[k - 1]?.[name] : undefined];
      if (values) {
        const [text, old] = [written(now, name), then === undefined ? "" : written(then, name)];
        cell.replaceChildren(...(old && old !== text ? [make("s", "", old), " → "] : []), text);
        cell.dataset.value = String(now);
        cell.removeAttribute("aria-busy");
      } else cell.setAttribute("aria-busy", "true");
    }
  }

  // At the end the student moves the controls; the numbers follow.
  followNumbers() {
    if (!this.article.classList.contains("ivl-free")) return;
    clearTimeout(this.watch);
    const values = valuesOf(this.playground, this.names);
    this.drawNumbers(values, 0);
    if (!values) this.watch = setTimeout(() => this.followNumbers(), 60);
  }

  draw() {
    const { steps } = this.lesson;
    if (this.step > steps.length) this.drawEnd();
    else this.drawQuestion(steps[this.step - 1], steps.length);
  }

  drawQuestion(step, count) {
    const heading = make("h3", "", `Question ${this.step} of ${count}`);
    heading.tabIndex = -1;
    this.form = step.guess.kind === "number" ? this.numberForm(step) : this.choiceForm(step);
    this.body.replaceChildren(heading, make("p", "", this.fill(step.text)), make("p", "ivl-question", this.fill(step.question)), this.form);
  }

  numberForm({ guess, question }) {
    const form = make("form", "ivl-form");
    const row = make("label", "ivl-guess");
    const field = make("input");
    Object.assign(field, { type: "range", min: guess.low, max: guess.high, step: guess.step, value: (guess.low + guess.high) / 2 });
    field.setAttribute("aria-label", `Your guess: ${this.fill(question)}`);
    const said = make("output", "", "?");
    row.append(make("span", "", "Your guess"), said, field, ends(guess));
    const send = submit("Show the answer");
    send.disabled = !this.teaching;
    let given = null;
    field.oninput = () => {
      given = Number(field.value);
      said.textContent = written(given);
      field.style.setProperty("--at", `${(100 * (field.value - guess.low)) / (guess.high - guess.low)}%`);
      send.disabled = false;
    };
    form.append(row, send);
    form.onsubmit = (event) => (event.preventDefault(), this.answer(given));
    return form;
  }

  choiceForm({ guess, question }) {
    const form = make("form", "ivl-form");
    const group = make("fieldset");
    group.append(make("legend", "ivl-unseen", this.fill(question)));
    const send = submit("Show the answer");
    send.disabled = !this.teaching;
    guess.options.forEach(({ text }, place) => {
      const row = make("label", "ivl-option");
      const field = make("input");
      Object.assign(field, { type: "radio", name: "ivl-option", value: String(place) });
      field.onchange = () => (send.disabled = false);
      row.append(field, make("span", "", text));
      group.append(row);
    });
    form.append(group, send);
    form.onsubmit = (event) => (event.preventDefault(), this.answer(form.elements["ivl-option"].value ? Number(form.elements["ivl-option"].value) : null));
    return form;
  }

  drawEnd() {
    const heading = make("h3", "", "What you can defend");
    heading.tabIndex = -1;
    const proof = make("ul", "ivl-claims");
    for (const { says, holds } of this.claims()) {
      const item = make("li", holds ? "ivl-holds" : "ivl-fails", says);
      item.dataset.holds = String(holds);
      item.append(make("span", "ivl-unseen", holds ? " This holds." : " This does not hold."));
      proof.append(item);
    }
    const next = this.lessons[this.lessons.indexOf(this.lesson) + 1];
    const onward = make("div", "ivl-onward");
    if (next) onward.append(Object.assign(button(`Next lesson: ${next.title}`, () => this.open(next.slug)), { className: "ivl-main" }));
    onward.append(button("Start again", () => this.open(this.lesson.slug)));
    this.body.replaceChildren(heading, make("blockquote", "ivl-sentence", this.fill(this.lesson.sentence)), proof, make("p", "ivl-hint", "Now move the controls yourself: does it still hold?"), onward);
    if (this.reached) markDone(this.lesson.slug);
    this.drawList();
    const free = new Set(this.lesson.controls.filter((name) => !this.hidden.includes(name)));
    const hidden = ["presets", "numbers", "plots", ...ALL_CONTROLS.filter((name) => !free.has(name)), ...(free.has("transforms") ? [] : ["transforms"])];
    this.article.classList.add("ivl-free");
    this.playground.set({ ...this.playground.state(), hidden });
  }

  // ---- for the teacher

  enlarge() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen?.();
  }

  print() {
    const { title, idea, steps, sentence, claims } = this.lesson;
    const blank = (text) => filled(text, this.valueAt, "_______");
    this.handout.replaceChildren(make("h1", "", title), make("p", "", idea));
    steps.forEach((step, k) => {
      this.handout.append(make("h2", "", `Question ${k + 1}`), make("p", "", blank(step.text)), make("p", "", blank(step.question)));
      if (step.guess.kind === "choice") {
        const options = make("ul");
        options.append(...step.guess.options.map(({ text }) => make("li", "", `☐ ${text}`)));
        this.handout.append(options);
      }
      this.handout.append(make("p", "", "Your guess: ______________    The answer: ______________"));
    });
    this.handout.append(make("h2", "", "What you can defend"), make("p", "", blank(sentence)));
    const list = make("ul");
    list.append(...claims.map(({ says }) => make("li", "", blank(says))));
    this.handout.append(list);
    globalThis.print();
  }
}

function submit(text) {
  const found = make("button", "ivl-main", text);
  found.type = "submit";
  return found;
}

function ends({ low, high }) {
  const found = make("span", "ivl-ends");
  found.append(make("span", "", written(low)), make("span", "", written(high)));
  return found;
}

const lowered = (text) => text[0].toLowerCase() + text.slice(1);

function doneLessons() {
  try {
    return new Set(JSON.parse(localStorage.getItem(DONE) ?? "[]"));
  } catch { // no storage for this page
    return new Set();
  }
}

function markDone(slug) {
  try {
    localStorage.setItem(DONE, JSON.stringify([...doneLessons().add(slug)]));
  } catch { /* the mark is a convenience */ }
}

// "#lesson=rotation&step=2&hidden=scale~d" as { lesson, step, hidden }; null where no lesson is named.
export function placeOf(hash) {
  const named = new URLSearchParams(hash.replace(/^#/, ""));
  if (!named.get("lesson")) return null;
  return { lesson: named.get("lesson"), step: Number(named.get("step") ?? 1), hidden: (named.get("hidden") ?? "").split("~").filter(Boolean) };
}

export function hashOf({ lesson, step }, hidden = []) {
  return `#lesson=${lesson}&step=${step}${hidden.length ? `&hidden=${hidden.join("~")}` : ""}`;
}
