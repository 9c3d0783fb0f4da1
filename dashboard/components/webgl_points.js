// Points on a canvas by WebGL: one picture of each symbol, copied to where the points are. Moving the map only changes four numbers.
// The same questions as PaintedPoints: take, recolour, draw, close.

const VERTEX = `
attribute vec2 place; attribute vec4 colour; uniform vec4 view; uniform float size; varying vec4 ink;
void main() { gl_Position = vec4(place * view.xy + view.zw, 0.0, 1.0); gl_PointSize = size; ink = vec4(colour.rgb * colour.a, colour.a); }`;
const FRAGMENT = `
precision mediump float; uniform sampler2D symbol; varying vec4 ink;
void main() { gl_FragColor = ink * texture2D(symbol, gl_PointCoord).a; }`;

const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

// Whether the browser draws WebGL by a graphics card: without one it is slower than painting. Asked once a page.
function hasGraphicsCard() {
  if (globalThis.isovizGraphicsCard === undefined) {
    const gl = new OffscreenCanvas(1, 1).getContext("webgl", { failIfMajorPerformanceCaveat: true });
    const named = gl?.getExtension("WEBGL_debug_renderer_info")?.UNMASKED_RENDERER_WEBGL ?? gl?.RENDERER;
    globalThis.isovizGraphicsCard = Boolean(gl) && !SOFTWARE.test(gl.getParameter(named));
    gl?.getExtension("WEBGL_lose_context")?.loseContext();
  }
  return globalThis.isovizGraphicsCard;
}

export class WebGLPoints {
  // null where painting is better.
  static on(canvas) {
    // the symbols' pictures have soft edges: no antialiasing
    const gl = hasGraphicsCard() && canvas.getContext("webgl", { antialias: false, depth: false });
    return gl ? new WebGLPoints(canvas, gl) : null;
  }

  constructor(canvas, gl) {
    [this.canvas, this.gl] = [canvas, gl];
    this.parts = [];
    this.begin();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.begin();
      this.take(this.parts);
      this.recolour(this.colours);
      if (this.area) this.draw(this.area, this.shown);
    });
  }

  begin() {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.names = { view: gl.getUniformLocation(program, "view"), size: gl.getUniformLocation(program, "size") };
    [this.places, this.inks] = ["place", "colour"].map((name) => {
      const found = { at: gl.getAttribLocation(program, name), buffer: gl.createBuffer() };
      gl.enableVertexAttribArray(found.at);
      return found;
    });
    this.pictures = new Map();
  }

  // parts as pointsOf gives them. Places are kept relative to their middle: 32 bits are then enough far into a zoom.
  take(parts) {
    const { gl } = this;
    this.parts = parts;
    const total = parts.reduce((sum, part) => sum + part.x.length, 0);
    const mean = (name) => parts.reduce((sum, part) => part[name].reduce((found, value) => found + value, sum), 0) / Math.max(1, total);
    this.middle = [mean("x"), mean("y")];
    const places = new Float32Array(2 * total);
    let next = 0;
    for (const { x, y } of parts) {
      for (let i = 0; i < x.length; i++) {
        places[next++] = x[i] - this.middle[0];
        places[next++] = y[i] - this.middle[1];
      }
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, this.places.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, places, gl.STATIC_DRAW);
    gl.vertexAttribPointer(this.places.at, 2, gl.FLOAT, false, 0, 0);
  }

  // colours: for each part four bytes a point.
  recolour(colours) {
    const { gl } = this;
    this.colours = colours;
    const every = new Uint8Array(colours.reduce((sum, part) => sum + part.length, 0));
    colours.reduce((start, part) => (every.set(part, start), start + part.length), 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.inks.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, every, gl.DYNAMIC_DRAW);
    gl.vertexAttribPointer(this.inks.at, 4, gl.UNSIGNED_BYTE, true, 0, 0);
  }

  // area: {left, top, width, height} in pixels of the page, x and y: [from, to] of the axes there; shown(part): whether to draw it.
  draw(area, shown) {
    const { gl, canvas } = this;
    [this.area, this.shown] = [area, shown];
    const { ratio, width, height } = fit(canvas, area);
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const [across, up] = [2 / (area.x[1] - area.x[0]), 2 / (area.y[1] - area.y[0])];
    gl.uniform4f(this.names.view, across, up, (this.middle[0] - area.x[0]) * across - 1, (this.middle[1] - area.y[0]) * up - 1);
    let first = 0;
    for (const part of this.parts) {
      const count = part.x.length;
      if (count && shown(part)) {
        const picture = this.picture(part.symbol, part.size * ratio);
        gl.bindTexture(gl.TEXTURE_2D, picture.texture);
        gl.uniform1f(this.names.size, picture.side);
        gl.drawArrays(gl.POINTS, first, count);
      }
      first += count;
    }
  }

  picture(symbol, size) {
    const name = `${symbol} ${size}`;
    if (!this.pictures.has(name)) this.pictures.set(name, this.paint(symbol, size));
    return this.pictures.get(name);
  }

  paint(symbol, size) {
    const { gl } = this;
    const canvas = pictureOf(symbol, size);
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, canvas);
    for (const [what, value] of [["WRAP_S", "CLAMP_TO_EDGE"], ["WRAP_T", "CLAMP_TO_EDGE"], ["MIN_FILTER", "LINEAR"], ["MAG_FILTER", "LINEAR"]]) {
      gl.texParameteri(gl.TEXTURE_2D, gl[`TEXTURE_${what}`], gl[value]);
    }
    return { texture, side: canvas.width };
  }

  // A page may have sixteen contexts; one that is only dropped counts until it is collected.
  close() {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }
}
