// Numbers of a lesson: which are known after which step, how they are written, and whether a claim holds.

// The claims' little language, parsed by isoviz/lessons/expressions.py: numbers, ["at", name, step], ["abs", x], ["+", x, y], …
export function evaluated(tree, valueAt) {
  if (!Array.isArray(tree)) return tree;
  const [sign, ...parts] = tree;
  if (sign === "at") return valueAt(parts[0], parts[1]);
  const [left, right] = parts.map((part) => evaluated(part, valueAt));
  return { abs: () => Math.abs(left), "+": () => left + right, "-": () => left - right, "*": () => left * right, "/": () => (right ? left / right : NaN) }[sign]();
}

// All comparisons of a claim hold; with an undefined side one does not.
export function claimHolds(claim, valueAt) {
  return claim.every(([sign, ...sides]) => {
    const [left, right] = sides.map((side) => evaluated(side, valueAt));
    return sign === "<" ? left < right : left > right;
  });
}

// Every name that a lesson shows, asks for or writes into a sentence, without the prefix of true values.
export function namesOf(lesson) {
  const found = new Set(lesson.show);
  for (const [, name] of JSON.stringify(lesson).matchAll(/\{(?:true\.)?([a-z0-9_]+)@\d+\}/g)) found.add(name);
  const visit = (tree) => {
    if (!Array.isArray(tree)) return;
    if (tree[0] === "at") found.add(tree[1].replace(/^true\./, ""));
    else tree.forEach(visit);
  };
  for (const claim of lesson.claims) visit(claim.tree);
  for (const { guess } of lesson.steps) {
    if (guess.kind === "number") found.add(guess.of);
    else guess.options.forEach(({ tree }) => visit(tree));
  }
  return [...found];
}

// The numbers of the cloud as it stands: after its transforms where there are any. Undefined while any is pending.
export function valuesOf(playground, names) {
  const state = playground.state();
  const before = playground.numbers();
  const cloud = state.transforms.length ? playground.numbers("after") : before;
  const found = {};
  for (const name of names) {
    if (name === "best_accuracy") {
      found[name] = state.clusters === 2 && !state.transforms.length ? normalBelow(state.separation / 2) : NaN;
      continue;
    }
    if (cloud[name].pending || before[name].pending) return undefined;
    found[name] = cloud[name].value ?? NaN;
    found[`true.${name}`] = before[name].true ?? NaN;
  }
  return found;
}

// Φ(x): by its series, Φ(x) = ½ + φ(x) (x + x³/3 + x⁵/(3·5) + …), whose terms are all positive for x > 0.
export function normalBelow(x) {
  if (x < 0) return 1 - normalBelow(-x);
  if (x > 8) return 1;
  let [term, sum] = [x, x];
  for (let k = 3; term > 1e-17 * sum; k += 2) sum += term *= (x * x) / k;
  return 0.5 + (Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI)) * sum;
}

// As a sentence has it: 0.99, 0.025; only I1 and I2 have sizes that need a power of ten.
export function written(value, name = "") {
  if (!Number.isFinite(value)) return "undefined";
  const size = Math.abs(value);
  if (size < 0.001 && /i[12]$/.test(name) && size > 1e-12) return shown(value, 2);
  const text = value.toFixed(size >= 99.5 ? 0 : size >= 0.095 || size < 0.0005 ? 2 : 3);
  return text.replace("-", "−").replace(/^−(0\.0+)$/, "$1");
}

// A text with its {name@step} filled in; `blank` instead, where it is given.
export function filled(text, valueAt, blank = null) {
  return text.replace(/\{([a-z0-9_.]+)@(\d+)\}/g, (_, name, step) => blank ?? written(valueAt(name, Number(step)), name));
}
