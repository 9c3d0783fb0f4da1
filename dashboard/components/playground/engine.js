// What the worker does for a state, in the order in which it is wanted: closed forms and picture, axes, spectrum, neighbours, redraws.
// Steps are kept by what they depend on, so that a rotation, a scale or a shift redoes almost nothing.

export const REDRAWS = 200;
const REDRAW_WORK = 2e10; // multiplications that all redraws of a cloud may take; the largest clouds are drawn anew less often
const LIKELY = 40; // rounds of the search for the three principal directions

class Kept {
  constructor() {
    this.found = new Map();
  }

  // The value made for this key; only the latest of a name is kept.
  *of(name, key, make) {
    const text = JSON.stringify(key);
    const old = this.found.get(name);
    if (old?.text === text) return old.value;
    const value = yield* make();
    this.found.set(name, { text, value });
    return value;
  }
}

const pick = (state, names) => names.map((name) => state[name]);
const DRAWN = ["d", "n", "seed", "tails", "clusters", "duplicates"];
const SHAPED = [...DRAWN, "spectrum", "decay", "rank", "floor", "rogue", "rogueScale", "block", "rho", "separation"];
const TURNED = [...SHAPED, "rotation"];

export class Engine {
  constructor() {
    this.kept = new Kept();
    this.axes = {};
  }

  // The cloud before shift, rotation and scale, with its covariance from the sums of the base cloud.
  *cloud(state) {
    const base = yield* this.kept.of("base", pick(state, DRAWN), function* () {
      const drawn = yield* drawBase(state);
      yield;
      return { drawn, sums: yield* baseSums(drawn, state) };
    });
    const shape = yield* this.kept.of("shape", pick(state, SHAPED), function* () {
      const stretch = stretchOf(state);
      const centres = centresOf(state);
      const covariance = shapedScatter(base.sums, state, stretch, centres);
      for (let k = 0; k < covariance.length; k += 1) covariance[k] /= state.n - 1;
      const mean = shapedRows(base.sums.mean, 1, state.d, state, stretch);
      if (state.separation) centreMean(base.sums.sizes, centres, state.d).forEach((value, j) => (mean[j] += value));
      const known = trueCovariance(state, stretch);
      return { points: shapedPoints(base.drawn, state, stretch, centres), mean, covariance, known, labels: base.drawn.labels, originals: base.drawn.originals };
    });
    const rounds = yield* this.kept.of("rotation", pick(state, ["d", "seed", "rotation"]), function* () {
      return rotationOf(state);
    });
    return { ...shape, n: state.n, d: state.d, shift: state.shift, scale: state.scale, rounds };
  }

  // All answers for a state, each as soon as it stands: yields {answer} or nothing, which is a pause.
  *steps(state, paused = false) {
    const cloud = yield* this.cloud(state);
    const problems = {};
    const values = closedNumbers(cloud, cloud.known, state.zeta, problems);
    yield { answer: { part: "picture", which: "before", values, problems, ...this.picture(cloud, state, "before"), labels: cloud.labels } };
    const dimensions = yield* this.kept.of("dimensions", pick(state, [...TURNED, "scale"]), () => this.dimensions(cloud));
    yield { answer: { part: "dimensions", which: "before", ...dimensions } };
    const known = yield* this.kept.of("truth", pick(state, [...TURNED, "scale", "shift"]), () => this.truth(cloud, state));
    yield { answer: { part: "truth", known: known.numbers, curve: known.curve } };
    const after = yield* this.after(cloud, state);
    if (after) yield* this.firstOf(after, state);
    yield* this.slower(cloud, state, "before");
    if (after) yield* this.slower(after, state, "after");
    yield { answer: { part: "settled" } };
    yield* this.redraws(state, paused);
  }

  *after(cloud, state) {
    if (!state.transforms.length) return null;
    return yield* this.kept.of("after", [pick(state, [...TURNED, "shift", "scale"]), state.transforms], function* () {
      return yield* transformed(placed(cloud, state), state.transforms);
    });
  }

