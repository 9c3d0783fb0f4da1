// The engine on vectors from files: the answers of engine.js without true values and redraws, then the order of the dimensions, the
// ruler and, on request, the neighbours of a row and the frontier. A second worker computes what takes few rows.

const RULER_ROWS = 3000; // as in `isoviz.readouts.ruler`
const GRID = 2001; // cosines of the ruler that the page keeps
const MOST_EIGENVECTORS = 2048; // of a matrix; twice as many take eight times as long
const FEWEST_ROWS = 10; // of the ruler
const ENOUGH = 64; // rows from which the unbiased IsoScore is an estimate
const JOBS = { ...SLOWER, ruler: rulerOf }; // of the second worker

export class OwnEngine extends Engine {
  exact = {}; // principal directions, before and after
  asked = {}; // lists of jobs of the second worker, with their answers
  frontier = null;
  lists = 0;
  openings = 0;

  // "open" reads files; the next state is computed on them. "cancel": not on those that are still read. "neighbours": the rows with the
  // highest cosines to a row, or to a text. "encoder": what makes vectors of texts. "help", "helper": the ends of a channel between this worker and the second one.
  async answer(data, post) {
    if (data.ask === "neighbours") post({ part: "neighbours", row: data.row, text: data.text, found: this.neighbours(data) });
    else if (data.ask === "encoder") this.encoder = new StaticEncoder(data);
    else if (data.ask === "help") help(data.port);
    else if (data.ask === "helper") this.listen(data.port);
    else if (data.ask === "cancel") this.openings += 1;
    else await this.open(data, post);
  }

  async open(data, post) {
    const number = (this.openings += 1);
    const say = (message) => number === this.openings && post(message); // only of the files that came last
    let own;
    try {
      own = await readFiles(data.files, (text) => say({ part: "progress", text }), this.encoder);
      await pauses()(); // for a "cancel" that waits
    } catch (error) {
      if (!(error instanceof FileError)) console.error(error);
      say({ part: "refused", problem: error.message });
      return;
    }
    if (number !== this.openings) return;
    Object.assign(this, { own, axes: {}, exact: {}, asked: {}, cache: new Cache(), frontier: null });
    const { name, n, d, columns, zeros, encoded } = own;
    say({ part: "opened", name, n, d, columns, zeros, encoded });
  }

  *cloud() {
    const { values: points, n, d, columns } = this.own;
    return yield* this.cache.getOrCompute("own", [], function* () {
      const eps = points instanceof Float32Array ? 2 ** -23 : EPS;
      const cloud = yield* cloudOf(points, { n, d, originals: n, eps }, meanOf(points, n, d));
      return { ...cloud, known: null, labels: colouring(columns.label) };
    });
  }

  // Ends as soon as another file is open: what follows would be kept as that file's numbers.
  *steps(state, paused) {
    const { own } = this;
    for (const step of this.stepsOnFile(state, paused)) {
      yield step;
      if (this.own !== own) return;
    }
  }

  *stepsOnFile(state, paused) {
    if (!this.own) {
      yield { answer: { part: "settled" } };
      return;
    }
    yield* this.ask("ruler", [], () => ({ ruler: rowsForRuler(this.own) }));
    for (const step of super.steps(state, paused)) {
      const { part, which, axes, values } = step?.answer ?? {};
      if (part === "settled") yield* this.afterwards();
      if (part === "picture" && values?.isoscore_unbiased != null) yield* this.doubt(step.answer, state);
      yield step;
      if (part === "spectrum" && axes) yield* this.exactPicture(state, which, axes);
    }
  }

