// Points in three dimensions, painted into the pixels of a canvas; the pointer, touch or arrow keys rotate them. No graphics card is
// needed: painting 5,000 points takes a few milliseconds.

const LEVELS = 24; // of depth; distant points are smaller and fainter
const PAINTING = 25; // milliseconds of painting points, after which the others wait for the next frame
const ROUND_STEPS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];
const SHIFTED = 9; // where few controls, but the mean shift, are shown: room for its largest value, so that the cloud leaves the origin at one scale
const CLUSTER_COLOURS = ["#4968f6", "#dd7809", "#1eab48", "#c51711", "#994ebe", "#0c6888", "#d15dc8", "#9d5455", "#7f8691", "#b5a300"];

export class CloudView {
  constructor(title) {
    this.title = title;
    this.canvas = make("canvas", "ivp-canvas", { tabIndex: 0, role: "img", "aria-label": title }); // until the first cloud is shown
    this.element = make("figure", "ivp-cloud", make("figcaption", "ivp-caption", title), this.canvas);
    this.pen = this.canvas.getContext("2d");
    [this.yaw, this.pitch, this.reach] = [0.6, 0.35, null];
    this.room = null; // half the length of the axes at least; null: by the controls that are shown
    this.sprites = new Map();
    this.listen();
  }

  listen() {
    const { canvas } = this;
    let last = null;
    canvas.onpointerdown = (event) => {
      last = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    };
    canvas.onpointermove = (event) => {
      if (!last) return;
      this.turn((event.clientX - last[0]) * 0.008, event.pointerType === "touch" ? 0 : (event.clientY - last[1]) * 0.008);
      last = [event.clientX, event.clientY];
    };
    canvas.onpointerup = canvas.onpointercancel = () => (last = null);
    canvas.onkeydown = (event) => {
      const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[event.key];
      if (!step) return;
      event.preventDefault();
      this.turn(...step);
    };
    this.resized = new ResizeObserver(() => this.request());
    this.resized.observe(canvas);
  }

  turn(yaw, pitch) {
    if (this.state?.view === "plane") return;
    for (const view of [this, this.twin].filter(Boolean)) {
      view.yaw += yaw;
      view.pitch = Math.max(-1.5, Math.min(1.5, view.pitch + pitch));
      view.painted = 0;
      view.request();
    }
  }

