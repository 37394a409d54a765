"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const short = (v) => String(+v.toPrecision(3));
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
const dashes = ["none", "7 3", "2 2", "7 2 2 2"];
let current = data.start;

function draw(parent, name, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

// Round numbers between the ends, some `count` of them.
function ticks(low, high, count = 4) {
  if (!(high > low)) return [low];
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.999);
  const out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) out.push(+(k * step).toPrecision(12));
  return out;
}

// Axes and lines; a line may have a grey area around it. Returns the picture and the places of values.
function chart(parent, lines, [first, last], [low, high], xLabel, yLabel) {
  const [width, height, left, right, top, bottom] = [300, 180, 38, 8, 16, 34];
  const svg = draw(parent, "svg", { viewBox: `0 0 ${width} ${height}` });
  const X = (v) => left + ((v - first) / (last - first || 1)) * (width - left - right);
  const Y = (v) => height - bottom - ((clamp(v, low, high) - low) / (high - low)) * (height - top - bottom);
  const path = (xs, ys) => ys.map((v, i) => `${X(xs[i]).toFixed(1)},${Y(v).toFixed(1)}`);
  lines.forEach(({ x, y, error, tone, dash }) => {
    if (error) {
      const area = [...path(x, y.map((v, i) => v + error[i])), ...path(x, y.map((v, i) => v - error[i])).reverse()];
      draw(svg, "polygon", { class: "area", points: area.join(" ") });
    }
    // A curve that leaves through the top ends there.
    const end = y.findLastIndex((v) => v <= high) + 2;
    draw(svg, "polyline", { class: "curve", points: path(x, y).slice(0, Math.max(end, 2)).join(" "),
      style: `stroke:var(--c${tone % 4});stroke-dasharray:${dashes[dash % 4]}` });
  });
  draw(svg, "path", { class: "axis", d: `M${left} ${top}V${height - bottom}H${width - right}` });
  for (const v of ticks(first, last)) {
    draw(svg, "path", { class: "axis", d: `M${X(v)} ${height - bottom}v3` });
    draw(svg, "text", { x: X(v), y: height - bottom + 14, "text-anchor": "middle" }, short(v));
  }
  for (const v of ticks(low, high)) {
    draw(svg, "path", { class: "axis", d: `M${left} ${Y(v)}h-3` });
    draw(svg, "text", { x: left - 5, y: Y(v) + 4, "text-anchor": "end" }, short(v));
  }
  draw(svg, "text", { x: width - right, y: height - 4, "text-anchor": "end" }, xLabel);
  draw(svg, "text", { x: 0, y: 9 }, yLabel);
  return { svg, X, Y, width, height };
}

// The autocorrelation of what was removed, one line per axis.
function residual() {
  const found = data.residual;
  if (!found || !found.axes.length) return;
  const longest = Math.max(...found.axes.map((a) => a.r.length));
  const xs = [...Array(longest).keys()];
  const zero = { x: [0, longest - 1], y: [0, 0], error: [2 * found.stderr, 2 * found.stderr], tone: 0, dash: 2 };
  const lines = found.axes.map((a, k) => ({ x: xs, y: a.r, tone: k, dash: k }));
  const low = Math.min(-0.1, ...found.axes.flatMap((a) => a.r)), box = byId("residual");
  const { svg, width } = chart(box, [zero, ...lines], [0, longest - 1], [low, 1], "distance, in entries", "autocorrelation");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "Autocorrelation of what was removed: " +
    found.axes.map((a) => `along ${a.name} ${a.r.slice(0, 4).map(short).join(", ")}`).join("; "));
  found.axes.forEach((a, k) => {
    draw(svg, "line", { x1: width - 116, x2: width - 90, y1: 24 + 15 * k, y2: 24 + 15 * k, class: "curve",
      style: `stroke:var(--c${k});stroke-dasharray:${dashes[k]}` });
    draw(svg, "text", { x: width - 84, y: 28 + 15 * k }, "along " + a.name);
  });
}

// The part of the predicted error that is left at a strength; see `Energies.at_strength`.
function mixed(s) {
  const [noise, error, removed] = data.energies[current];
  return Math.sqrt(Math.max((1 - s) * noise + s * error - s * (1 - s) * removed, 0));
}

function strength() {
  const slider = byId("strength");
  const show = () => {
    const s = slider.value / 100;
    const text = `${slider.value}%: error ${short(mixed(s))}`;
    byId("strength-label").textContent = text;
    slider.setAttribute("aria-valuetext", text);
    if (data.signal) signal.draw();
    else byId("after").style.opacity = s;
  };
  slider.addEventListener("input", show);
  return show;
}

