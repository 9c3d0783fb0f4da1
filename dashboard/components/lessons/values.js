// The numbers of a lesson: their values after each step, their format, and the claims about them.

// Evaluates an expression of a claim, parsed by isoviz/lessons/expressions.py: numbers, ["at", name, step], ["abs", x], ["+", x, y], …
export function evaluated(tree, valueAt) {
  if (!Array.isArray(tree)) return tree;
  const [operator, ...parts] = tree;
  if (operator === "at") return valueAt(parts[0], parts[1]);
  const [left, right] = parts.map((part) => evaluated(part, valueAt));
  return { abs: () => Math.abs(left), "+": () => left + right, "-": () => left - right, "*": () => left * right, "/": () => (right ? left / right : NaN) }[operator]();
}

// Whether all comparisons of a claim hold. A comparison with an undefined value does not.
export function claimHolds(claim, valueAt) {
  return claim.every(([operator, ...sides]) => {
    const [left, right] = sides.map((side) => evaluated(side, valueAt));
    return operator === "<" ? left < right : left > right;
  });
}

// The names of all numbers that a lesson uses, without the prefix "true.".
export function namesOf(lesson) {
  const names = new Set(lesson.show);
  for (const [, name] of JSON.stringify(lesson).matchAll(/\{(?:true\.)?([a-z0-9_]+)@\d+\}/g)) names.add(name);
  const visit = (tree) => {
    if (!Array.isArray(tree)) return;
    if (tree[0] === "at") names.add(tree[1].replace(/^true\./, ""));
    else tree.forEach(visit);
  };
  for (const claim of lesson.claims) visit(claim.tree);
  for (const { guess } of lesson.steps) {
    if (guess.kind === "number") names.add(guess.of);
    else guess.options.forEach(({ tree }) => visit(tree));
  }
  return [...names];
}

// The numbers of the current cloud, after its transforms if it has any. Undefined while any number is pending.
export function valuesOf(playground, names) {
  const state = playground.state();
  const before = playground.numbers();
  const cloud = state.transforms.length ? playground.numbers("after") : before;
  const values = {};
  for (const name of names) {
    if (name === "best_accuracy") {
      values[name] = state.clusters > 1 && !state.transforms.length ? bestAccuracy(state.separation, state.clusters) : NaN;
      continue;
    }
    if (cloud[name].pending || before[name].pending || before[name].truePending) return undefined;
    values[name] = cloud[name].value ?? NaN;
    values[`true.${name}`] = before[name].true ?? NaN;
  }
  return values;
}

// Share of points that the best classifier gets right, for equally large round clusters, each pair of centres `separation` standard
// deviations apart: ∫ φ(z) Φ(z + s/√2)^(clusters − 1) dz, by the trapezoidal rule, whose error is below rounding here.
export function bestAccuracy(separation, clusters) {
  const step = 1 / 16;
  let sum = 0;
  for (let z = -9; z <= 9; z += step) sum += (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * normalBelow(z + separation / Math.SQRT2) ** (clusters - 1);
  return sum * step;
}

// Φ(x) by its series, Φ(x) = ½ + φ(x) (x + x³/3 + x⁵/(3·5) + …), whose terms are all positive for x > 0.
export function normalBelow(x) {
  if (x < 0) return 1 - normalBelow(-x);
  if (x > 8) return 1;
  let [term, sum] = [x, x];
  for (let k = 3; term > 1e-17 * sum; k += 2) sum += term *= (x * x) / k;
  return 0.5 + (Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI)) * sum;
}

// Formats a number for a sentence: 0.99, 0.025. Only I1 and I2 can need a power of ten.
export function formatted(value, name = "") {
  if (!Number.isFinite(value)) return "undefined";
  const size = Math.abs(value);
  if (size < 0.001 && /i[12]$/.test(name) && size > 1e-12) return shown(value, 2);
  const text = value.toFixed(size >= 99.5 ? 0 : size >= 0.095 || size < 0.0005 ? 2 : 3);
  return text.replace("-", "−").replace(/^−(0\.0+)$/, "$1");
}

// Replaces each {name@step} in a text by its value, or by `blank` if given.
export function fillIn(text, valueAt, blank = null) {
  return text.replace(/\{([a-z0-9_.]+)@(\d+)\}/g, (_, name, step) => blank ?? formatted(valueAt(name, Number(step)), name));
}
