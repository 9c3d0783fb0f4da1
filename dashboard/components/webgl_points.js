// Draws points with WebGL in a single call, each as a copy of its symbol's picture. Panning changes only four numbers; visibility and
// order are a list of indices. Same interface as PaintedPoints: setParts, recolour, draw, close.

const VERTEX = `
attribute vec2 place; attribute vec4 colour; attribute float symbol;
uniform vec4 view; uniform float size; varying vec4 ink; varying float left;
void main() {
  gl_Position = vec4(place * view.xy + view.zw, 0.0, 1.0);
  gl_PointSize = size;
  ink = vec4(colour.rgb * colour.a, colour.a);
  left = symbol;
}`;
const FRAGMENT = `
precision mediump float; uniform sampler2D pictures; uniform float count; varying vec4 ink; varying float left;
void main() { gl_FragColor = ink * texture2D(pictures, vec2((gl_PointCoord.x + left) / count, gl_PointCoord.y)).a; }`;

const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

// Whether WebGL uses a graphics card; without one, painting is faster. Checked once per page.
function hasGraphicsCard() {
  if (globalThis.isovizGraphicsCard === undefined) {
    const gl = new OffscreenCanvas(1, 1).getContext("webgl", { failIfMajorPerformanceCaveat: true });
    const rendererName = gl?.getExtension("WEBGL_debug_renderer_info")?.UNMASKED_RENDERER_WEBGL ?? gl?.RENDERER;
    globalThis.isovizGraphicsCard = Boolean(gl) && !SOFTWARE.test(gl.getParameter(rendererName));
    gl?.getExtension("WEBGL_lose_context")?.loseContext();
  }
  return globalThis.isovizGraphicsCard;
}

export class WebGLPoints {
  // null where painting is faster.
  static on(canvas) {
    // no antialiasing: the symbols' pictures have soft edges
    const gl = hasGraphicsCard() && canvas.getContext("webgl", { antialias: false, depth: false });
    return gl ? new WebGLPoints(canvas, gl) : null;
  }

  constructor(canvas, gl) {
    [this.canvas, this.gl] = [canvas, gl];
    this.parts = [];
    this.initialise();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.initialise();
      this.setParts(this.parts);
      this.recolour(this.colours);
      if (this.area) this.draw(this.area, this.shown);
    });
  }

  initialise() {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.getExtension("OES_element_index_uint"); // a map may have more than 65,536 points
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.names = Object.fromEntries(["view", "size", "count"].map((name) => [name, gl.getUniformLocation(program, name)]));
    [this.places, this.inks, this.symbols] = ["place", "colour", "symbol"].map((name) => {
      const attribute = { at: gl.getAttribLocation(program, name), buffer: gl.createBuffer() };
      gl.enableVertexAttribArray(attribute.at);
      return attribute;
    });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    this.pictures = new Map();
    this.drawList = null;
  }

  // parts: see pointsOf. Coordinates are stored relative to their mean, so that 32 bits suffice at a deep zoom.
  setParts(parts) {
    const { gl } = this;
    this.parts = parts;
    const total = parts.reduce((sum, part) => sum + part.x.length, 0);
    const mean = (name) => parts.reduce((sum, part) => part[name].reduce((partial, value) => partial + value, sum), 0) / Math.max(1, total);
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
    this.kinds = [...new Set(parts.map(({ symbol }) => symbol))];
    this.partOf = locatePoints(parts.map(({ x }) => x.length)).part;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.symbols.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, Uint8Array.from(this.partOf, (part) => this.kinds.indexOf(parts[part].symbol)), gl.STATIC_DRAW);
    gl.vertexAttribPointer(this.symbols.at, 1, gl.UNSIGNED_BYTE, false, 0, 0);
    this.drawList = null;
  }

  // colours: of each part, four bytes per point.
  recolour(colours) {
    const { gl } = this;
    this.colours = colours;
    this.order = drawingOrder(colours);
    this.drawList = null;
    const bytes = new Uint8Array(colours.reduce((sum, part) => sum + part.length, 0));
    colours.reduce((start, part) => (bytes.set(part, start), start + part.length), 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.inks.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, bytes, gl.DYNAMIC_DRAW);
    gl.vertexAttribPointer(this.inks.at, 4, gl.UNSIGNED_BYTE, true, 0, 0);
  }

  // area: {left, top, width, height} in CSS pixels, x and y: [from, to] of the axes; shown(part): whether to draw it.
  draw(area, shown) {
    const { gl, canvas } = this;
    [this.area, this.shown] = [area, shown];
    const { ratio, width, height } = fit(canvas, area);
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const [across, up] = [2 / (area.x[1] - area.x[0]), 2 / (area.y[1] - area.y[0])];
    gl.uniform4f(this.names.view, across, up, (this.middle[0] - area.x[0]) * across - 1, (this.middle[1] - area.y[0]) * up - 1);
    if (!this.parts.length) return;
    const count = this.list(this.parts.map(shown));
    const { texture, side } = this.picture(this.parts[0].size * ratio); // all parts of a map have the same size
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.uniform1f(this.names.size, side);
    gl.uniform1f(this.names.count, this.kinds.length);
    gl.drawElements(gl.POINTS, count, gl.UNSIGNED_INT, 0);
  }

  // Uploads the indices of the visible points in drawing order. Returns their number.
  list(shown) {
    const { gl } = this;
    if (this.drawList?.shown.join() !== shown.join()) {
      const points = Uint32Array.from(this.order.filter((point) => shown[this.partOf[point]]));
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, points, gl.DYNAMIC_DRAW);
      this.drawList = { shown, count: points.length };
    }
    return this.drawList.count;
  }

  picture(size) {
    const name = `${this.kinds} ${size}`;
    if (!this.pictures.has(name)) this.pictures.set(name, this.paint(size));
    return this.pictures.get(name);
  }

  // The symbols side by side, each as wide as the widest.
  paint(size) {
    const { gl, kinds } = this;
    const side = Math.max(...kinds.map((symbol) => sideOf(symbol, size)));
    const canvas = new OffscreenCanvas(side * kinds.length, side);
    const pen = canvas.getContext("2d");
    kinds.forEach((symbol, index) => pen.drawImage(pictureOf(symbol, size, side), index * side, 0));
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, canvas);
    for (const [parameter, value] of [["WRAP_S", "CLAMP_TO_EDGE"], ["WRAP_T", "CLAMP_TO_EDGE"], ["MIN_FILTER", "LINEAR"], ["MAG_FILTER", "LINEAR"]]) {
      gl.texParameteri(gl.TEXTURE_2D, gl[`TEXTURE_${parameter}`], gl[value]);
    }
    return { texture, side };
  }

  // Browsers allow about sixteen contexts per page, and a dropped one counts until it is garbage-collected.
  close() {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }
}
