// The playground's state, a plain JSON object: its defaults, bounds and short form in a link.

export const DEFAULTS = {
  d: 64, // dimensions
  n: 1000, // points
  seed: 1,
  spectrum: "flat", // of the variances, before the settings below; their mean is 1 in every family
  decay: 1, // power: λ_j ∝ j^−decay; exponential: λ_j ∝ exp(−decay (j − 1)/(d − 1))
  rank: 16, // step: dimensions 1 … rank vary fully
  floor: 0, // step: variance of the other dimensions, as a share of the first
  shift: 0, // added to every coordinate, in units of the root mean variance
  rogue: 1, // index of the dimension, from 1
  rogueScale: 1, // factor of its standard deviation
  block: 1, // neighbouring dimensions that are correlated with each other; 1: none
  rho: 0.8, // their correlation
  rotation: 0, // 0: none, 1: mixes all dimensions
  tails: 0, // degrees of freedom of Student's t; 0: Gaussian
  clusters: 1,
  separation: 4, // distance between any two cluster centres, in the unit of the shift
  duplicates: 0, // share of points that copy other points
  scale: 1, // multiplies everything
  zeta: 0.2, // weight of the true covariance in IsoScore*
  transforms: [], // [{slug, ...parameters}], applied in order
  view: "dimensions", // "dimensions": the first three; "principal": the three principal directions; "plane": the first two of them
  hidden: [], // names of controls, or of parts of the screen (playground.js)
};

// [min, max]; integers are rounded.
export const BOUNDS = {
  d: [2, 1024], n: [10, 5000], seed: [0, 4294967295], decay: [0, 10], rank: [1, 1024], floor: [0, 1], shift: [-20, 20], rogue: [1, 1024],
  rogueScale: [0, 100], block: [1, 64], rho: [0, 0.99], rotation: [0, 1], tails: [0, 100], clusters: [1, 10], separation: [0, 50],
  duplicates: [0, 0.95], scale: [0.001, 1000], zeta: [0, 1],
};
const INTEGERS = new Set(["d", "n", "seed", "rank", "rogue", "block", "tails", "clusters", "remove", "keep"]);
export const CHOICES = { spectrum: ["flat", "power", "exponential", "step"], view: ["dimensions", "principal", "plane"] };
export const TRANSFORMS = {
  centring: {},
  all_but_the_top: { remove: [1, 0, 1024] },
  truncation: { keep: [8, 2, 1024] },
  zca: { strength: [0.5, 0, 1], eps: [0, 0, 1e6] },
  isobn: { beta: [0.5, 0, 4] },
  batch_norm: { eps: [1e-5, 0, 1e6] },
  unit_norm: {},
};
const MAX_TRANSFORMS = 6;

// Names from `isoviz.metrics`, in display order.
export const MEASURES = [
  "isoscore", "isoscore_unbiased", "isoscore_star", "participation_ratio", "effective_rank", "ev_1", "alpha_req", "rogue_share", "abs_correlation",
  "epps_pulley", "mean_cosine", "uniformity", "rankme", "massive_activation", "i1", "i2", "twonn", "local_dimension", "hubness",
  "reciprocity",
];

// A complete state from a partial one. Adds unknown names and invalid values to `ignored`.
export function normalised(part, ignored = []) {
  const state = structuredClone(DEFAULTS);
  for (const [name, value] of Object.entries(part ?? {})) {
    const accepted = fitted(name, value);
    if (accepted === undefined) ignored.push(name);
    else state[name] = accepted;
  }
  state.rank = Math.min(state.rank, state.d);
  state.rogue = Math.min(state.rogue, state.d);
  state.block = Math.min(state.block, state.d);
  state.clusters = Math.min(state.clusters, state.d + 1);
  if (state.tails === 1 || state.tails === 2) state.tails = 3; // t with 1 or 2 degrees of freedom has no finite variance
  return state;
}

function fitted(name, value) {
  if (name in BOUNDS) {
    if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
    const [min, max] = BOUNDS[name];
    return Math.min(max, Math.max(min, INTEGERS.has(name) ? Math.round(value) : value));
  }
  if (name in CHOICES) return CHOICES[name].includes(value) ? value : undefined;
  if (name === "hidden") return Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : undefined;
  if (name !== "transforms" || !Array.isArray(value)) return undefined;
  return value.filter((step) => step && Object.hasOwn(TRANSFORMS, step.slug)).slice(0, MAX_TRANSFORMS).map(fittedStep);
}

function fittedStep(step) {
  const normalisedStep = { slug: step.slug };
  for (const [name, [initial, min, max]] of Object.entries(TRANSFORMS[step.slug])) {
    const value = typeof step[name] === "number" && Number.isFinite(step[name]) ? step[name] : initial;
    normalisedStep[name] = Math.min(max, Math.max(min, INTEGERS.has(name) ? Math.round(value) : value));
  }
  return normalisedStep;
}

// "d=256&shift=1.5&transforms=centring~zca:strength=0.4": the values that differ from the defaults, with all digits.
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
  const settings = Object.entries(parameters).filter(([name, value]) => value !== TRANSFORMS[slug][name][0]).map(([name, value]) => `${name}=${value}`);
  return settings.length ? `${slug}:${settings.join(",")}` : slug;
}

export function fromLink(text, ignored = []) {
  const part = {};
  for (const pair of text.replace(/^[#?]/, "").split("&").filter(Boolean)) {
    const equals = pair.indexOf("=");
    const name = pair.slice(0, equals);
    let value = pair.slice(equals + 1);
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
  const [slug, settings = ""] = text.split(":");
  return { slug, ...Object.fromEntries(settings.split(",").filter(Boolean).map((setting) => [setting.split("=")[0], Number(setting.split("=")[1])])) };
}
