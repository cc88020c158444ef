// Waiting jobs and busy processors on the calendar.

class QueueChart {
  static LEFT = 46;
  static RIGHT = 4;
  static TOP = 22;
  static GAP = 34;
  static BOTTOM = 24;
  static HEIGHT = 230;
  static BUSY_HEIGHT = 110;
  static DASHES = [[], [], [6, 3], [2, 3], [8, 3, 2, 3], [1, 3]];

  constructor(box, queue) {
    Object.assign(this, { begin: queue.begin, step: queue.step_s, series: queue.series, capacity: queue.capacity });
    this.busy = queue.cpus || {};
    this.ids = Object.keys(this.series);
    this.total = Math.max(...this.ids.map((id) => this.series[id].length));
    this.shown = new Set(this.ids.filter((id) => ["recorded", "today"].includes(id)));
    if (!this.shown.size) this.shown.add(this.ids[0]);
    this.days = report.days || [];
    this.low = 0;
    this.high = this.total;
    this.hover = null;
    this.drag = null;
    this.bucket = 1;
    this.width = 0;
    const hasBusy = Object.keys(this.busy).length > 0;
    this.busyTop = hasBusy ? QueueChart.TOP + QueueChart.HEIGHT + QueueChart.GAP : null;
    this.base = hasBusy ? this.busyTop + QueueChart.BUSY_HEIGHT : QueueChart.TOP + QueueChart.HEIGHT;
    this.canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": "Waiting jobs and busy processors over time. The table below has the means." });
    this.readout = el("div", { class: "readout", "aria-live": "polite" });
    this.range = el("span", { class: "count" });
    box.append(this.toggles(), this.buttons(), el("div", { class: "plot" }, this.canvas), this.readout);
    this.redraw = surface(this.canvas, this.base + QueueChart.BOTTOM, (pen, width) => this.paint(pen, width));
    this.listen();
    this.say();
  }

  x(at) {
    return QueueChart.LEFT + ((at - this.low) / (this.high - this.low)) * this.plotWidth;
  }

  stepAt(px) {
    return this.low + ((px - QueueChart.LEFT) / this.plotWidth) * (this.high - this.low);
  }

  get plotWidth() {
    return this.width - QueueChart.LEFT - QueueChart.RIGHT;
  }

  /** Return the mean over a bucket; null where nothing is known. */
  mean(values, from) {
    const known = values.slice(from, from + this.bucket).filter((value) => value != null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  }

  // What is drawn.

  paint(pen, width) {
    this.width = width;
    this.bucket = Math.max(1, Math.ceil((this.high - this.low) / (this.plotWidth / 2)));
    this.panel(pen, this.series, QueueChart.TOP, QueueChart.HEIGHT, "jobs waiting", null);
    if (this.busyTop) this.panel(pen, this.busy, this.busyTop, QueueChart.BUSY_HEIGHT, "processors busy", this.capacity);
    this.timeAxis(pen);
    this.splitMark(pen);
    this.dayMarks(pen);
    this.pointer(pen);
    const ends = [this.low, Math.max(this.high - 1, this.low)].map((at) => when(this.begin + at * this.step, "date"));
    const means = this.bucket > 1 ? `, means of ${hours((this.bucket * this.step) / HOUR)}` : "";
    this.range.textContent = ends.join(" to ") + means;
  }

  panel(pen, values, top, height, title, most) {
    const ids = this.ids.filter((id) => this.shown.has(id) && values[id]);
    const lines = ids.map((id) => [id, this.points(values[id])]);
    const peak = most || Math.max(1, ...lines.flatMap(([, points]) => points.map(([, value]) => value || 0)));
    const y = (value) => top + height - (value / peak) * height;
    pen.fillStyle = colour("soft");
    pen.textAlign = "left";
    pen.fillText(title, 0, top - 9);
    this.countAxis(pen, ticks(peak, height / 50), y);
    pen.save();
    pen.beginPath();
    pen.rect(QueueChart.LEFT, top - 4, this.plotWidth, height + 8);
    pen.clip();
    for (const [id, points] of lines.reverse()) this.line(pen, id, points, y); // recorded is on top
    pen.restore();
  }

  points(values) {
    const points = [];
    const first = Math.floor(this.low / this.bucket) * this.bucket;
    for (let from = first; from < this.high; from += this.bucket) points.push([from + this.bucket / 2, this.mean(values, from)]);
    return points;
  }

  countAxis(pen, at, y) {
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const tick of at) {
      pen.fillStyle = colour(tick ? "rule" : "faint");
      pen.fillRect(QueueChart.LEFT, Math.round(y(tick)), this.plotWidth, 1);
      pen.fillStyle = colour("soft");
      pen.fillText(count(tick), QueueChart.LEFT - 8, y(tick));
    }
    pen.textBaseline = "alphabetic";
  }

