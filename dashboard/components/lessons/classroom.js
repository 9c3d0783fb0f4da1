// A class on this server: a student's guesses are sent to it, and the teacher sees how they are distributed.
//
//   const classroom = new Classroom(lessons, { mayOpen, code })     `code` joins at once
//   classroom.ready     resolves to the slug of the lesson to start with, or null
//   classroom.close()   stops asking the server; the browser keeps its place in the class

const CLASS = "isoviz-class"; // where the browser keeps { code, student, joined, waiting, asked } or { code, key, link }
const EVERY = 1000; // ms between two looks at the guesses
const SLOWEST = 15000; // ms between attempts while the server does not answer
const BARS = 20;

export class Classroom {
  constructor(lessons, { mayOpen, code }) {
    Object.assign(this, { lessons, mayOpen, failures: 0, revealed: new Set(), guesses: {} });
    this.panel = make("section", "ivl-class");
    this.panel.setAttribute("aria-label", "Class");
    lessons.article.before(this.panel);
    lessons.root.addEventListener("lessons:guess", ({ detail }) => this.guessed(detail));
    for (const moved of ["lessons:place", "lessons:answer"]) lessons.root.addEventListener(moved, () => this.member?.key && this.drawGuesses());
    this.again = () => this.member && this.talk();
    globalThis.addEventListener("online", this.again);
    document.addEventListener("visibilitychange", this.again);
    this.member = kept();
    const wanted = code?.trim().toUpperCase();
    if (wanted && this.member?.code !== wanted) this.member = newStudent(wanted);
    this.draw();
    this.ready = this.member && !this.member.key ? this.join() : Promise.resolve(null);
    if (this.member?.key) this.talk();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    globalThis.removeEventListener("online", this.again);
    document.removeEventListener("visibilitychange", this.again);
  }

  // ---- both

  keep() {
    keep(this.member);
  }

  leave(message = "") {
    clearTimeout(this.timer);
    this.member = null;
    this.lessons.teach(false);
    keep(null);
    const address = new URL(location.href);
    address.searchParams.delete("class"); // or a reload would join again
    history.replaceState(history.state, "", address);
    this.draw(message);
  }

  async ask(method, body, code = this.member?.code) {
    const answer = await fetch(new URL(`isoviz/classes${code ? `/${encodeURIComponent(code)}` : ""}`, document.baseURI), {
      method,
      headers: this.member?.key ? { "x-isoviz-class": this.member.key } : {},
      body: body && JSON.stringify(body),
    });
    if (answer.ok) return answer.json();
    const text = (await answer.text()).slice(0, 200).trim();
    throw Object.assign(new Error(text), { status: answer.status });
  }

  // Asks the server what is due, and again later: a student's guesses that wait, or how the class has guessed.
  async talk() {
    if (this.talking || this.closed) return;
    clearTimeout(this.timer);
    this.talking = true;
    const member = this.member;
    let wait = null;
    try {
      if (member.key) {
        if (!document.hidden) {
          const { students, guesses } = await this.ask("GET");
          if (this.member === member) Object.assign(this, { students, guesses });
          wait = EVERY;
        }
      } else {
        while (this.member === member && member.waiting.length) {
          await this.ask("POST", { student: member.student, ...member.waiting[0] });
          member.waiting.shift();
          if (this.member === member) this.keep();
        }
      }
      this.failures = 0;
    } catch (error) {
      if (this.member === member) wait = this.failed(error);
    }
    this.talking = false;
    if (this.closed || !this.member) return;
    if (this.member !== member) return void this.talk();
    this.drawState();
    if (wait !== null) this.timer = setTimeout(() => this.talk(), wait);
  }

  // Milliseconds until the next attempt; null where another one is of no use.
  failed(error) {
    if (error.status === 404) return this.leave(this.member.key || this.member.joined ? "This class has ended." : error.message), null;
    if (error.status === 400) { // the class is full, or the teacher's server has another version of this lesson
      if (!this.member.waiting?.length) return this.leave(error.message), null;
      this.member.waiting.shift();
      this.keep();
      return 0;
    }
    this.failures += 1;
    return Math.min(SLOWEST, 500 * 2 ** Math.min(this.failures, 5));
  }

  // ---- the student