  request() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.resized.disconnect();
  }

  show(picture, labels, state, look) {
    if (!picture?.coordinates) return;
    const clustered = state.clusters > 1 && state.separation > 0;
    if (this.picture === picture && this.look === look && this.clustered === clustered && this.canvas.width > 300) return;
    Object.assign(this, { picture, labels, state, look, clustered, painted: 0 });
    const axes = { principal: "the three principal directions; arrow keys turn it", plane: "the two principal directions", dimensions: "dimensions 1 to 3; arrow keys turn it" }[state.view];
    this.canvas.setAttribute("aria-label", `${this.title}: ${picture.coordinates.length / 3} points along ${axes}`);
    this.draw();
  }

  // The point nearest to a place of the canvas, in CSS pixels; −1 if none is within 15.
  nearestTo(x, y) {
    const ratio = this.canvas.width / this.canvas.clientWidth;
    let [found, least] = [-1, (15 * ratio) ** 2];
    for (let i = 0; i < (this.projected?.length ?? 0) / 3; i += 1) {
      const distance = (this.projected[3 * i] - x * ratio) ** 2 + (this.projected[3 * i + 1] - y * ratio) ** 2;
      if (distance < least) [found, least] = [i, distance];
    }
    return found;
  }

  // Half the length of the axes: a round number that bounds nearly all points. It changes only when the cloud has clearly outgrown or
  // underfilled it.
  range(coordinates) {
    const step = Math.max(3, 3 * Math.floor(coordinates.length / 900));
    const lengths = [];
    for (let i = 0; i < coordinates.length; i += step) lengths.push(Math.hypot(coordinates[i], coordinates[i + 1], this.state.view === "plane" ? 0 : coordinates[i + 2]));
    lengths.sort((a, b) => a - b);
    const { hidden, scale } = this.state;
    const room = this.room ?? (hidden?.includes("spectrum") && !hidden.includes("shift") ? SHIFTED * scale : 0);
    const extent = 1.05 * Math.max(lengths[Math.floor(0.97 * (lengths.length - 1))] || 1, room);
    if (this.targetReach && extent <= this.targetReach && extent >= 0.55 * this.targetReach) return this.targetReach;
    const unit = 10 ** Math.floor(Math.log10(extent));
    this.targetReach = unit * ROUND_STEPS.find((multiple) => multiple * unit >= extent * 0.999);
    return this.targetReach;
  }

  draw() {
    const { canvas, pen, picture, look } = this;
    const box = canvas.getBoundingClientRect();
    if (!picture || !box.width || !box.height) return;
    const ratio = Math.min(2, globalThis.devicePixelRatio || 1);
    const [width, height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
    if (canvas.width !== width || canvas.height !== height || !this.image) {
      [canvas.width, canvas.height] = [width, height];
      this.image = pen.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.painted = 0;
    }
    const until = performance.now() + PAINTING;
    if (!this.painted) {
      const targetReach = this.range(picture.coordinates);
      this.reach = this.reach && Math.abs(this.reach / targetReach - 1) > 0.01 ? this.reach * (targetReach / this.reach) ** 0.25 : targetReach;
      const [r, g, b] = rgb(look.panel);
      this.pixels.fill((255 << 24) | (b << 16) | (g << 8) | r);
    }
    const camera = this.camera(width, height);
    if (!this.painted) this.project(camera);
    this.paintPoints(width, height, ratio, until);
    pen.putImageData(this.image, 0, 0);
    this.drawAxes(camera, ratio);
    if (this.painted || this.reach !== this.targetReach) this.request();
  }

  camera(width, height) {
    if (this.state.view === "plane") {
      const unit = (0.38 * Math.min(width, height)) / this.reach; // with room for the axes' names
      return (x, y, _, out) => {
        [out[0], out[1], out[2]] = [width / 2 + x * unit, height / 2 - y * unit, 0];
        return out;
      };
    }
    const [cy, sy, cp, sp] = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.pitch), Math.sin(this.pitch)];
    const unit = (0.43 * Math.min(width, height)) / this.reach;
    const depth = 0.28 / this.reach;
    // axis 3 points up; rotate about it, then tilt
    return (x, y, z, out) => {
      const horizontal = cy * x - sy * y;
      const inward = sy * x + cy * y;
      const up = cp * z - sp * inward;
      const distance = sp * z + cp * inward;
      const size = unit / Math.max(0.35, 1 + depth * distance);
      out[0] = width / 2 + horizontal * size;
      out[1] = height / 2 - up * size;
      out[2] = distance;
      return out;
    };
  }

  // Where each point is and how far away, and their order from far to near.
  project(camera) {
    const { coordinates } = this.picture;
    const n = coordinates.length / 3;
    if (this.projected?.length !== 3 * n) [this.projected, this.order] = [new Float32Array(3 * n), new Uint16Array(n)];
    const { projected, order } = this;
    const counts = new Uint32Array(LEVELS + 1);
    const out = [0, 0, 0];
    const level = (far) => Math.max(0, Math.min(LEVELS - 1, Math.floor(((1 - far / this.reach) / 2) * LEVELS)));
    for (let i = 0; i < n; i += 1) {
      camera(coordinates[3 * i], coordinates[3 * i + 1], coordinates[3 * i + 2], out);
      projected[3 * i] = out[0];
      projected[3 * i + 1] = out[1];
      projected[3 * i + 2] = level(out[2]);
      counts[projected[3 * i + 2] + 1] += 1;
    }
    for (let k = 0; k < LEVELS; k += 1) counts[k + 1] += counts[k];
    for (let i = 0; i < n; i += 1) order[counts[projected[3 * i + 2]]++] = i;
  }

  // Continues behind the `painted` points; their number is 0 again after the last.
  paintPoints(width, height, ratio, until) {
    const { projected, order } = this;
    const n = order.length;
    const palette = this.palette();
    const size = (n > 2500 ? 1.5 : n > 600 ? 1.9 : 2.6) * ratio * Math.max(0.75, Math.min(1.25, Math.min(width, height) / (480 * ratio)));
    const near = Array.from({ length: LEVELS }, (_, level) => level / (LEVELS - 1));
    const sprites = near.map((share) => this.sprite(size * (0.75 + 0.6 * share), width));
    const { data } = this.image;
    for (let k = this.painted; k < n; k += 1) {
      if (k % 1000 === 999 && performance.now() > until) {
        this.painted = k;
        return;
      }
      const i = order[k];
      const depth = projected[3 * i + 2];
      stampAt(data, width, height, Math.round(projected[3 * i]), Math.round(projected[3 * i + 1]), sprites[depth], palette[(this.labels?.[i] ?? 0) % palette.length], 0.4 + 0.55 * near[depth]);
    }
    this.painted = 0;
  }

  palette() {
    return this.clustered ? CLUSTER_COLOURS.map(rgb) : [rgb(this.look.dark ? "#7fb3f0" : this.look.accent)];
  }

  // A soft disc: the offsets of its pixels in the image data, and the coverage of each.
  sprite(radius, width) {
    const name = `${Math.round(radius * 8)} ${width}`;
    if (!this.sprites.has(name)) {
      const half = Math.ceil(radius + 0.5);
      const pixels = [];
      for (let y = -half; y <= half; y += 1) {
        for (let x = -half; x <= half; x += 1) {
          const coverage = Math.max(0, Math.min(1, radius + 0.5 - Math.hypot(x, y)));
          if (coverage > 0) pixels.push([4 * (y * width + x), coverage]);
        }
      }
      this.sprites.set(name, { half, offsets: Int32Array.from(pixels, ([offset]) => offset), covers: Float32Array.from(pixels, ([, coverage]) => coverage) });
    }
    return this.sprites.get(name);
  }

  drawAxes(camera, ratio) {
    const { pen, look, reach, state, picture } = this;
    const project = (x, y, z) => [...camera(x, y, z, [0, 0, 0])];
    const origin = project(0, 0, 0);
    pen.lineWidth = ratio;
    pen.font = `${12 * ratio}px ${look.font}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const names = state.view === "dimensions" ? ["x₁", "x₂", "x₃"] : ["PC 1", "PC 2", "PC 3"];
    names.slice(0, Math.min(state.view === "plane" ? 2 : 3, state.d)).forEach((name, k) => {
      const end = [0, 0, 0];
      end[k] = reach;
      const [from, to] = [project(...end.map((value) => -value)), project(...end)];
      pen.strokeStyle = faded(look.text, 0.28);
      line(pen, from, to);
      const beyond = project(...end.map((value) => value * 1.1));
      pen.fillStyle = look.faint;
      pen.fillText(name, beyond[0], beyond[1]);
    });
    pen.strokeStyle = look.text;
    pen.lineWidth = 1.6 * ratio;
    for (const [x, y] of [[6, 0], [0, 6]]) line(pen, [origin[0] - x * ratio, origin[1] - y * ratio], [origin[0] + x * ratio, origin[1] + y * ratio]);
    const centre = project(...picture.mean);
    if (Math.hypot(centre[0] - origin[0], centre[1] - origin[1]) > 14 * ratio) arrow(pen, origin, centre, ratio, look.text);
    pen.textAlign = "left";
    pen.fillStyle = look.faint;
    pen.fillText(`axes −${number(this.targetReach, 2)} … ${number(this.targetReach, 2)}`, 10 * ratio, this.canvas.height - 14 * ratio);
  }
}

function stampAt(data, width, height, x, y, { half, offsets, covers }, [r, g, b], opacity) {
  if (!(x >= half && y >= half && x < width - half && y < height - half)) return;
  const start = 4 * (y * width + x);
  for (let k = 0; k < offsets.length; k += 1) {
    const index = start + offsets[k];
    const share = covers[k] * opacity;
    data[index] += (r - data[index]) * share;
    data[index + 1] += (g - data[index + 1]) * share;
    data[index + 2] += (b - data[index + 2]) * share;
  }
}

function line(pen, from, to) {
  pen.beginPath();
  pen.moveTo(from[0], from[1]);
  pen.lineTo(to[0], to[1]);
  pen.stroke();
}

function arrow(pen, from, to, ratio, colour) {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  pen.strokeStyle = pen.fillStyle = colour;
  line(pen, from, to);
  pen.beginPath();
  pen.moveTo(to[0], to[1]);
  for (const side of [-0.45, 0.45]) pen.lineTo(to[0] - 9 * ratio * Math.cos(angle + side), to[1] - 9 * ratio * Math.sin(angle + side));
  pen.fill();
}
