// A class on this server: students follow the lesson that the teacher shows, and the teacher sees the distribution of their guesses.
//
//   const classroom = new Classroom(lessons, { mayOpen, code })     `code` joins the class immediately
//   classroom.close()   stops polling; the browser stays in the class

const STORAGE_KEY = "isoviz-class"; // local storage: { code, student, joined, lesson, waiting, asked } of a student, { code, key, link, qr, lesson } of the teacher, or { ended: code } until the next visit; lesson: the one that the teacher shows, as last seen
const POLL_INTERVAL = 1000; // ms between the teacher's polls for new guesses
const FOLLOW_INTERVAL = 3000; // ms between a student's polls for the teacher's lesson
const LONGEST_RETRY = 15000; // ms between retries while the server is not responding
const BARS = 20;
const ENDED = "This class has ended.";

export class Classroom {
  constructor(lessons, { mayOpen, code }) {
    Object.assign(this, { lessons, mayOpen, failures: 0, revealed: new Set(), guesses: {} });
    this.panel = make("section", "ivl-class", { "aria-label": "Class" });
    lessons.article.before(this.panel);
    lessons.root.addEventListener("lessons:guess", ({ detail }) => this.queueGuess(detail));
    for (const event of ["lessons:place", "lessons:answer"]) lessons.root.addEventListener(event, () => this.member?.key && this.drawGuesses());
    this.retry = () => this.member && this.sync();
    globalThis.addEventListener("online", this.retry);
    document.addEventListener("visibilitychange", this.retry);
    const stored = loadMember();
    const ended = stored?.ended;
    this.member = ended ? null : stored;
    if (ended) saveMember(null); // said once more below, for those who reload
    const requestedCode = code?.trim().toUpperCase();
    if (requestedCode && requestedCode !== ended && this.member?.code !== requestedCode) this.member = newStudent(requestedCode);
    this.draw(ended ? ENDED : "");
    if (this.member) this.sync();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    globalThis.removeEventListener("online", this.retry);
    document.removeEventListener("visibilitychange", this.retry);
  }

  // ---- student and teacher

  save() {
    saveMember(this.member);
  }

  leave(message = "") {
    clearTimeout(this.timer);
    saveMember(message === ENDED ? { ended: this.member.code } : null);
    this.member = null;
    this.lessons.teach(false);
    const address = new URL(location.href);
    address.searchParams.delete("class"); // otherwise a reload would rejoin
    history.replaceState(history.state, "", address);
    this.draw(message);
  }

  async request(method, body, code = this.member?.code) {
    const response = await fetch(new URL(`isoviz/classes${code ? `/${encodeURIComponent(code)}` : ""}`, document.baseURI), {
      method,
      headers: this.member?.key ? { "x-isoviz-class": this.member.key } : {},
      body: body && JSON.stringify(body),
    });
    if (response.ok) return response.json();
    const text = (await response.text()).slice(0, 200).trim();
    throw Object.assign(new Error(text), { status: response.status });
  }

  // Sends a student's pending guesses and fetches the lesson to follow, or sends the teacher's lesson and fetches all guesses; then
  // schedules the next call.
  async sync() {
    if (this.syncing || this.closed) return;
    clearTimeout(this.timer);
    this.syncing = true;
    const member = this.member;
    let wait = null;
    try {
      if (member.key) {
        if (!document.hidden) {
          await this.sendLesson(member);
          const { students, guesses } = await this.request("GET");
          if (this.member === member) Object.assign(this, { students, guesses });
          wait = POLL_INTERVAL;
        }
      } else {
        while (this.member === member && member.waiting.length) {
          await this.request("POST", { student: member.student, ...member.waiting[0] });
          member.waiting.shift();
          if (this.member === member) this.save();
        }
        if (this.member === member && !(member.joined && document.hidden)) {
          const { lesson } = await this.request("POST", { student: member.student });
          if (this.member === member) this.follow(lesson);
          wait = member.waiting.length ? 0 : FOLLOW_INTERVAL; // a guess may have come meanwhile
        }
      }
      this.failures = 0;
    } catch (error) {
      if (this.member === member) wait = this.handleFailure(error);
    }
    this.syncing = false;
    if (this.closed || !this.member) return;
    if (this.member !== member) return void this.sync();
    this.drawState();
    if (wait !== null) this.timer = setTimeout(() => this.sync(), wait);
  }

  // Returns the milliseconds until the next attempt, or null if retrying is pointless.
  handleFailure(error) {
    if (error.status === 404 || error.status === 401) return this.leave(this.member.key || this.member.joined ? ENDED : error.message), null;
    if (error.status === 400) { // the class is full, or the server has another version of this lesson
      if (!this.member.waiting?.length) return this.leave(error.message), null;
      this.member.waiting.shift();
      this.save();
      return 0;
    }
    this.failures += 1;
    return Math.min(LONGEST_RETRY, 500 * 2 ** Math.min(this.failures, 5));
  }

