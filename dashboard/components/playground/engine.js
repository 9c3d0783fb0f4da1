// Computes everything for a state, the most visible first: closed forms and picture, axes, spectrum, neighbours, redraws.
// Intermediate results are cached by what they depend on, so that a rotation, scale or shift recomputes almost nothing.

export const REDRAWS = 200;
const REDRAW_WORK = 2e10; // budget of multiplications for all redraws; the largest clouds get fewer redraws
const MOST_ROUNDS = 40; // at most, when iterating to the three principal directions

class Cache {
  constructor() {
    this.entries = new Map();
  }

  // Returns the cached value of `name`, or computes it if the key has changed. Keeps one value per name.
  *getOrCompute(name, key, compute) {
    const text = JSON.stringify(key);
    const cached = this.entries.get(name);
    if (cached?.text === text) return cached.value;
    const value = yield* compute();
    this.entries.set(name, { text, value });
    return value;
  }
}

const pick = (state, names) => names.map((name) => state[name]);
const BASE_FIELDS = ["d", "n", "seed", "tails", "clusters", "duplicates"];
const SHAPE_FIELDS = [...BASE_FIELDS, "spectrum", "decay", "rank", "floor", "rogue", "rogueScale", "block", "rho", "separation"];
const ROTATION_FIELDS = [...SHAPE_FIELDS, "rotation"];

export class Engine {
  constructor() {
    this.cache = new Cache();
    this.axes = {};
  }

  // The cloud before shift, rotation and scale, with its covariance from the sums of the base cloud.
  *cloud(state) {
    const base = yield* this.cache.getOrCompute("base", pick(state, BASE_FIELDS), function* () {
      const drawn = yield* drawBase(state);
      yield;
      return { drawn, sums: yield* baseSums(drawn, state) };
    });
    const shape = yield* this.cache.getOrCompute("shape", pick(state, SHAPE_FIELDS), function* () {
      const stretch = stretchOf(state);
      const centres = centresOf(state);
      const covariance = shapedScatter(base.sums, state, stretch, centres);
      for (let k = 0; k < covariance.length; k += 1) covariance[k] /= state.n - 1;
      const mean = shapedRows(base.sums.mean, 1, state.d, state, stretch);
      if (state.separation) clusterMean(base.sums.sizes, centres, state.d).forEach((value, j) => (mean[j] += value));
      const known = trueCovariance(state, stretch);
      return { points: shapedPoints(base.drawn, state, stretch, centres), mean, covariance, known, labels: base.drawn.labels, originals: base.drawn.originals };
    });
    const rounds = yield* this.cache.getOrCompute("rotation", pick(state, ["d", "seed", "rotation"]), function* () {
      return rotationOf(state);
    });
    return { ...shape, n: state.n, d: state.d, shift: state.shift, scale: state.scale, rounds };
  }

  // Yields {answer} as soon as each part is computed, and undefined as a chance to pause.
  *steps(state, paused = false) {
    const cloud = yield* this.cloud(state);
    const problems = {};
    const values = closedNumbers(cloud, cloud.known, state.zeta, problems);
    yield { answer: { part: "picture", which: "before", values, problems, ...this.picture(cloud, state, "before"), labels: cloud.labels } };
    const dimensions = yield* this.cache.getOrCompute("dimensions", pick(state, [...ROTATION_FIELDS, "scale"]), () => this.dimensions(cloud));
    yield { answer: { part: "dimensions", which: "before", ...dimensions } };
    const known = yield* this.cache.getOrCompute("truth", pick(state, [...ROTATION_FIELDS, "scale", "shift"]), () => this.truth(cloud, state));
    yield { answer: { part: "truth", known: known.numbers, curve: known.curve } };
    const after = yield* this.after(cloud, state);
    if (after) yield* this.closedForms(after, state);
    yield* this.slower(cloud, state, "before");
    if (after) yield* this.slower(after, state, "after");
    yield { answer: { part: "settled" } };
    yield* this.redraws(state, paused);
  }

  *after(cloud, state) {
    if (!state.transforms.length) return null;
    return yield* this.cache.getOrCompute("after", [pick(state, [...ROTATION_FIELDS, "shift", "scale"]), state.transforms], function* () {
      return yield* transformed(placed(cloud, state), state.transforms);
    });
  }

  *closedForms(cloud, state) {
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
    const values = yield* this.cache.getOrCompute("true values", pick(state, SHAPE_FIELDS), function* () {
      return trueEigenvalues(cloud.known, state);
    });
    const rotated = rotatedMatrix(cloud.known, state.d, cloud.rounds);
    const total = values.reduce((sum, value) => sum + value, 0);
    let sum = 0;
    return { numbers: trueNumbers(state, cloud.known, values, rotated), curve: values.map((value) => (sum += value) / total) };
  }

  // Numbers that need eigenvalues or neighbours. Before a transform they do not depend on the rotation, and most not on shift or scale.
  *slower(cloud, state, which) {
    const before = which === "before";
    const key = before ? pick(state, SHAPE_FIELDS) : [pick(state, [...ROTATION_FIELDS, "shift", "scale"]), state.transforms];
    const keys = { spectrum: key, pairs: [key, cloud.shift], entries: [key, cloud.shift, state.rotation], origin: [key, cloud.shift] };
    for (const part of this.order()) {
      const { logits, values, ...found } = yield* this.cache.getOrCompute(`${which} ${part}`, keys[part], () => this.slow(part, cloud, which));
      yield { answer: { part, which, values: { ...values, ...(logits && partitionNumbers(logits, cloud)) }, ...found } };
    }
  }