  // No unbiased IsoScore of rows that were whitened on themselves, or so few that its interval is wider than its range.
  *doubt({ which, values, problems }, state) {
    const own = yield* this.cloud();
    const cloud = which === "before" ? own : yield* this.after(own, state);
    const whitened = which === "after" && state.transforms.some(({ slug, strength }) => slug === "zca" && strength > 0);
    if (whitened) problems.isoscore_unbiased = WHITENED;
    else if (cloud.n < ENOUGH && (yield* intervalWidth(cloud)) > 1) problems.isoscore_unbiased = `cannot be estimated from ${cloud.n} rows`;
    if (problems.isoscore_unbiased) values.isoscore_unbiased = null;
  }

  *afterwards() {
    const cloud = yield* this.cloud();
    const order = yield* this.cache.getOrCompute("order", [], () => clusteredOrder(cloud));
    yield { answer: { part: "order", order } };
    yield { answer: { part: "ruler", ...(yield* this.answered("ruler", "ruler")) } };
  }

  // The cloud along its exact principal directions, to which the first picture only comes near.
  *exactPicture(state, which, axes) {
    if (state.view === "dimensions" || this.exact[which] === axes) return;
    const own = yield* this.cloud();
    const cloud = which === "before" ? own : yield* this.after(own, state);
    for (let at = 0; at < axes.length; at += cloud.d) {
      if (alongAxis(this.axes[which], at, axes.subarray(at, at + cloud.d)) < 0) scaleRow(axes, at, cloud.d, -1); // the picture must not flip
    }
    this.axes[which] = this.exact[which] = axes;
    yield { answer: { part: "picture", which, ...this.picture(cloud, state, which), labels: own.labels } };
  }

  *truth() {
    return { numbers: {}, curve: null };
  }

  // The frontier, once the page lifts the pause; continues where a newer state interrupted it.
  *redraws(state, paused) {
    if (paused || this.frontier === "ended") return;
    const cloud = yield* this.cloud();
    const problem = this.noFrontier(cloud);
    if (problem) {
      yield { answer: { part: "frontier", ended: true, problem } };
      return;
    }
    const axes = yield* this.cache.getOrCompute("axes", [], () => principalAxes(cloud));
    this.frontier ??= frontierOf(cloud, axes);
    for (let step = this.frontier.next(); !step.done; step = this.frontier.next()) yield step.value && { answer: { part: "frontier", ...step.value } };
    this.frontier = "ended";
    yield { answer: { part: "frontier", ended: true } };
  }

  noFrontier({ n, d, collapsed }) {
    const distinct = n - (this.asked.before?.pairs?.copies ?? 0); // of the rows of which pairs are formed
    if (collapsed) return "all rows are equal";
    if (distinct <= NEIGHBOURS + 1) return `with ${NEIGHBOURS} neighbours it needs at least ${NEIGHBOURS + 2} distinct rows, got ${distinct}`;
    return d > MOST_EIGENVECTORS ? `it needs the eigenvectors, which this page computes up to ${MOST_EIGENVECTORS} dimensions` : null;
  }

  *after(cloud, state) {
    if (!state.transforms.length) return null;
    return yield* this.cache.getOrCompute("after", state.transforms, () => transformed(cloud, state.transforms));
  }

  *slower(cloud, state, which) {
    yield* this.ask(which, which === "before" ? [] : state.transforms, () => {
      const few = fewRows(cloud);
      return { spectrum: { ...cloud, labels: null, points: needsPoints(cloud) ? cloud.points : null }, pairs: few, entries: few };
    });
    yield* super.slower(cloud, state, which);
  }

  order() {
    return ["origin", "spectrum", "pairs", "entries"];
  }

  slow(part, cloud, which) {
    return part === "origin" ? originNumbers(cloud, (along) => logSum(along), MOST_EIGENVECTORS) : this.answered(which, part);
  }

  // ---- the second worker

  listen(port) {
    this.helper = port;
    port.onmessage = ({ data: { which, id, ...answers } }) => {
      if (this.asked[which]?.id === id) Object.assign(this.asked[which], answers);
      this.arrived?.();
    };
  }

