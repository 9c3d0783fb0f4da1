// The playground's state: one plain object of JSON, its defaults and bounds, and its short form in a link.

export const DEFAULTS = {
  d: 64, // dimensions
  n: 1000, // points
  seed: 1,
  spectrum: "flat", // of the variances before what follows; their mean is 1 in every family
  decay: 1, // power: λ_j ∝ j^−decay; exponential: λ_j ∝ exp(−decay (j − 1)/(d − 1))
  rank: 16, // step: dimensions 1 … rank vary fully
  floor: 0, // step: variance of the others, as a share of the former
  shift: 0, // added to every coordinate, in units of the mean variance's root
  rogue: 1, // dimension, counted from 1
  rogueScale: 1, // what its standard deviation is multiplied by
  block: 1, // neighbouring dimensions that are correlated with each other; 1: none
  rho: 0.8, // their correlation
  rotation: 0, // 0: none, 1: every dimension a mixture of all
  tails: 0, // degrees of freedom of Student's t; 0: Gaussian
  clusters: 1,
  separation: 4, // distance of any two cluster centres, in the same unit as the shift
  duplicates: 0, // share of points that are copies of others
  scale: 1, // multiplies everything
  zeta: 0.2, // weight of the true covariance in IsoScore*
  transforms: [], // [{slug, ...parameters}], one after another
  view: "dimensions", // "dimensions": the first three, "principal": the three that vary most
  hidden: [], // names of controls, and "numbers", "plots", "transforms"
};

// [least, most]; whole numbers are rounded.
export const BOUNDS = {
  d: [2, 1024], n: [10, 5000], seed: [0, 4294967295], decay: [0, 10], rank: [1, 1024], floor: [0, 1], shift: [-20, 20], rogue: [1, 1024],
  rogueScale: [0, 100], block: [1, 64], rho: [0, 0.99], rotation: [0, 1], tails: [0, 100], clusters: [1, 10], separation: [0, 50],
  duplicates: [0, 0.95], scale: [0.001, 1000], zeta: [0, 1],
};
const WHOLE = new Set(["d", "n", "seed", "rank", "rogue", "block", "tails", "clusters"]);
export const CHOICES = { spectrum: ["flat", "power", "exponential", "step"], view: ["dimensions", "principal"] };
export const TRANSFORMS = {
  centring: {},
  all_but_the_top: { remove: [1, 0, 40] },
  zca: { strength: [0.5, 0, 1], eps: [0, 0, 1e6] },
  isobn: { beta: [0.5, 0, 4] },
  batch_norm: { eps: [1e-5, 0, 1e6] },
};
const MOST_STEPS = 6;

// By the names of `isoviz.metrics`, in the order in which they are shown.
export const MEASURES = [
  "isoscore", "isoscore_unbiased", "isoscore_star", "participation_ratio", "effective_rank", "ev_1", "rogue_share", "abs_correlation",
  "mean_cosine", "uniformity", "rankme", "i1", "i2", "twonn", "hubness",
];

// A whole state from any part of one: unknown names and values that do not fit are left out and named in `ignored`.
export function normalised(part, ignored = []) {
  const state = structuredClone(DEFAULTS);
  for (const [name, value] of Object.entries(part ?? {})) {
    const fit = fitted(name, value);
    if (fit === undefined) ignored.push(name);
    else state[name] = fit;
  }
  state.rank = Math.min(state.rank, state.d);
  state.rogue = Math.min(state.rogue, state.d);
  state.block = Math.min(state.block, state.d);
  state.clusters = Math.min(state.clusters, state.d + 1);
  if (state.tails === 1 || state.tails === 2) state.tails = 3; // without a variance there is no covariance to measure
  return state;
}

function fitted(name, value) {
  if (name in BOUNDS) {
    if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
    const [least, most] = BOUNDS[name];
    return Math.min(most, Math.max(least, WHOLE.has(name) ? Math.round(value) : value));
  }
  if (name in CHOICES) return CHOICES[name].includes(value) ? value : undefined;
  if (name === "hidden") return Array.isArray(value) ? value.filter((one) => typeof one === "string") : undefined;
  if (name !== "transforms" || !Array.isArray(value)) return undefined;
  return value.filter((step) => step && Object.hasOwn(TRANSFORMS, step.slug)).slice(0, MOST_STEPS).map(fittedStep);
}

function fittedStep(step) {
  const found = { slug: step.slug };
  for (const [name, [start, least, most]] of Object.entries(TRANSFORMS[step.slug])) {
    const value = typeof step[name] === "number" && Number.isFinite(step[name]) ? step[name] : start;
    found[name] = Math.min(most, Math.max(least, name === "remove" ? Math.round(value) : value));
  }
  return found;
}

// "d=256&shift=1.5&transforms=centring~zca:strength=0.4": what differs from the defaults. Numbers keep every digit.
export function toLink(state) {
  const parts = [];
  for (const [name, value] of Object.entries(state)) {
    if (!(name in DEFAULTS) || JSON.stringify(value) === JSON.stringify(DEFAULTS[name])) continue;
    const text = name === "transforms" ? value.map(stepText).join("~") : name === "hidden" ? value.join("~") : String(value);
    parts.push(`${name}=${encodeURIComponent(text).replaceAll("%3A", ":").replaceAll("%3D", "=").replaceAll("%2C", ",")}`);
  }
  return parts.join("&");
}

function stepText({ slug, ...parameters }) {
  const said = Object.entries(parameters).filter(([name, value]) => value !== TRANSFORMS[slug][name][0]).map(([name, value]) => `${name}=${value}`);
  return said.length ? `${slug}:${said.join(",")}` : slug;
}

export function fromLink(text, ignored = []) {
  const part = {};
  for (const piece of text.replace(/^[#?]/, "").split("&").filter(Boolean)) {
    const at = piece.indexOf("=");
    const name = piece.slice(0, at);
    let value = piece.slice(at + 1);
    try {
      value = decodeURIComponent(value);
    } catch {
      ignored.push(name);
      continue;
    }
    if (name in BOUNDS) part[name] = value.trim() ? Number(value) : NaN;
    else if (name === "hidden") part[name] = value.split("~").filter(Boolean);
    else if (name === "transforms") part[name] = value.split("~").filter(Boolean).map(stepOf);
    else part[name] = value;
  }
  return normalised(part, ignored);
}

function stepOf(text) {
  const [slug, said = ""] = text.split(":");
  return { slug, ...Object.fromEntries(said.split(",").filter(Boolean).map((one) => [one.split("=")[0], Number(one.split("=")[1])])) };
}