  *firstOf(cloud, state) {
    const problems = {};
    const values = closedNumbers(cloud, null, 0, problems);
    yield { answer: { part: "picture", which: "after", values, problems, ...this.picture(cloud, state, "after") } };
    yield { answer: { part: "dimensions", which: "after", ...(yield* this.dimensions(cloud)) } };
  }

  *dimensions(cloud) {
    const problems = {};
    const rotated = rotatedMatrix(cloud.covariance, cloud.d, cloud.rounds);
    yield;
    return { ...dimensionNumbers(cloud, rotated, problems), problems };
  }

  *truth(cloud, state) {
    const values = yield* this.kept.of("true values", pick(state, SHAPED), function* () {
      return trueEigenvalues(cloud.known, state);
    });
    const rotated = rotatedMatrix(cloud.known, state.d, cloud.rounds);
    const total = values.reduce((sum, value) => sum + value, 0);
    let sum = 0;
    return { numbers: trueNumbers(state, cloud.known, values, rotated), curve: values.map((value) => (sum += value) / total) };
  }

  // What needs eigenvalues or neighbours. Before a transform these do not see the rotation, and most not the shift or scale.
  *slower(cloud, state, which) {
    const before = which === "before";
    const key = before ? pick(state, SHAPED) : [pick(state, [...TURNED, "shift", "scale"]), state.transforms];
    const problems = {};
    const spectrum = yield* this.kept.of(`${which} spectrum`, key, () => spectrumNumbers(cloud, problems));
    yield { answer: { part: "spectrum", which, values: spectrum.values, curve: spectrum.curve, problems } };
    const pairs = yield* this.kept.of(`${which} pairs`, [key, cloud.shift], () => pairNumbers(cloud, problems));
    yield { answer: { part: "pairs", which, values: pairs, problems } };
    const origin = yield* this.kept.of(`${which} origin`, [key, cloud.shift], () => originNumbers(cloud, problems));
    const partition = origin.logits.length ? partitionNumbers(origin.logits, cloud) : { i1: null, i2: null };
    yield { answer: { part: "origin", which, values: { rankme: origin.rankme, ...partition }, problems } };
  }

  // The plug-in and the unbiased score of clouds drawn anew; they go on where they were left.
  *redraws(state, paused) {
    const found = yield* this.kept.of("redraws", pick(state, SHAPED), function* () {
      return { plug: [], unbiased: [] };
    });
    const { n, d } = state;
    const most = Math.max(10, Math.min(REDRAWS, Math.floor(REDRAW_WORK / (n * d * Math.min(n, d)))));
    let told = -1;
    while (!paused && found.plug.length < most) {
      const { isoscore, isoscore_unbiased } = yield* redrawn(state, found.plug.length + 1);
      found.plug.push(isoscore);
      found.unbiased.push(isoscore_unbiased);
      if (found.plug.length - told >= 10 || found.plug.length === most) {
        told = found.plug.length;
        yield { answer: { part: "redraws", plug: found.plug, unbiased: found.unbiased, most } };
      }
    }
    if (told < 0) yield { answer: { part: "redraws", plug: found.plug, unbiased: found.unbiased, most } };
  }

  // Coordinates (n, 3) along the axes of the view, the middle of the cloud, and the half length of each axis: two standard deviations.
  picture(cloud, state, which) {
    const { n, d, shift, scale } = cloud;
    const axes = state.view === "principal" ? this.principal(cloud, which) : firstAxes(d, cloud.rounds);
    const places = new Float32Array(3 * n);
    const middle = [0, 0, 0];
    for (let k = 0; k < axes.length / d; k += 1) {
      const axis = axes.subarray(k * d, (k + 1) * d);
      const beside = axis.reduce((sum, value) => sum + value, 0) * shift;
      for (let i = 0; i < n; i += 1) places[3 * i + k] = scale * (alongAxis(cloud.points, i * d, axis) + beside);
      middle[k] = scale * (alongAxis(cloud.mean, 0, axis) + beside);
    }
    return { places, middle };
  }