// Which slice, channel or page is shown.
function views(changed) {
  const slider = byId("view");
  slider.max = data.views.length - 1;
  slider.value = current;
  byId("view-control").hidden = data.views.length < 2;
  const show = () => {
    current = +slider.value;
    const view = data.views[current];
    byId("view-label").textContent = view.label;
    slider.setAttribute("aria-valuetext", view.label);
    byId("told").textContent = view.told;
    if (!data.signal) for (const name of ["before", "after", "removed", "error"]) byId(name).src = view[name];
    byId("error-low").textContent = short(view.errors[0]);
    byId("error-high").textContent = short(view.errors[1]);
    changed();
  };
  slider.addEventListener("input", show);
  show();
}

// Two pictures and a divider.
function compare() {
  const pair = byId("pair"), divider = byId("divider"), image = byId("before"), frame = document.querySelector(".frame");
  let zoom = 0;
  const size = () => {
    // Small pictures are enlarged by a whole number, so that pixels stay square.
    const most = Math.min(frame.clientWidth, 1400), natural = image.naturalWidth || 1;
    const seen = Math.max(640, 0.9 * innerHeight * (natural / (image.naturalHeight || 1)));
    const whole = natural * Math.max(1, Math.floor(Math.min(most, seen) / natural));
    const fitted = most < 600 ? Math.max(whole, most) : whole;  // a phone has no room to spare
    pair.style.width = zoom ? Math.min(most, fitted) * 2 ** zoom + "px" : "";
    pair.style.maxWidth = zoom ? "none" : fitted + "px";
    for (const node of document.querySelectorAll(".divider")) node.style.maxWidth = fitted + "px";
  };
  image.addEventListener("load", size);
  addEventListener("resize", size);
  const cut = (value) => {
    divider.value = value;
    pair.style.setProperty("--cut", divider.value + "%");
  };
  divider.addEventListener("input", () => cut(divider.value));
  const follow = (event) => {
    const box = pair.getBoundingClientRect();
    cut((100 * (event.clientX - box.left)) / box.width);
  };
  pair.addEventListener("pointerdown", (event) => { event.preventDefault(); pair.setPointerCapture(event.pointerId); follow(event); });
  pair.addEventListener("pointermove", (event) => { if (pair.hasPointerCapture(event.pointerId)) follow(event); });
  const go = (step) => { zoom = step === 0 ? 0 : clamp(zoom + step, 0, 4); size(); };
  frame.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key], scale = { "+": 1, "=": 1, "-": -1 }[event.key];
    if (step && !zoom) { event.preventDefault(); cut(+divider.value + step); }
    if (scale) { event.preventDefault(); go(scale); }
  });
  byId("scale").textContent = `Black is ${short(data.limits[0])}, white ${short(data.limits[1])}.`;
  return go;
}

