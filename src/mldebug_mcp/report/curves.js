// Draws the curves of a page anew in the browser: values under the pointer, zoom, logarithms, smoothing. Without it
// the pictures in the page stay as they are. The data stands beside each picture as JSON; nothing is loaded.

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 58, RIGHT = 12, TOP = 22, BOTTOM = 36, HEIGHT = 230, NARROW = 8;
const view = { first: null, last: null, smoothing: 0, at: null, logarithmic: new Map() };
let panels = [];

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

class Panel {
  constructor(figure, number) {
    this.data = JSON.parse(figure.querySelector("script").textContent);
    this.name = this.data.curves.map((curve) => curve.name).join(", ");
    this.values = [...figure.querySelectorAll(".key output")];
    this.place = figure.querySelector(".plot");
    this.log = figure.querySelector(".logarithmic");
    this.key = `${number} ${this.name}`;
    this.logarithmic = view.logarithmic.get(this.key) ?? this.data.logarithmic;
    this.log.checked = this.logarithmic;
    this.log.onchange = () => {
      this.logarithmic = this.log.checked;
      view.logarithmic.set(this.key, this.log.checked);
      this.draw();
    };
    figure.querySelector(".options").hidden = false;
    this.listen();
  }

  listen() {
    const { place } = this;
    let from = null;
    place.onpointerdown = (event) => {
      from = event.offsetX;
      place.setPointerCapture(event.pointerId);
      point(this.step(from));
    };
    place.onpointermove = (event) => {
      point(this.step(event.offsetX));
      this.select(from, event.offsetX);
    };
    place.onpointerup = (event) => {
      const to = event.offsetX;
      if (from !== null && Math.abs(to - from) > NARROW) {
        const [first, last] = [this.step(Math.min(from, to)), this.step(Math.max(from, to))];
        zoom(first, last);
      }
      from = null;
    };
    place.onpointercancel = () => { from = null; drawAll(); };
    place.onpointerleave = () => { if (from === null) point(null); };
    place.ondblclick = () => zoom(null, null);
    place.onkeydown = (event) => { if (this.press(event.key)) event.preventDefault(); };
  }