  line(pen, id, points, y) {
    const rank = this.ids.indexOf(id);
    pen.strokeStyle = colour(`s${rank % 6}`);
    pen.lineWidth = rank === 0 ? 1.9 : 1.5;
    pen.lineJoin = "round";
    pen.setLineDash(QueueChart.DASHES[rank % 6]);
    pen.beginPath();
    let isDown = false;
    for (const [at, value] of points) {
      if (value != null) pen[isDown ? "lineTo" : "moveTo"](this.x(at), y(value));
      isDown = value != null;
    }
    pen.stroke();
    pen.setLineDash([]);
  }

  timeAxis(pen) {
    const instants = [this.low, this.high].map((at) => this.begin + at * this.step);
    const { at, parts } = timeTicks(...instants, this.plotWidth / 95);
    pen.textAlign = "center";
    let free = -Infinity;
    for (const instant of at) {
      const px = this.x((instant - this.begin) / this.step), text = tickName(instant, parts);
      const half = pen.measureText(text).width / 2;
      pen.fillStyle = colour("faint");
      pen.fillRect(Math.round(px), this.base, 1, 5);
      if (px - half < free || px + half > this.width) continue;
      pen.fillStyle = colour("soft");
      pen.fillText(text, Math.max(px, half), this.base + 18);
      free = px + half + 8;
    }
  }

  /** Draw where the half of the log begins that what-ifs are judged on. */
  splitMark(pen) {
    const { split } = report.log || {};
    const cut = split == null ? -1 : (split - this.begin) / this.step;
    if (cut <= this.low || cut >= this.high) return;
    pen.strokeStyle = pen.fillStyle = colour("soft");
    pen.lineWidth = 1;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    pen.moveTo(this.x(cut), 8);
    pen.lineTo(this.x(cut), this.base);
    pen.stroke();
    pen.setLineDash([]);
    const toLeft = this.x(cut) > this.width - 120;
    pen.textAlign = toLeft ? "right" : "left";
    pen.fillText("judged from here", this.x(cut) + (toLeft ? -5 : 5), 10);
  }

  dayMarks(pen) {
    const top = QueueChart.TOP;
    pen.fillStyle = colour("mark");
    for (const day of this.days) {
      const px = this.x(this.noon(day));
      if (px < QueueChart.LEFT || px > this.width) continue;
      pen.beginPath();
      pen.moveTo(px - 4, top - 7);
      pen.lineTo(px + 4, top - 7);
      pen.lineTo(px, top);
      pen.fill();
    }
  }

  noon(day) {
    return (day.begin + DAY / 2 - this.begin) / this.step;
  }

  pointer(pen) {
    const tall = this.base - QueueChart.TOP;
    if (this.drag) {
      const { from, to } = this.drag;
      pen.globalAlpha = 0.18;
      pen.fillStyle = colour("s1");
      pen.fillRect(Math.min(from, to), QueueChart.TOP, Math.abs(to - from), tall);
      pen.globalAlpha = 1;
    } else if (this.hover != null) {
      pen.fillStyle = colour("soft");
      pen.fillRect(Math.round(this.x(this.hover + this.bucket / 2)), QueueChart.TOP, 1, tall);
    }
  }

  // What is read.