// Lines on a canvas, which can be moved along and zoomed.
const signal = {
  samples: [], from: 0, to: 1,
  decode(view) {
    if (!this.samples[current]) {
      const read = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
      this.samples[current] = { before: read(view.before), after: read(view.after), removed: read(view.removed), error: read(view.error) };
    }
    return this.samples[current];
  },
  // The least and the largest value of each column of pixels.
  columns(n, width, value) {
    const out = [], step = (this.to - this.from) / width;
    if (step <= 1.5) {
      for (let i = Math.max(Math.floor(this.from) - 1, 0); i <= Math.min(Math.ceil(this.to) + 1, n - 1); i++) {
        const v = value(i);
        out.push([(i - this.from) / step, v, v]);
      }
      return out;
    }
    for (let c = 0; c < width; c++) {
      let low = Infinity, high = -Infinity;
      const end = Math.min(Math.ceil(this.from + (c + 1) * step), n);
      for (let i = Math.max(Math.floor(this.from + c * step), 0); i < end; i++) {
        const v = value(i);
        if (v < low) low = v;
        if (v > high) high = v;
      }
      if (high >= low) out.push([c, low, high]);
    }
    return out;
  },
  plot(canvas, n, lines, range, label) {
    const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const pen = canvas.getContext("2d"), left = 52, bottom = 24, top = 16;
    pen.scale(scale, scale);
    const [low, high] = range, Y = (v) => height - bottom - ((v - low) / (high - low || 1)) * (height - bottom - top);
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = pen.strokeStyle = colour("--faint");
    pen.textAlign = "right";
    for (const v of ticks(low, high)) pen.fillText(short(v), left - 6, Y(v) + 4);
    pen.textAlign = "center";
    for (const v of ticks(this.from, this.to, Math.max(2, width / 160))) {
      if (v < this.from || v > this.to) continue;
      const text = String(Math.round(v * 1e6) / 1e6), half = pen.measureText(text).width / 2;
      const x = left + ((v - this.from) / (this.to - this.from)) * (width - left);
      pen.fillText(text, Math.min(x, width - half), height - 6);
    }
    pen.textAlign = "left";
    pen.fillText(label, 0, 11);
    pen.beginPath();
    pen.moveTo(left + 0.5, top);
    pen.lineTo(left + 0.5, height - bottom + 0.5);
    pen.lineTo(width, height - bottom + 0.5);
    pen.stroke();
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, width - left, height - bottom);
    pen.clip();
    for (const line of lines) {
      const drawn = this.columns(n, Math.max(width - left, 1), line.value).map(([x, a, b]) => [left + x, a, b]);
      if (line.around) {
        const wide = this.columns(n, Math.max(width - left, 1), line.around);
        pen.fillStyle = line.tone;
        pen.beginPath();
        drawn.forEach(([x, , b], i) => pen.lineTo(x, Y(b + wide[i][2])));
        drawn.slice().reverse().forEach(([x, a], i) => pen.lineTo(x, Y(a - wide[wide.length - 1 - i][2])));
        pen.fill();
        continue;
      }
      pen.strokeStyle = line.tone;
      pen.lineWidth = line.width;
      pen.beginPath();
      for (const [x, a, b] of drawn) { pen.lineTo(x, Y(a)); if (b > a) pen.lineTo(x, Y(b)); }
      pen.stroke();
    }
    pen.restore();
  },
  draw() {
    const view = data.views[current], { before, after, removed, error } = this.decode(view);
    const n = after.length, s = byId("strength").value / 100, [low, high] = data.limits, room = 0.15 * (high - low) || 1;
    if (this.to <= this.from || this.to > n) [this.from, this.to] = [0, n];
    const estimate = (i) => before[i] + s * (after[i] - before[i]), mark = colour("--mark");
    this.plot(byId("lines"), n, [
      { value: (i) => before[i], tone: colour("--noisy"), width: 1 },
      ...(s === 1 ? [{ value: estimate, around: (i) => 2 * error[i], tone: colour("--within") }] : []),
      { value: estimate, tone: mark, width: 1.6 },
    ], [low - room, high + room], "value");
    const most = 3 * Math.sqrt(data.energies[current][2]) || 1;
    this.plot(byId("removed-lines"), n, [{ value: (i) => removed[i], tone: colour("--ink"), width: 1 }], [-most, most], "removed");
    this.plot(byId("error-lines"), n, [{ value: (i) => error[i], tone: mark, width: 1.6 }], [0, view.errors[1] * 1.1 || 1], "predicted error");
  },
  // Zoom by a factor around a place between 0 and 1.
  zoom(factor, place = 0.5) {
    const n = this.decode(data.views[current]).after.length;
    const wide = clamp((this.to - this.from) * factor, Math.min(16, n), n);
    this.move(this.from + place * (this.to - this.from - wide) - this.from, wide);
  },
  move(by, wide = this.to - this.from) {
    const n = this.decode(data.views[current]).after.length;
    this.from = clamp(this.from + by, 0, n - wide);
    this.to = this.from + wide;
    this.draw();
  },
  start() {
    this.to = this.decode(data.views[current]).after.length;
    for (const id of ["lines", "removed-lines", "error-lines"]) {
      const canvas = byId(id);
      const place = (event) => clamp((event.clientX - canvas.getBoundingClientRect().left - 52) / (canvas.clientWidth - 52), 0, 1);
      let grabbed = null;
      canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); grabbed = event.clientX; });
      canvas.addEventListener("pointermove", (event) => {
        if (!canvas.hasPointerCapture(event.pointerId)) return;
        this.move(((grabbed - event.clientX) / (canvas.clientWidth - 52)) * (this.to - this.from));
        grabbed = event.clientX;
      });
      canvas.addEventListener("dblclick", (event) => this.zoom(0.5, place(event)));
      canvas.addEventListener("wheel", (event) => {
        if (event.ctrlKey) { event.preventDefault(); this.zoom(event.deltaY > 0 ? 1.25 : 0.8, place(event)); }
      }, { passive: false });
    }
    byId("lines").addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -0.1, ArrowRight: 0.1 }[event.key], scale = { "+": 0.5, "=": 0.5, "-": 2, Home: Infinity }[event.key];
      if (step) { event.preventDefault(); this.move(step * (this.to - this.from)); }
      if (scale) { event.preventDefault(); this.zoom(scale); }
    });
    addEventListener("resize", () => this.draw());
    addEventListener("beforeprint", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  },
};