  // Three principal directions, found by iteration from the last ones: they follow a moving slider without a jump.
  principal({ d, covariance }, which) {
    const count = Math.min(3, d);
    let axes = this.axes[which];
    if (axes?.length !== count * d) {
      axes = new Float64Array(count * d);
      const stream = new Stream(7, 0, 0, PARTS.rotation);
      stream.fill(axes, 0, count * d);
      orthonormal(axes, count, d);
    }
    for (let round = 0; round < LIKELY; round += 1) {
      const next = new Float64Array(count * d);
      for (let k = 0; k < count; k += 1) timesVector(covariance, axes, k * d, next, d);
      orthonormal(next, count, d);
      let moved = 0;
      for (let k = 0; k < next.length; k += 1) moved = Math.max(moved, Math.abs(next[k] - axes[k]));
      axes = next;
      if (moved < 1e-4) break;
    }
    this.axes[which] = axes;
    return axes;
  }

  // The points as they lie, (n, d) float64, and the true covariance (d, d): what the tests measure with the engine in Python.
  cloudOf(state, { draw = 0, after = false } = {}) {
    const cloud = finish(this.cloud(state));
    if (draw) {
      const stretch = stretchOf(state);
      return { points: placedPoints(shapedPoints(finish(drawBase(state, draw)), state, stretch, centresOf(state)), state, cloud.rounds) };
    }
    const lies = placed(cloud, state);
    const points = after ? finish(transformed(lies, state.transforms)).points : lies.points;
    const known = rotatedMatrix(cloud.known, state.d, cloud.rounds).map((value) => value * state.scale ** 2);
    return { points, known, labels: cloud.labels.slice(), originals: cloud.originals };
  }
}

function placed(cloud, state) {
  const { n, d, covariance, mean, rounds, originals, shift, scale } = cloud;
  const square = scale * scale;
  return {
    n, d, originals, shift: 0, scale: 1, rounds: null,
    points: placedPoints(cloud.points, state, rounds),
    mean: rotateRows(mean.map((value) => value + shift), 1, d, rounds).map((value) => value * scale),
    covariance: rotatedMatrix(covariance, d, rounds).map((value) => value * square),
  };
}

function* redrawn(state, draw) {
  const { n, d } = state;
  const base = yield* drawBase(state, draw);
  const stretch = stretchOf(state);
  const points = shapedPoints(base, state, stretch, centresOf(state));
  yield;
  const centred = lessMean(points, meanOf(points, n, d), n, d);
  yield;
  const few = n < d;
  const rows = few ? centred : transposed(centred, n, d);
  yield;
  const matrix = few ? yield* gramOf(rows, n, d) : yield* gramOf(rows, d, n);
  const size = few ? n : d;
  let [trace, squares, quartic] = [0, 0, 0];
  for (let i = 0; i < size; i += 1) {
    trace += matrix[i * size + i] / (n - 1);
    squares += squaresOf(matrix, i * size, size) / (n - 1) ** 2;
  }
  for (let i = 0; i < n; i += 1) quartic += squaresOf(centred, i * d, d) ** 2 / (n - 1);
  const c = (n - 1) / (n * (n - 2) * (n - 3));
  const u = c * ((n - 1) * (n - 2) * squares + trace * trace - n * quartic);
  const v = c * (2 * squares + (n * n - 3 * n + 1) * trace * trace - n * quartic);
  return { isoscore: squares > 0 ? ((trace * trace) / squares - 1) / (d - 1) : null, isoscore_unbiased: u > 1e-6 * squares ? (v / u - 1) / (d - 1) : null };
}

function timesVector(matrix, vector, at, out, d) {
  for (let i = 0; i < d; i += 1) {
    let sum = 0;
    for (let j = 0; j < d; j += 1) sum += matrix[i * d + j] * vector[at + j];
    out[at + i] = sum;
  }
}

function orthonormal(axes, count, d) {
  for (let k = 0; k < count; k += 1) {
    const own = axes.subarray(k * d, (k + 1) * d);
    for (let before = 0; before < k; before += 1) takeAway(axes, k * d, axes.subarray(before * d, (before + 1) * d), alongAxis(axes, before * d, own));
    const length = Math.sqrt(squaresOf(own, 0, d));
    for (let j = 0; j < d; j += 1) own[j] = length > 0 ? own[j] / length : Number(j === k);
  }
}