  // ---- the student

  // Opens the teacher's lesson when it changes; until then a student may look at other lessons.
  follow(lesson) {
    const { member } = this;
    if (member.joined && member.lesson === lesson) return;
    Object.assign(member, { joined: true, lesson });
    this.save();
    if (lesson !== this.lessons.place().lesson) this.lessons.open(lesson);
  }

  queueGuess({ lesson, step, guess }) {
    const question = `${lesson} ${step}`;
    if (!this.member || this.member.key || this.member.asked.includes(question)) return; // only the first guess counts
    this.member.asked.push(question);
    this.member.waiting.push({ lesson, step, guess });
    this.save();
    this.drawState();
    this.sync();
  }

  // ---- the teacher

  async sendLesson(member) {
    const { lesson } = this.lessons.place();
    if (!lesson || lesson === member.lesson) return;
    try {
      await this.request("PUT", { lesson });
    } catch (error) {
      if (error.status !== 400) throw error; // a lesson that was added after the class was opened
    }
    member.lesson = lesson;
    if (this.member === member) this.save();
  }

  async open() {
    const { lesson } = this.lessons.place();
    try {
      this.member = { ...(await this.request("POST", { lesson, address: document.baseURI }, null)), lesson };
    } catch (error) {
      return this.draw(error.status ? error.message : "The server is not responding. Try again.");
    }
    this.revealed.clear();
    Object.assign(this, { students: 0, guesses: {} });
    this.save();
    this.draw();
    this.sync();
  }

  async end() {
    if (!confirm("Close the class? Its guesses are deleted.")) return;
    await this.request("DELETE").catch(() => null); // leave the class even if the request fails
    this.leave("The class is closed and its guesses are deleted.");
  }

  // ---- drawing

  draw(message = "") {
    this.panel.classList.toggle("ivl-teacher", Boolean(this.member?.key));
    if (this.member?.key) this.drawTeacher();
    else if (this.member) this.drawStudent();
    else this.drawJoinForm(message);
    if (this.member) this.drawState();
  }

  drawJoinForm(message) {
    const field = make("input", "", { name: "code", maxLength: 5, autocomplete: "off", spellcheck: false, placeholder: "Class code", "aria-label": "Class code" });
    const onsubmit = (event) => {
      event.preventDefault();
      const code = field.value.trim().toUpperCase();
      if (!code) return;
      this.member = newStudent(code);
      this.draw();
      this.sync();
    };
    const open = this.mayOpen ? button("Open a class", () => this.open()) : null;
    const form = make("form", "ivl-join", { onsubmit }, field, make("button", "", { type: "submit" }, "Join class"), open);
    const details = make("details", "", { open: Boolean(message) }, make("summary", "", this.mayOpen ? "Join or open a class" : "Join a class"), form);
    this.panel.replaceChildren(details, statusLine(message));
  }

  drawStudent() {
    this.state = statusLine();
    this.panel.replaceChildren(make("strong", "", `Class ${this.member.code}`), this.state, button("Leave", () => this.leave()));
  }

  drawTeacher() {
    const { code, link, qr } = this.member;
    const address = new URL(link, document.baseURI).href;
    this.state = statusLine();
    const addressLine = make("span", "ivl-address", address);
    const copy = button("Copy link", async () => {
      try {
        await navigator.clipboard.writeText(address);
        copy.textContent = "Copied";
        setTimeout(() => (copy.textContent = "Copy link"), 3000);
      } catch { // browsers allow it on secure addresses only; select the address instead
        getSelection().selectAllChildren(addressLine);
      }
    });
    const head = make("div", "ivl-class-head", make("strong", "ivl-code", code), this.state, copy, button("Close class", () => this.end()));
    this.charts = make("div", "ivl-charts");
    const plain = new URL(".", document.baseURI).href;
    const addresses = make("div", "", addressLine, make("p", "", `Without the link: open ${plain} and type ${code}.`));
    if (isLocal(location.hostname)) addresses.append(make("p", "ivl-hint", "Other computers cannot open this address. Start IsoViz with --host 0.0.0.0 to let students in."));
    const ways = make("div", "ivl-ways", addresses);
    if (qr) { // a click enlarges it for the back row
      const picture = make("img", "", { src: qr, alt: "QR code of the link" });
      const toggle = () => enlarge.setAttribute("aria-pressed", String(enlarge.classList.toggle("ivl-large")));
      const enlarge = button("", toggle, { className: "ivl-qr", "aria-label": "Enlarge the QR code", "aria-pressed": false }, picture);
      ways.append(enlarge);
    }
    this.panel.replaceChildren(head, ways, this.charts);
    this.lessons.teach(true);
    this.drawGuesses();
  }