// The risk curves of one scale.
function scale({ level, bands }) {
  const box = document.createElement("div"), title = document.createElement("h3"), told = document.createElement("p");
  title.textContent = `Scale ${level}` + (level === 1 ? ", the finest" : "");
  box.append(title);
  byId("curves").append(box);
  const curves = bands.filter((band) => band.t.length);
  const zero = bands.filter((band) => band.at === null).length;
  if (!curves.length) { told.textContent = "set to zero"; box.append(told); return; }
  // The neighbourhood of the least risk matters; a curve that climbs far beyond is cut off.
  const least = Math.min(...curves.flatMap((b) => b.risk)), most = Math.max(...curves.flatMap((b) => b.risk));
  const lowest = Math.max(...curves.map((b) => Math.min(...b.risk)));
  const range = [Math.min(0, least), Math.max(Math.min(most, Math.max(1.25, 4 * lowest)), 1e-6)];
  const last = Math.max(...curves.map((b) => b.t[b.t.length - 1])) || 1;
  const lines = curves.map((b, k) => ({ x: b.t, y: b.risk, error: curves.length === 1 ? b.error : null, tone: k, dash: Math.floor(k / 4) }));
  const { svg, X, Y, width, height } = chart(box, lines, [0, last], range, "threshold", "risk");
  svg.setAttribute("tabindex", 0);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Risk against the threshold at scale ${level}: ${curves.map((b) => b.name).join(", ")}`);
  const line = draw(svg, "path", { class: "cross", visibility: "hidden" });
  curves.forEach((b, k) => {
    if (b.at !== null) draw(svg, "circle", { class: "chosen", r: 4.5, cx: X(b.t[b.at]), cy: Y(b.risk[b.at]), style: `fill:var(--c${k % 4})` });
  });
  const ring = draw(svg, "circle", { class: "here", r: 6, visibility: "hidden" });
  let which = 0, here = curves[0].at ?? curves[0].t.length - 1;
  const rest = () => {
    for (const node of [line, ring]) node.setAttribute("visibility", "hidden");
    told.textContent = curves.length === 1 && curves[0].at !== null ? words(curves[0], curves[0].at)
      : `${bands.length} band${bands.length > 1 ? "s" : ""}` + (zero ? `, ${zero} of them set to zero` : "");
  };
  const words = (b, i) => `${b.name}: threshold ${short(b.t[i])}, risk ${short(b.risk[i])} ± ${short(b.error[i])}, degrees of freedom ${short(b.dof[i])}`;
  const go = (k, i) => {
    which = clamp(k, 0, curves.length - 1);
    const b = curves[which];
    here = clamp(i, 0, b.t.length - 1);
    const x = X(b.t[here]);
    line.setAttribute("d", `M${x} ${Y(range[0])}V${Y(range[1])}`);
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", Y(b.risk[here]));
    for (const node of [line, ring]) node.setAttribute("visibility", "visible");
    told.textContent = words(b, here);
  };
  svg.addEventListener("pointermove", (event) => {
    const frame = svg.getBoundingClientRect();
    const x = ((event.clientX - frame.left) / frame.width) * width, y = ((event.clientY - frame.top) / frame.height) * height;
    let best = [Infinity, 0, 0];
    curves.forEach((b, k) => {
      const far = b.t.map((t) => Math.abs(X(t) - x)), i = far.indexOf(Math.min(...far)), away = Math.abs(Y(b.risk[i]) - y);
      if (away < best[0]) best = [away, k, i];
    });
    go(best[1], best[2]);
  });
  svg.addEventListener("pointerleave", rest);
  svg.addEventListener("blur", rest);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], other = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step) { event.preventDefault(); go(which, here + step); }
    if (other && curves.length > 1) { event.preventDefault(); const k = clamp(which + other, 0, curves.length - 1); go(k, curves[k].at ?? here); }
  });
  rest();
  const legend = document.createElement("p");
  legend.className = "bands";
  curves.slice(0, curves.length > 12 ? 0 : 12).forEach((b, k) => {
    const entry = document.createElement("span");
    draw(draw(entry, "svg", { viewBox: "0 0 24 8", "aria-hidden": "true" }), "path", { class: "curve", d: "M0 4H24",
      style: `stroke:var(--c${k % 4});stroke-dasharray:${dashes[Math.floor(k / 4) % 4]}` });
    entry.append(b.name);
    legend.append(entry);
  });
  box.append(legend, told);
}

document.body.classList.toggle("signal", data.signal);
residual();
let zoom;
if (data.signal) {
  signal.start();
  zoom = (step) => (step ? signal.zoom(step > 0 ? 0.5 : 2) : signal.zoom(Infinity));
} else zoom = compare();
byId("zoom-in").addEventListener("click", () => zoom(1));
byId("zoom-out").addEventListener("click", () => zoom(-1));
byId("zoom-all").addEventListener("click", () => zoom(0));
views(strength());
data.scales.forEach(scale);
byId("risks").hidden = !data.scales.length;
byId("choice").hidden = !data.scales.length;
byId("removed-section").hidden = !data.residual;
byId("pages").hidden = !byId("pages").querySelector("td");
// What is folded on the screen is printed.
addEventListener("beforeprint", () => { for (const node of document.querySelectorAll("details")) node.open = true; });