  say() {
    if (this.hover == null) {
      const days = this.days.length ? " A triangle marks a day with a chart below; click it to go there." : "";
      this.readout.replaceChildren(el("span", { class: "hint" }, `Point at the chart for its numbers.${days}`));
      return;
    }
    const items = this.ids.filter((id) => this.shown.has(id)).map((id) => this.item(id));
    this.readout.replaceChildren(el("b", {}, when(this.begin + this.hover * this.step)), ...items);
  }

  item(id) {
    const waiting = this.mean(this.series[id], this.hover);
    const busy = this.busy[id] ? this.mean(this.busy[id], this.hover) : null;
    const text = `${waiting == null ? "–" : count(waiting)} waiting${busy == null ? "" : `, ${count(busy)} busy`}`;
    return el("span", { class: "item" }, this.swatch(id), nameOf(id), el("b", {}, text));
  }

  swatch(id) {
    const rank = this.ids.indexOf(id), kind = ["solid", "solid", "dashed", "dotted"][rank] || "dashed";
    return el("i", { class: "stroke", style: `border-color: var(--s${rank % 6}); border-top-style: ${kind}` });
  }

  // What is pressed.

  toggles() {
    const labels = this.ids.map((id) => {
      const input = el("input", { type: "checkbox", checked: this.shown.has(id) });
      input.addEventListener("change", () => {
        this.shown[input.checked ? "add" : "delete"](id);
        this.redraw();
        this.say();
      });
      return el("label", {}, input, this.swatch(id), nameOf(id));
    });
    return el("div", { class: "controls" }, ...labels);
  }

  buttons() {
    const spans = [["All", this.total * this.step], ["Month", 30 * DAY], ["Week", 7 * DAY], ["Day", DAY]];
    const looks = spans.map(([text, seconds]) => button(text, `Show: ${text}`, () => this.lookAround(seconds / this.step)));
    const moves = [["←", "Earlier", () => this.pan(-0.5)], ["→", "Later", () => this.pan(0.5)],
      ["+", "Closer", () => this.zoom(0.5)], ["−", "Wider", () => this.zoom(2)]];
    const group = (label, buttons) => el("span", { class: "buttons", role: "group", "aria-label": label }, ...buttons);
    return el("div", { class: "controls" },
      group("Time shown", looks), group("Move and zoom", moves.map((move) => button(...move))), this.range);
  }

  look(from, to) {
    const wide = clamp(to - from, Math.min(6, this.total), this.total);
    this.low = clamp(from, 0, this.total - wide);
    this.high = this.low + wide;
    this.redraw();
    this.say();
  }

  lookAround(steps) {
    const middle = (this.low + this.high) / 2;
    this.look(middle - steps / 2, middle + steps / 2);
  }

  zoom(factor) {
    this.lookAround((this.high - this.low) * factor);
  }

  pan(part) {
    const by = (this.high - this.low) * part;
    this.look(this.low + by, this.high + by);
  }

  listen() {
    const { canvas } = this;
    const px = (event) => event.clientX - canvas.getBoundingClientRect().left;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.drag = { from: px(event), to: px(event) };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.drag) this.drag.to = clamp(px(event), QueueChart.LEFT, this.width);
      const step = Math.floor(this.stepAt(px(event)) / this.bucket) * this.bucket;
      this.point(clamp(step, 0, this.total - 1));
    });
    canvas.addEventListener("pointerup", () => this.release());
    canvas.addEventListener("pointercancel", () => { this.drag = null; this.redraw(); });
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("keydown", (event) => this.press(event));
  }

  point(step) {
    this.hover = step;
    this.redraw();
    this.say();
  }

  release() {
    if (!this.drag) return;
    const [from, to] = [this.drag.from, this.drag.to].sort((a, b) => a - b);
    this.drag = null;
    if (to - from > 5) this.look(this.stepAt(from), this.stepAt(to));
    else this.openDay(this.stepAt(from));
  }

  openDay(at) {
    const near = Math.max((6 / this.plotWidth) * (this.high - this.low), DAY / this.step / 2);
    const chosen = this.days.findIndex((day) => Math.abs(this.noon(day) - at) < near);
    if (chosen >= 0) document.dispatchEvent(new CustomEvent("open-day", { detail: chosen }));
  }

  press(event) {
    const acts = {
      ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.look(0, this.total),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }
}
