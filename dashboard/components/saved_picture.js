// Saves pictures as files. A caption below each says what it shows, because a file soon loses its page and its name.

const CAPTION = { size: 12, line: 16, edge: 10 }; // pixels
const PNG_SCALE = 2; // pixels of a PNG per pixel of the page

// Uses the page's background, because text on a dark page is light. figure: plotly's {data, layout}; about: the caption, or "".
export async function savePicture(plotly, figure, { format, name, width, height, about, look }) {
  // a font that every viewer has: text measured in the page's font would not fit
  const layout = { ...figure.layout, paper_bgcolor: look.background, font: { ...figure.layout.font, family: "sans-serif" } };
  const plotSvg = await plotly.toImage({ data: figure.data, layout }, { format: "svg", width, height, imageDataOnly: true });
  const captionedSvg = withCaption(plotSvg, width, height, about, look);
  download(format === "svg" ? new Blob([captionedSvg], { type: "image/svg+xml" }) : await rasterise(captionedSvg, PNG_SCALE), `${name}.${format}`);
}

// The SVG with the caption below it, wrapped to its width.
export function withCaption(svg, width, height, about, look) {
  if (!about) return svg;
  const lines = wrapped(about, width - 2 * CAPTION.edge);
  const totalHeight = height + lines.length * CAPTION.line + CAPTION.edge;
  const texts = lines.map((line, i) => `<text x="${CAPTION.edge}" y="${height + (i + 0.8) * CAPTION.line}">${make("span", "", line).innerHTML}</text>`);
  const inner = svg.slice(svg.indexOf("<svg"));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${totalHeight}" viewBox="0 0 ${width} ${totalHeight}"><rect width="100%" height="100%" fill="${look.background}"/>${inner}<g class="ivz-about" font-family="sans-serif" font-size="${CAPTION.size}" fill="${look.faint}">${texts.join("")}</g></svg>`;
}

export async function rasterise(svg, scale) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [scale * image.naturalWidth, scale * image.naturalHeight];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

export function download(blob, name) {
  const link = make("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Breaks lines between words, and inside a word that is longer than a line.
function wrapped(text, width) {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  context.font = `${CAPTION.size}px sans-serif`;
  const fits = (line) => context.measureText(line).width <= width;
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