  order() {
    return Object.keys(SLOWER);
  }

  slow(part, cloud) {
    return SLOWER[part](cloud);
  }

  // The plug-in and the unbiased IsoScore of newly drawn clouds; continues an interrupted series.
  *redraws(state, paused) {
    const scores = yield* this.cache.getOrCompute("redraws", pick(state, SHAPE_FIELDS), function* () {
      return { plug: [], unbiased: [] };
    });
    const { n, d } = state;
    const planned = Math.max(10, Math.min(REDRAWS, Math.floor(REDRAW_WORK / (n * d * Math.min(n, d)))));
    let reported = -1;
    while (!paused && scores.plug.length < planned) {
      const { isoscore, isoscore_unbiased } = yield* redrawn(state, scores.plug.length + 1);
      scores.plug.push(isoscore);
      scores.unbiased.push(isoscore_unbiased);
      if (scores.plug.length - reported >= 10 || scores.plug.length === planned) {
        reported = scores.plug.length;
        yield { answer: { part: "redraws", plug: scores.plug, unbiased: scores.unbiased, planned } };
      }
    }
    if (reported < 0) yield { answer: { part: "redraws", plug: scores.plug, unbiased: scores.unbiased, planned } };
  }

  // Coordinates (n, 3) along the axes of the view, and the cloud's mean.
  picture(cloud, state, which) {
    const { n, d, shift, scale } = cloud;
    const axes = state.view !== "dimensions" ? this.principal(cloud, which) : firstAxes(d, cloud.rounds);
    const coordinates = new Float64Array(3 * n); // single precision ends at 1e38
    const mean = [0, 0, 0];
    for (let k = 0; k < axes.length / d; k += 1) {
      const axis = axes.subarray(k * d, (k + 1) * d);
      const offset = axis.reduce((sum, value) => sum + value, 0) * shift;
      for (let i = 0; i < n; i += 1) coordinates[3 * i + k] = scale * (alongAxis(cloud.points, i * d, axis) + offset);
      mean[k] = scale * (alongAxis(cloud.mean, 0, axis) + offset);
    }
    return { coordinates, mean };
  }

  // Three principal directions, iterated from the previous ones, so that they follow a moving slider without jumps.
  principal({ d, covariance }, which) {
    const count = Math.min(3, d);
    let axes = this.axes[which];
    if (axes?.length !== count * d) {
      axes = new Float64Array(count * d);
      const stream = new Stream(7, 0, 0, PARTS.rotation);
      stream.fill(axes, 0, count * d);
      orthonormal(axes, count, d);
    }
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const next = new Float64Array(count * d);
      for (let k = 0; k < count; k += 1) timesVector(covariance, axes, k * d, next, d);
      orthonormal(next, count, d);
      let change = 0;
      for (let k = 0; k < next.length; k += 1) change = Math.max(change, Math.abs(next[k] - axes[k]));
      axes = next;
      if (change < 1e-4) break;
    }
    this.axes[which] = axes;
    return axes;
  }

  // Answers a question beside the states.
  answer({ state, draw, after }, post) {
    post({ part: "cloud", ...this.cloudOf(state, { draw, after }) });
  }

  // The final points (n, d) in float64 and the true covariance (d, d). The tests measure them with the Python engine.
  cloudOf(state, { draw = 0, after = false } = {}) {
    const cloud = finish(this.cloud(state));
    if (draw) {
      const stretch = stretchOf(state);
      return { points: placedPoints(shapedPoints(finish(drawBase(state, draw)), state, stretch, centresOf(state)), state, cloud.rounds) };
    }
    const placedCloud = placed(cloud, state);
    const points = after ? finish(transformed(placedCloud, state.transforms)).points : placedCloud.points;
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
  return yield* scoresOf(points, n, d);
}

// The plug-in and the unbiased IsoScore of points.
function* scoresOf(points, n, d) {
  const centred = subtractMean(points, meanOf(points, n, d), n, d);
  yield;
  const few = n < d;
  const size = few ? n : d;
  const matrix = yield* productOf(few ? rowsOf(centred, n, d) : columnsOf(centred, n, d));
  const { trace, squares } = traces(matrix.map((value) => value / (n - 1)), size);
  let quartic = 0;
  for (let i = 0; i < n; i += 1) quartic += squaresOf(centred, i * d, d) ** 2 / (n - 1);
  return { isoscore: squares > 0 ? ((trace * trace) / squares - 1) / (d - 1) : null, isoscore_unbiased: unbiasedScore({ trace, squares, quartic }, n, d) };
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
    const axis = axes.subarray(k * d, (k + 1) * d);
    for (let before = 0; before < k; before += 1) subtractAlong(axes, k * d, axes.subarray(before * d, (before + 1) * d), alongAxis(axes, before * d, axis));
    const length = Math.sqrt(squaresOf(axis, 0, d));
    for (let j = 0; j < d; j += 1) axis[j] = length > 0 ? axis[j] / length : Number(j === k);
  }
}