  // Sends jobs, unless this was done before.
  *ask(which, key, jobs) {
    const { helper, asked } = this;
    const id = (this.lists += 1);
    yield* this.cache.getOrCompute(`${which} asked`, key, function* () {
      asked[which] = { id };
      const list = jobs();
      if (helper) helper.postMessage({ which, id, jobs: list }, [(list.pairs ?? list.ruler).points.buffer]);
      else for (const [name, job] of Object.entries(list)) asked[which][name] = yield* JOBS[name](job);
    });
  }

  *answered(which, name) {
    const answers = this.asked[which]; // none while a new file takes the place of this one
    while (!answers?.[name]) {
      if (answers?.failed) throw new Error(answers.failed);
      yield new Promise((resolve) => (this.arrived = resolve));
    }
    return answers[name];
  }

  neighbours({ row, text, count }) {
    const { values, n, d } = this.own;
    const point = text === undefined ? values.subarray(row * d, (row + 1) * d) : this.encoder.encode([text]).values;
    const own = Math.sqrt(squaresOf(point, 0, d));
    const found = [];
    for (let i = 0; i < n; i += 1) {
      if (i === row) continue;
      let inner = 0;
      for (let j = 0; j < d; j += 1) inner += point[j] * values[i * d + j];
      const product = own * Math.sqrt(squaresOf(values, i * d, d));
      if (product > 0) found.push([i, inner / product]);
    }
    return found.sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, count);
  }
}

// In the second worker: computes lists of jobs in turn. A list replaces an older one of the same cloud.
function help(port) {
  let [lists, busy] = [[], false];
  const pause = pauses();
  const compute = async (list) => {
    let since = performance.now();
    for (const [name, job] of Object.entries(list.jobs)) {
      const steps = JOBS[name](job);
      let step = steps.next();
      for (; !step.done; step = steps.next()) {
        if (performance.now() - since < SLICE) continue;
        await pause();
        if (!lists.includes(list)) return;
        since = performance.now();
      }
      port.postMessage({ which: list.which, id: list.id, [name]: step.value });
    }
  };
  port.onmessage = async ({ data }) => {
    lists = [...lists.filter(({ which }) => which !== data.which), data];
    if (busy) return;
    busy = true;
    while (lists.length) {
      const [list] = lists;
      await compute(list).catch((error) => port.postMessage({ which: list.which, id: list.id, failed: String(error?.stack ?? error) }));
      lists = lists.filter((other) => other !== list);
    }
    busy = false;
  };
}

// Of the 95 % interval of the unbiased IsoScore, by leaving out one row at a time; 0 without one.
function* intervalWidth({ n, d, points }) {
  const scores = [];
  for (let without = 0; without < n && n > 4; without += 1) {
    const others = points.filter((_, at) => Math.floor(at / d) !== without);
    scores.push((yield* scoresOf(others, n - 1, d)).isoscore_unbiased);
  }
  if (!scores.length || scores.includes(null)) return 0;
  const average = scores.reduce((sum, score) => sum + score, 0) / n;
  const error = Math.sqrt(((n - 1) / n) * scores.reduce((sum, score) => sum + (score - average) ** 2, 0));
  const [z, v] = [1.959964, n - 1]; // Student's quantile from the normal one (Fisher & Cornish 1960)
  const t = z + (z ** 3 + z) / (4 * v) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * v ** 2) + (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * v ** 3);
  return 2 * t * error;
}

// The rows of which pairs are formed, as a cloud.
function fewRows({ n, d, points, eps, collapsed }) {
  const rows = pairedRows(n);
  const chosen = rowsAt(points, rows, d);
  return { n: rows.length, d, points: chosen, mean: meanOf(chosen, rows.length, d), shift: 0, rounds: null, originals: rows.length, eps, collapsed };
}

function rowsForRuler({ values, n, d, columns }) {
  const rows = pairedRows(n, RULER_ROWS);
  const codes = columns.label && new Map([...new Set(columns.label)].map((label, code) => [label, code]));
  return { d, rows, points: rowsAt(values, rows, d), labels: codes && Int32Array.from(rows, (row) => codes.get(columns.label[row])) };
}

