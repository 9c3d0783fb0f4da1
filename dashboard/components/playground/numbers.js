// The table of measures with their true values. Numbers still being computed are grey. `first`: names of the measures to show until the
// others are asked for.

const GROUPS = [
  ["Shape", ["isoscore", "isoscore_unbiased", "isoscore_star", "participation_ratio", "effective_rank", "ev_1", "alpha_req", "rogue_share", "abs_correlation", "epps_pulley"]],
  ["From the origin", ["mean_cosine", "uniformity", "rankme", "massive_activation", "i1", "i2"]],
  ["Neighbours", ["twonn", "local_dimension", "hubness", "reciprocity"]],
];

export class NumberTable {
  constructor(words, first) {
    Object.assign(this, { words, rows: [], cells: {}, head: make("tr") });
    const groups = GROUPS.map(([title, names]) => this.group(title, names));
    this.element = make("section", "ivp-numbers", { "aria-label": "Measures" }, make("table", "", make("thead", "", this.head), groups));
    if (!first) return;
    this.more = button("", () => this.showOnly(this.more.getAttribute("aria-expanded") === "true" ? first : MEASURES));
    this.element.append(this.more);
    this.showOnly(first);
  }

  // Marks the measure that a link names, if any, and returns its row.
  mark(link) {
    const marked = new URLSearchParams(link.replace(/^#/, "")).get("measure");
    for (const { name, row } of this.rows) row.classList.toggle("ivp-marked", name === marked);
    return this.rows.find(({ name }) => name === marked)?.row;
  }

  showOnly(names) {
    for (const { name, row, details, opener } of this.rows) {
      row.hidden = !names.includes(name);
      details.hidden = row.hidden || opener.getAttribute("aria-expanded") === "false";
    }
    for (const section of this.element.querySelectorAll("tbody")) section.hidden = !section.querySelector("[data-measure]:not([hidden])");
    const all = names === MEASURES;
    this.more.setAttribute("aria-expanded", String(all));
    this.more.textContent = all ? "Show fewer measures" : `Show all ${MEASURES.length} measures`;
  }

  group(title, names) {
    const heading = make("tr", "ivp-group", make("th", "", { scope: "rowgroup", colSpan: 3 }, title));
    return make("tbody", "", heading, names.flatMap((name) => this.row(name)));
  }

  row(name) {
    const { title, tip, comparison } = this.words[name];
    const details = make("tr", "ivp-more", { hidden: true }, note(tip));
    const toggle = () => {
      details.hidden = !details.hidden;
      opener.setAttribute("aria-expanded", String(!details.hidden));
    };
    const opener = button(title, toggle, { "aria-expanded": false });
    const [value, known, after] = [make("td", "ivp-number"), make("td", "ivp-true"), make("td", "ivp-number ivp-after")];
    const row = make("tr", "", { "data-measure": name }, make("th", "", { scope: "row" }, opener), value, known, after);
    this.cells[name] = { value, known, after };
    this.rows.push({ name, row, details, opener });
    return comparison ? [row, details, make("tr", "ivp-more ivp-comparison", note(comparison))] : [row, details];
  }

  show(before, after) {
    if (this.two !== Boolean(after)) {
      this.two = Boolean(after);
      this.element.classList.toggle("ivp-two", this.two);
      const names = this.two ? ["", "before", "after"] : ["", "cloud", "true"];
      this.head.replaceChildren(...names.map((name) => (name ? make("th", "", { scope: "col" }, name) : make("td"))));
    }
    for (const [name, cells] of Object.entries(this.cells)) {
      write(cells.value, before[name], this.words[name].decimals);
      const known = before[name].true;
      cells.known.textContent = known === null ? "–" : shown(known, this.words[name].decimals);
      if (after) write(cells.after, after[name], this.words[name].decimals);
    }
  }
}

const note = (text) => make("td", "", { colSpan: 4 }, text);

function write(cell, { value, pending, problem }, decimals) {
  const formatted = value === null ? (problem?.startsWith("cannot be estimated") ? problem : "–") : shown(value, decimals);
  if (cell.textContent !== formatted) cell.textContent = formatted;
  const title = problem ? `undefined: ${problem}` : "";
  if (cell.title !== title) cell.title = title;
  if (cell.hasAttribute("aria-busy") === pending) return;
  if (pending) cell.setAttribute("aria-busy", "true");
  else cell.removeAttribute("aria-busy");
}

// A fixed number of decimals; values too small or too large for them get a power of ten.
export function shown(value, decimals) {
  const size = Math.abs(value);
  if (size >= 0.5 * 10 ** -decimals || size < 1e-12) return size < 1e6 ? fixed(value, decimals).replace(/^−(0(\.0+)?)$/, "$1") : scientific(value);
  return scientific(value);
}

// With as many more decimals as it takes to tell a number from ±1: 0.99993, not 1.000.
export function fixed(value, decimals) {
  const distance = 1 - Math.abs(value);
  const told = distance > 1e-9 && Math.abs(Number(value.toFixed(decimals))) === 1;
  return value.toFixed(told ? Math.ceil(-Math.log10(distance) - 1e-9) : decimals).replace("-", "−");
}