  drawState() {
    const { key, waiting, asked } = this.member;
    if (key) {
      this.state.textContent = this.failures ? "The server is not responding. Retrying …" : countOf(this.students ?? 0, "student");
      this.drawGuesses();
    } else if (waiting.length) this.state.textContent = this.failures ? `${countOf(waiting.length, "guess")} not sent yet. Retrying …` : "Sending …";
    else this.state.textContent = this.failures ? "The server is not responding. Retrying …" : asked.length ? `${countOf(asked.length, "guess")} sent` : "Your guesses are shown to the class without your name.";
  }

  // One card per question of the open lesson. Guesses stay hidden until the teacher shows them.
  drawGuesses() {
    const { lesson } = this.lessons;
    if (!this.charts || !lesson) return;
    const snapshot = JSON.stringify([lesson.slug, this.lessons.step, this.guesses[lesson.slug], [...this.revealed], Object.keys(this.lessons.at)]);
    if (snapshot === this.drawnSnapshot && this.charts.childElementCount) return;
    this.drawnSnapshot = snapshot;
    const focused = this.charts.querySelector(":focus")?.dataset.step;
    this.charts.replaceChildren(...lesson.steps.map(({ guess }, k) => this.card(lesson, guess, k + 1)));
    if (focused) this.charts.querySelector(`button[data-step="${focused}"]`)?.focus();
  }

  card(lesson, guess, step) {
    const values = this.guesses[lesson.slug]?.[step] ?? [];
    const name = `${lesson.slug} ${step}`;
    const shown = this.revealed.has(name);
    const reveal = () => {
      if (!this.revealed.delete(name)) this.revealed.add(name);
      this.drawGuesses();
    };
    const toggle = button(shown ? "Hide" : "Show guesses", reveal, { "data-step": step, "aria-label": `${shown ? "Hide" : "Show"} the guesses at question ${step}` });
    const head = make("div", "ivl-chart-head", make("strong", "", `Question ${step}`), make("span", "ivl-count", countOf(values.length, "guess")), toggle);
    const card = make("div", "ivl-chart", { "data-step": step, "data-count": values.length }, head);
    if (step === this.lessons.step) card.setAttribute("aria-current", "step");
    if (shown) card.append(guess.kind === "number" ? numberChart(guess, values, this.lessons.valueAt(guess.of, step)) : choiceChart(guess, values, this.lessons.at[step] && this.lessons.rightOption(step)));
    return card;
  }
}

// A histogram of the guesses between `low` and `high`, with the true value once it is known.
function numberChart({ low, high, step, of }, values, truth) {
  const counts = new Array(BARS).fill(0);
  for (const value of values) counts[Math.min(BARS - 1, Math.floor((BARS * (value - low)) / (high - low)))] += 1;
  const highest = Math.max(1, ...counts);
  const plot = make("div", "ivl-bars", counts.map((count) => make("i", "", { style: `height: ${(100 * count) / highest}%` })));
  const answered = Number.isFinite(truth);
  if (answered) plot.append(make("b", "", { style: `left: ${(100 * Math.min(1, Math.max(0, (truth - low) / (high - low)))).toFixed(2)}%` }));
  const near = values.filter((value) => Math.abs(value - truth) <= 3 * step).length;
  const parts = [...(values.length ? [`Median ${formatted(median(values))}`] : []), ...(answered ? [`answer ${formatted(truth, of)}`, ...(values.length ? [`${near} of ${values.length} within ±${Number((3 * step).toPrecision(2))}`] : [])] : [])];
  return make("div", "ivl-histogram", plot, ends({ low, high }), make("p", "", parts.join(" · ")));
}

function choiceChart({ options }, values, correct) {
  return make("ul", "ivl-choices", options.map(({ text }, index) => {
    const count = values.filter((value) => value === index).length;
    const bar = make("i", "", { style: `width: ${(100 * count) / Math.max(1, values.length)}%` });
    const right = index === correct;
    return make("li", right ? "ivl-right" : "", make("span", "", `${text}${right ? " (the answer)" : ""}`), make("b", "", String(count)), bar);
  }));
}

function median(values) {
  const half = values.length / 2;
  return values.length % 2 ? values[Math.floor(half)] : (values[half - 1] + values[half]) / 2;
}

const statusLine = (text = "") => make("span", "ivl-state", { role: "status" }, text);
const countOf = (count, noun) => `${count} ${count === 1 ? noun : noun === "guess" ? "guesses" : `${noun}s`}`;
const isLocal = (host) => /^(localhost|127\.[\d.]+|\[::1\])$/.test(host);

function newStudent(code) {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // randomUUID needs a secure address, which a classroom's server may not have
  return { code, student: [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(""), waiting: [], asked: [] };
}

function loadMember() {
  try {
    return JSON.parse(localStorage.getItem(STORAGE_KEY));
  } catch { // storage is disabled
    return null;
  }
}

function saveMember(member) {
  try {
    if (member) localStorage.setItem(STORAGE_KEY, JSON.stringify(member));
    else localStorage.removeItem(STORAGE_KEY);
  } catch { /* then a reload leaves the class */ }
}