// Average linkage of 1 − |ρ| by chains of nearest neighbours; the order of its leaves, heavier branches first.
function* clusteredOrder({ covariance, d }) {
  const inverse = inverseSpreads(covariance, d);
  const distance = new Float32Array(d * d);
  for (let i = 0; i < d; i += 1) for (let j = 0; j < d; j += 1) distance[i * d + j] = 1 - Math.min(1, Math.abs(covariance[i * d + j]) * inverse[i] * inverse[j]);
  const groups = Array.from({ length: d }, (_, i) => [i]);
  const open = new Set(groups.keys());
  const chain = [];
  while (open.size > 1) {
    if (!chain.length) chain.push(open.values().next().value);
    const tip = chain.at(-1);
    let [best, near] = [chain.at(-2) ?? -1, Infinity];
    if (best >= 0) near = distance[tip * d + best];
    for (const other of open) if (other !== tip && distance[tip * d + other] < near) [best, near] = [other, distance[tip * d + other]];
    if (best !== chain.at(-2)) {
      chain.push(best);
      continue;
    }
    chain.splice(-2);
    const [first, second] = groups[tip].length >= groups[best].length ? [tip, best] : [best, tip];
    const [a, b] = [groups[first].length, groups[second].length];
    for (const other of open) distance[first * d + other] = distance[other * d + first] = (a * distance[first * d + other] + b * distance[second * d + other]) / (a + b);
    groups[first] = [...groups[first], ...groups[second]];
    open.delete(second);
    yield;
  }
  return Int32Array.from(groups[open.values().next().value]);
}

// Cosines of unrelated pairs: all pairs that are not copies of each other, or those of different labels.
function* rulerOf({ d, rows, points, labels }) {
  const m = rows.length;
  if (m < FEWEST_ROWS) return { levels: null, problem: `needs at least ${FEWEST_ROWS} rows, got ${m}` };
  if (points.every((value, at) => value === points[at % d])) return { levels: null, problem: `all rows are ${points.some(Boolean) ? "identical, so every cosine is 1" : "zero"}` };
  const lengths = Float64Array.from(rows, (_, i) => Math.sqrt(squaresOf(points, i * d, d)));
  const cosines = new Float32Array((m * (m - 1)) / 2);
  const links = unlinked(m);
  function* fill(leaders) {
    let filled = 0;
    for (const block of rowProducts(points, m, d)) {
      yield;
      for (let i = block?.first; i < block?.end; i += 1) {
        const at = (i - block.first) * block.end;
        for (let j = 0; j < i; j += 1) {
          const cosine = block.products[at + j] / (lengths[i] * lengths[j]);
          if (!leaders) link(links, i, j, 2 - 2 * cosine, 1);
          else if (leaders[i] === leaders[j]) continue;
          if (!labels || labels[i] !== labels[j]) cosines[filled++] = cosine;
        }
      }
    }
    return filled;
  }
  let count = yield* fill(null);
  if (links[0].some((leader, i) => leader !== i)) {
    const unit = Float64Array.from(points, (value, at) => value / lengths[Math.floor(at / d)]);
    const copies = yield* copiesOf({ n: m, d, points: unit, mean: meanOf(unit, m, d), shift: 0 }, pairedRows(m, m), links);
    if (copies) count = yield* fill(copies.leaders);
  }
  if (!count) return { levels: null, problem: "all rows have the same label, so no pair is unrelated" };
  const sorted = cosines.subarray(0, count).sort();
  yield;
  const found = { rows: m, pairs: count, levels: SHARES.map((share) => quantile(sorted, share)), grid: Float32Array.from({ length: GRID }, (_, k) => quantile(sorted, k / (GRID - 1))) };
  release(cosines, points);
  return found;
}

function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const low = Math.floor(place);
  return sorted[low] + (place - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}