  async join() {
    const member = this.member;
    while (this.member === member && !this.closed) {
      try {
        const { lesson } = await this.ask("POST", { student: member.student });
        this.failures = 0;
        member.joined = true;
        this.keep();
        this.drawState();
        this.talk();
        return lesson;
      } catch (error) {
        if (this.member !== member) return null;
        const wait = this.failed(error);
        if (wait === null) return null;
        this.drawState();
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
    return null;
  }

  guessed({ lesson, step, guess }) {
    const question = `${lesson} ${step}`;
    if (!this.member || this.member.key || this.member.asked.includes(question)) return; // only the first guess counts
    this.member.asked.push(question);
    this.member.waiting.push({ lesson, step, guess });
    this.keep();
    this.drawState();
    this.talk();
  }

  // ---- the teacher

  async open() {
    try {
      this.member = await this.ask("POST", { lesson: this.lessons.place().lesson }, null);
    } catch (error) {
      return this.draw(error.status ? error.message : "The server does not answer. Try again.");
    }
    this.revealed.clear();
    Object.assign(this, { students: 0, guesses: {} });
    this.keep();
    this.draw();
    this.talk();
  }

  async end() {
    if (!confirm("Close the class? Its guesses are deleted.")) return;
    await this.ask("DELETE").catch(() => null); // whatever happens, this browser is done with it
    this.leave("The class is closed, and its guesses are deleted.");
  }

  // ---- what it draws

  draw(message = "") {
    this.panel.classList.toggle("ivl-teacher", Boolean(this.member?.key));
    if (this.member?.key) this.drawTeacher();
    else if (this.member) this.drawStudent();
    else this.drawOutside(message);
    if (this.member) this.drawState();
  }

  drawOutside(message) {
    const form = make("form", "ivl-join");
    const field = make("input");
    Object.assign(field, { name: "code", maxLength: 5, autocomplete: "off", spellcheck: false, placeholder: "Class code" });
    field.setAttribute("aria-label", "Class code");
    const join = button("Join class");
    join.type = "submit";
    form.append(field, join);
    form.onsubmit = async (event) => {
      event.preventDefault();
      const code = field.value.trim().toUpperCase();
      if (!code) return;
      this.member = newStudent(code);
      this.draw();
      const lesson = await this.join();
      if (lesson && lesson !== this.lessons.place().lesson) this.lessons.open(lesson);
    };
    if (this.mayOpen) form.append(button("Open a class", () => this.open()));
    const details = make("details");
    details.append(make("summary", "", this.mayOpen ? "Join or open a class" : "Join a class"), form);
    details.open = Boolean(message);
    this.panel.replaceChildren(details, said(message));
  }

  drawStudent() {
    this.state = said();
    this.panel.replaceChildren(make("strong", "", `Class ${this.member.code}`), this.state, button("Leave", () => this.leave()));
  }

  drawTeacher() {
    const { code, link } = this.member;
    const address = new URL(link, document.baseURI).href;
    this.state = said();
    const copied = make("span", "ivl-address", address);
    const copy = button("Copy link", async () => {
      try {
        await navigator.clipboard.writeText(address);
        copy.textContent = "Copied";
        setTimeout(() => (copy.textContent = "Copy link"), 3000);
      } catch { // browsers give the clipboard to safe addresses only: the address is selected instead
        getSelection().selectAllChildren(copied);
      }
    });
    const head = make("div", "ivl-class-head");
    head.append(make("strong", "ivl-code", code), this.state, copy, button("Close class", () => this.end()));
    this.charts = make("div", "ivl-charts");
    this.panel.replaceChildren(head, copied, ...(isLocal(location.hostname) ? [make("p", "ivl-hint", "Other computers cannot open this address. Start IsoViz with --host 0.0.0.0 to let students in.")] : []), this.charts);
    this.lessons.teach(true);
    this.drawGuesses();
  }

  drawState() {
    const { key, waiting, asked } = this.member;
    if (key) {
      this.state.textContent = this.failures ? "The server does not answer. Trying again …" : counted(this.students ?? 0, "student");
      this.drawGuesses();
    } else if (waiting.length) this.state.textContent = this.failures ? `${counted(waiting.length, "guess")} not sent yet. Trying again …` : "Sending …";
    else this.state.textContent = this.failures ? "The server does not answer. Trying again …" : asked.length ? `${counted(asked.length, "guess")} sent` : "Your guesses are shown to the class without your name.";
  }

  // One card per question of the open lesson. Guesses stay hidden until the teacher shows them.
  drawGuesses() {
    const { lesson } = this.lessons;
    if (!this.charts || !lesson) return;
    const now = JSON.stringify([lesson.slug, this.lessons.step, this.guesses[lesson.slug], [...this.revealed], Object.keys(this.lessons.at)]);
    if (now === this.drawn && this.charts.childElementCount) return;
    this.drawn = now;
    const focused = this.charts.querySelector(":focus")?.dataset.step;
    this.charts.replaceChildren(...lesson.steps.map(({ guess }, k) => this.card(lesson, guess, k + 1)));
    if (focused) this.charts.querySelector(`[data-step="${focused}"]`)?.focus();
  }

  card(lesson, guess, step) {
    const values = this.guesses[lesson.slug]?.[step] ?? [];
    const [name, card] = [`${lesson.slug} ${step}`, make("div", "ivl-chart")];
    const open = this.revealed.has(name);
    const toggle = button(open ? "Hide" : "Show guesses", () => {
      if (!this.revealed.delete(name)) this.revealed.add(name);
      this.drawGuesses();
    });
    toggle.dataset.step = String(step);
    toggle.setAttribute("aria-label", `${open ? "Hide" : "Show"} the guesses at question ${step}`);
    const head = make("div", "ivl-chart-head");
    head.append(make("strong", "", `Question ${step}`), make("span", "ivl-count", counted(values.length, "guess")), toggle);
    card.append(head);
    card.dataset.step = String(step);
    card.dataset.count = String(values.length);
    if (step === this.lessons.step) card.setAttribute("aria-current", "step");
    if (open) card.append(guess.kind === "number" ? numberChart(guess, values, this.lessons.valueAt(guess.of, step)) : choiceChart(guess, values, this.lessons.at[step] && this.lessons.rightOption(step)));
    return card;
  }
}

// The guesses between `low` and `high` in equal bars, and where the true value lies once it is known.
function numberChart({ low, high, step, of }, values, truth) {
  const counts = new Array(BARS).fill(0);
  for (const value of values) counts[Math.min(BARS - 1, Math.floor((BARS * (value - low)) / (high - low)))] += 1;
  const most = Math.max(1, ...counts);
  const plot = make("div", "ivl-bars");
  for (const count of counts) plot.append(Object.assign(make("i"), { style: `height: ${(100 * count) / most}%` }));
  const figure = make("div", "ivl-histogram");
  const known = Number.isFinite(truth);
  if (known) plot.append(Object.assign(make("b"), { style: `left: ${(100 * Math.min(1, Math.max(0, (truth - low) / (high - low)))).toFixed(2)}%` }));
  const near = values.filter((value) => Math.abs(value - truth) <= 3 * step).length;
  const parts = [...(values.length ? [`Median ${written(median(values))}`] : []), ...(known ? [`answer ${written(truth, of)}`, ...(values.length ? [`${near} of ${values.length} within ±${Number((3 * step).toPrecision(2))}`] : [])] : [])];
  figure.append(plot, ends({ low, high }), make("p", "", parts.join(" · ")));
  return figure;
}

function choiceChart({ options }, values, right) {
  const list = make("ul", "ivl-choices");
  options.forEach(({ text }, place) => {
    const count = values.filter((value) => value === place).length;
    const row = make("li", place === right ? "ivl-right" : "", "");
    row.append(make("span", "", `${text}${place === right ? " (the answer)" : ""}`), make("b", "", String(count)), Object.assign(make("i"), { style: `width: ${(100 * count) / Math.max(1, values.length)}%` }));
    list.append(row);
  });
  return list;
}

function median(values) {
  const middle = values.length / 2;
  return values.length % 2 ? values[Math.floor(middle)] : (values[middle - 1] + values[middle]) / 2;
}

function said(text = "") {
  const line = make("span", "ivl-state", text);
  line.setAttribute("role", "status");
  return line;
}

const counted = (many, noun) => `${many} ${many === 1 ? noun : noun === "guess" ? "guesses" : `${noun}s`}`;
const isLocal = (host) => /^(localhost|127\.[\d.]+|\[::1\])$/.test(host);

function newStudent(code) {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // randomUUID needs a safe address, which a classroom's server may not have
  return { code, student: [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(""), waiting: [], asked: [] };
}

function kept() {
  try {
    return JSON.parse(localStorage.getItem(CLASS));
  } catch { // no storage for this page
    return null;
  }
}

function keep(member) {
  try {
    if (member) localStorage.setItem(CLASS, JSON.stringify(member));
    else localStorage.removeItem(CLASS);
  } catch { /* then a reload leaves the class */ }
}