  // The arrows go from record to record, Home and End to the ends, plus and minus zoom around the marker, 0 shows all.
  press(key) {
    const steps = this.data.curves.find((curve) => !curve.of)?.lines.flatMap((line) => line[0]) ?? [];
    const at = view.at === null ? -1 : nearest(steps, view.at);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: steps.length - 1 }[key];
    if (to !== undefined) point(steps[Math.min(Math.max(to, 0), steps.length - 1)] ?? null);
    else if (key === "+") around(0.5);
    else if (key === "-") around(2);
    else if (key === "0") zoom(null, null);
    else return false;
    return true;
  }

  get range() {
    return [view.first ?? this.data.first, view.last ?? this.data.last];
  }

  step(x) {
    const [first, last] = this.range;
    return Math.min(Math.max(first + ((x - LEFT) / this.width) * (last - first), first), last);
  }

  x(step) {
    const [first, last] = this.range;
    return LEFT + ((step - first) / (last - first || 1)) * this.width;
  }

  y(value) {
    const [low, high] = this.scale;
    const bounded = Math.min(Math.max(value, low), high);
    const share = this.logarithmic ? Math.log(bounded / low) / Math.log(high / low) : (bounded - low) / (high - low);
    return TOP + HEIGHT * (1 - share);
  }

  // The scale that the page came with, unless part of the run is shown, or on the other scale: then what fits.
  fitted(lines) {
    const { data } = this;
    if (view.first === null && this.logarithmic === data.logarithmic) return [data.low, data.high];
    let low = Infinity, high = -Infinity;
    for (const { curve, steps, values } of lines) {
      if (curve.of) continue;
      values.forEach((value, place) => {
        if (!this.inside(steps[place]) || (this.logarithmic && value <= 0)) return;
        low = Math.min(low, value);
        high = Math.max(high, value);
      });
    }
    if (low > high) return this.logarithmic ? [0.1, 1] : [0, 1];
    if (this.logarithmic) return [low / 1.1, high * 1.1];
    const room = 0.04 * (high - low) || Math.abs(high) / 2 || 0.5;
    return [low - room, high + room];
  }

  inside(step) {
    const [first, last] = this.range;
    return step >= first && step <= last;
  }

  draw() {
    const wide = this.place.clientWidth;
    this.width = Math.max(wide - LEFT - RIGHT, 50);
    const lines = this.data.curves.flatMap((curve) => curve.lines.map(([steps, values]) => ({ curve, steps, values })));
    this.scale = this.fitted(lines);
    const height = TOP + HEIGHT + BOTTOM;
    const picture = element("svg", { width: wide, height, viewBox: `0 0 ${wide} ${height}`, "aria-hidden": "true" });
    const clip = `clip-${this.key.split(" ")[0]}`;
    const clipped = element("clipPath", { id: clip });
    clipped.append(element("rect", { x: LEFT, y: 0, width: this.width, height: TOP + HEIGHT + 1 }));
    picture.append(clipped);
    this.axes(picture);
    const inner = element("g", { "clip-path": `url(#${clip})` });
    this.marks(inner);
    for (const line of lines) this.line(inner, line);
    picture.append(inner);
    this.cursor = element("line", { class: "cursor", y1: TOP, y2: TOP + HEIGHT, visibility: "hidden" });
    this.selection = element("rect", { class: "selection", y: TOP, height: HEIGHT, visibility: "hidden" });
    picture.append(this.selection, this.cursor);
    this.place.replaceChildren(picture);
    this.point();
  }

  axes(picture) {
    const [first, last] = this.range;
    for (const value of ticks(...this.scale, 5, this.logarithmic)) {
      const y = this.y(value);
      picture.append(element("line", { class: "grid", x1: LEFT, x2: LEFT + this.width, y1: y, y2: y }));
      picture.append(element("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, shown(value)));
    }
    for (const step of ticks(first, last, Math.max(3, this.width / 90), false)) {
      const text = element("text", { x: this.x(step), y: TOP + HEIGHT + 15, "text-anchor": "middle" }, shown(step));
      picture.append(text);
    }
    const middle = LEFT + this.width / 2;
    picture.append(element("text", { x: middle, y: TOP + HEIGHT + 31, "text-anchor": "middle" }, this.data.across));
  }

  marks(picture) {
    for (const step of this.data.restarts) {
      picture.append(element("line", { class: "restart", x1: this.x(step), x2: this.x(step), y1: TOP, y2: TOP + HEIGHT }));
    }
    for (const { x, wide, number, marks } of this.labels()) {
      const group = element("g", { class: "mark" });
      group.append(element("title", {}, marks.map((mark) => mark.text).join("; ")));
      for (const mark of marks) {
        const at = this.x(mark.step);
        group.append(element("line", { x1: at, x2: at, y1: TOP - 4, y2: TOP + HEIGHT }));
      }
      group.append(element("rect", { x, y: 0, width: wide, height: 18, rx: 9 }));
      group.append(element("text", { x: x + wide / 2, y: 13, "text-anchor": "middle" }, number));
      picture.append(group);
    }
    if (this.data.worst !== null) {
      const x = this.x(this.data.worst), bottom = TOP + HEIGHT;
      const arrow = element("path", { class: "worst", d: `M${x},${bottom - 12} l7,12 h-14 z` });
      arrow.append(element("title", {}, `worst: at ${shown(this.data.worst)}`));
      picture.append(arrow);
    }
  }

  // The marks that are shown; those whose labels would cover each other share one.
  labels() {
    const found = [];
    for (const mark of this.data.marks.filter((one) => this.inside(one.step))) {
      const before = found.at(-1), x = this.x(mark.step) - 9;
      if (before && x <= before.x + before.wide + 2) {
        before.marks.push(mark);
        before.number += `, ${mark.number}`;
        before.wide = 7 * before.number.length + 11;
      } else {
        found.push({ x, wide: 7 * mark.number.length + 11, number: mark.number, marks: [mark] });
      }
    }
    const right = LEFT + this.width;
    return found.map((one) => ({ ...one, x: Math.max(LEFT, Math.min(one.x, right - one.wide)) }));
  }

  line(picture, { curve, steps, values }) {
    const stroke = { stroke: curve.colour, class: curve.of ? "curve other" : "curve" };
    const draw = (drawn, faint) => {
      let path = "", open = false;
      steps.forEach((step, place) => {
        const fits = !this.logarithmic || drawn[place] > 0;
        if (fits) path += `${open ? "L" : "M"}${this.x(step).toFixed(1)},${this.y(drawn[place]).toFixed(1)}`;
        open = fits;
      });
      picture.append(element("path", { ...stroke, d: path, ...(faint ? { opacity: 0.25 } : {}) }));
    };
    if (steps.length === 1) {
      picture.append(element("circle", { cx: this.x(steps[0]), cy: this.y(values[0]), r: 3, fill: curve.colour }));
      return;
    }
    if (view.smoothing) draw(values, true);
    draw(smoothed(values, view.smoothing), false);
    for (const step of curve.lost) {
      picture.append(element("text", { x: this.x(step), y: TOP + 12, "text-anchor": "middle", fill: curve.colour }, "\u00d7"));
    }
  }

  point() {
    const hidden = view.at === null || !this.inside(view.at);
    this.cursor.setAttribute("visibility", hidden ? "hidden" : "visible");
    if (!hidden) for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, this.x(view.at));
    this.data.curves.forEach((curve, place) => {
      this.values[place].textContent = hidden ? "" : this.valueAt(curve);
    });
  }

  valueAt(curve) {
    let best = null;
    for (const [steps, values] of curve.lines) {
      const place = nearest(steps, view.at);
      if (steps.length && (best === null || Math.abs(steps[place] - view.at) <= Math.abs(best[0] - view.at))) {
        best = [steps[place], values[place]];
      }
    }
    return best === null ? "" : `${shown(best[1])} at ${shown(best[0])}`;
  }

  select(from, to) {
    const wide = from !== null && Math.abs(to - from) > NARROW;
    this.selection.setAttribute("visibility", wide ? "visible" : "hidden");
    if (!wide) return;
    this.selection.setAttribute("x", Math.min(from, to));
    this.selection.setAttribute("width", Math.abs(to - from));
  }
}

