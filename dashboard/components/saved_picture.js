// Pictures as files. Below what is drawn stands a line that says what it is of: a file is soon without its page and its name.

const CAPTION = { size: 12, line: 16, edge: 10 }; // pixels
const SHARP = 2; // pixels of a PNG for one of the page

// On the page's background: a dark page's words are light. figure: {data, layout} of plotly; about: the line, nothing if empty.
export async function savePicture(plotly, figure, { format, name, width, height, about, look }) {
  // of a font that every viewer has: a file is not drawn with the page's, and what is measured by one would not fit the other
  const layout = { ...figure.layout, paper_bgcolor: look.background, font: { ...figure.layout.font, family: "sans-serif" } };
  const drawn = await plotly.toImage({ data: figure.data, layout }, { format: "svg", width, height, imageDataOnly: true });
  const svg = captioned(drawn, width, height, about, look);
  handOver(format === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await rasterised(svg, SHARP), `${name}.${format}`);
}

// The drawing with the line below it, in as many lines as it takes.
export function captioned(svg, width, height, about, look) {
  if (!about) return svg;
  const lines = broken(about, width - 2 * CAPTION.edge);
  const whole = height + lines.length * CAPTION.line + CAPTION.edge;
  const texts = lines.map((line, i) => `<text x="${CAPTION.edge}" y="${height + (i + 0.8) * CAPTION.line}">${make("span", "", line).innerHTML}</text>`);
  const inner = svg.slice(svg.indexOf("<svg"));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${whole}" viewBox="0 0 ${width} ${whole}"><rect width="100%" height="100%" fill="${look.background}"/>${inner}<g class="ivz-about" font-family="sans-serif" font-size="${CAPTION.size}" fill="${look.faint}">${texts.join("")}</g></svg>`;
}

export async function rasterised(svg, times) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [times * image.naturalWidth, times * image.naturalHeight];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

export function handOver(blob, name) {
  const link = make("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Between words where it can be; a word that is too long by itself, anywhere.
function broken(text, width) {
  const pen = new OffscreenCanvas(1, 1).getContext("2d");
  pen.font = `${CAPTION.size}px sans-serif`;
  const fits = (line) => pen.measureText(line).width <= width;
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (fits(longer)) lines[lines.length - 1] = longer;
    else {
      if (lines.at(-1)) lines.push("");
      for (const letter of word) {
        if (lines.at(-1) && !fits(lines.at(-1) + letter)) lines.push("");
        lines[lines.length - 1] += letter;
      }
    }
  }
  return lines;
}
