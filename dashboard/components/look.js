// The app's theme as plain values, number formats, and the mounting of views.

export function lookOf(element) {
  const style = getComputedStyle(element);
  const get = (name, fallback) => style.getPropertyValue(`--st-${name}`).trim() || fallback;
  const background = get("background-color", "#ffffff");
  return {
    text: get("text-color", "#18222d"),
    background,
    panel: get("secondary-background-color", "#f3f6f9"),
    border: get("border-color", "#dae1e8"),
    accent: get("primary-color", "#1f5fa8"),
    faint: get("gray-text-color", "#66707a"),
    danger: get("red-text-color", "#b3261e"),
    font: get("font", "sans-serif"),
    sequential: get("chart-sequential-colors", "#ffffff,#000000").split(/,(?![^(]*\))/).map((c) => c.trim()),
    dark: luminance(background) < 0.35,
  };
}

export function rgb(colour) {
  const hex = colour.match(/^#([0-9a-f]{6})/i);
  if (hex) return [0, 2, 4].map((i) => parseInt(hex[1].slice(i, i + 2), 16));
  const numbers = colour.match(/[\d.]+/g);
  return numbers ? numbers.slice(0, 3).map(Number) : [128, 128, 128];
}

export function faded(colour, opacity) {
  return `rgba(${rgb(colour).join(",")},${opacity})`;
}

function luminance(colour) {
  const [r, g, b] = rgb(colour).map((v) => v / 255);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// Three significant digits; a power of ten for very small or very large values, as in isoviz/formatting.py.
export function number(value, digits = 3) {
  if (!Number.isFinite(value)) return "undefined"; // null and infinite values, too
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return scientific(value, digits);
  const decimals = size >= 100 ? 0 : Math.min(6, Math.max(0, digits - 1 - Math.floor(Math.log10(size || 1))));
  return value.toFixed(size === 0 ? 0 : decimals).replace("-", "−");
}

export function scientific(value, digits = 2) {
  const [mantissa, exponent] = value.toExponential(digits - 1).replaceAll("-", "−").split("e");
  return `${mantissa}·10${[...exponent.replace("+", "")].map((sign) => ({ "−": "⁻" })[sign] ?? "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign]).join("")}`;
}

export function count(value) {
  return Math.round(value).toLocaleString("en-US");
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const total = Math.max(0, Math.round(seconds));
  if (total < 60) return `${total} s`;
  if (total < 3600) return `${Math.floor(total / 60)} min ${total % 60} s`;
  return `${Math.floor(total / 3600)} h ${Math.floor((total % 3600) / 60)} min`;
}

// Creates an element. parts: texts, which are never parsed as HTML, elements, and objects of properties or attributes.
export function make(tag, className, ...parts) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const part of parts.flat()) {
    if (typeof part === "string" || part instanceof Node) element.append(part);
    else for (const [name, value] of Object.entries(part ?? {})) name in element ? (element[name] = value) : element.setAttribute(name, value);
  }
  return element;
}

export function button(text, onclick, ...parts) {
  return make("button", "", { type: "button", onclick }, text, ...parts);
}

// A menu. options: value → text.
export function menu(label, options, onchange, className = "") {
  return make("select", className, { "aria-label": label, onchange }, Object.entries(options).map(([value, text]) => make("option", "", { value }, text)));
}

// Fills a description list with pairs of name and value.
export function showFacts(list, pairs, className) {
  list.replaceChildren(...pairs.map(([name, value]) => make("div", className, make("dt", "", name), make("dd", "", value))));
}

// 256 colours interpolated between the theme's ten, as little-endian ABGR words for an ImageData buffer.
const colourTables = new Map();
export function colourTable(scale) {
  const name = scale.join();
  if (!colourTables.has(name)) {
    const stops = scale.map(rgb);
    colourTables.set(name, Uint32Array.from({ length: 256 }, (_, level) => {
      const position = (level / 255) * (stops.length - 1);
      const low = Math.min(stops.length - 2, Math.floor(position));
      const [r, g, b] = [0, 1, 2].map((k) => Math.round(stops[low][k] + (position - low) * (stops[low + 1][k] - stops[low][k])));
      return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
    }));
  }
  return colourTables.get(name);
}

// Recolours a figure's points and cells for the page's mode. Figures arrive in the light colours, because only the browser knows the
// mode for certain. modes: {palettes, scales, cells}, each {light, dark}.
export function applyMode({ data, layout }, { palettes, scales, cells }, dark) {
  const { coloraxis } = layout;
  // other scales, such as the diverging one of λ, are the same in both modes
  const colourScale = JSON.stringify(coloraxis?.colorscale);
  const counterpart = colourScale && [scales, cells].find((scale) => JSON.stringify(scale?.light) === colourScale);
  if (counterpart) coloraxis.colorscale = counterpart[dark ? "dark" : "light"];
  if (counterpart && counterpart === cells) for (const trace of data) trace.textfont = { ...trace.textfont, color: dark ? "#000" : "#fff" };
  if (!dark) return;
  const darkColours = new Map(palettes.light.map((colour, index) => [colour, palettes.dark[index]]));
  for (const { marker } of data) if (darkColours.has(marker?.color)) marker.color = darkColours.get(marker.color);
}

// Buttons for plotly's toolbar that save a file. Their icons are the names of the formats.
export function fileButtons(save, titles = { png: "Picture (PNG)", svg: "Picture (SVG)" }) {
  return Object.entries(titles).map(([name, title]) => ({ name, title, icon: { svg: textIcon(name.toUpperCase()) }, click: () => save(name) }));
}

function textIcon(text) {
  return `<svg xmlns="http://www.w3.org/2000/svg" class="icon ivz-file" viewBox="0 0 34 16" style="width: 2.125em"><text x="17" y="13" text-anchor="middle" font-size="14" font-weight="600" font-family="sans-serif">${text}</text></svg>`;
}

// "How to read this" under a figure.
export function explanation(entry) {
  const parts = [make("p", "", entry.reading), make("p", "ivz-formula", entry.formula), make("p", "ivz-paper", entry.paper)];
  return make("details", "ivz-help", make("summary", "", "How to read this"), parts);
}

// Creates the view of a mounted element with `create(element)` at the first call, and shows the new data at every call.
// Streamlit may close a view and mount it again in the same element, which then begins with the content that it had at first.
const mountedViews = new WeakMap();
const firstContents = new WeakMap();
const clones = (nodes) => [...nodes].map((node) => node.cloneNode(true));
export function mount(component, create) {
  const { data, parentElement } = component;
  let view = mountedViews.get(parentElement);
  if (!view) {
    const first = firstContents.get(parentElement);
    if (first) parentElement.replaceChildren(...clones(first));
    else firstContents.set(parentElement, clones(parentElement.childNodes));
    view = create(parentElement);
    mountedViews.set(parentElement, view);
  }
  view.show(data, component);
  return () => {
    view.close();
    mountedViews.delete(parentElement);
  };
}