function point(step) {
  view.at = step;
  for (const panel of panels) panel.point();
}

function zoom(first, last) {
  view.first = first;
  view.last = last;
  drawAll();
}

// Show so many times as much of the run, around the marker or the middle of what is shown.
function around(times) {
  if (!panels.length) return;
  const { data } = panels[0], [first, last] = panels[0].range;
  const middle = view.at ?? (first + last) / 2, half = ((last - first) * times) / 2;
  const [from, to] = [Math.max(middle - half, data.first), Math.min(middle + half, data.last)];
  if (from <= data.first && to >= data.last) zoom(null, null); else zoom(from, to);
}

function drawAll() {
  for (const panel of panels) panel.draw();
  const whole = document.querySelector("#whole");
  if (whole) whole.disabled = view.first === null;
}

function start() {
  panels = [...document.querySelectorAll("figure.panel")].map((figure, number) => new Panel(figure, number));
  const tools = document.querySelector("#tools");
  if (tools) {
    tools.hidden = false;
    const smoothing = tools.querySelector("#smoothing");
    smoothing.value = view.smoothing;
    smoothing.oninput = () => { view.smoothing = Number(smoothing.value); drawAll(); };
    tools.querySelector("#closer").onclick = () => around(0.5);
    tools.querySelector("#wider").onclick = () => around(2);
    tools.querySelector("#whole").onclick = () => zoom(null, null);
  }
  drawAll();
}

addEventListener("resize", drawAll);
start();
