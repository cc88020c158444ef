// A day on the machine: who held which processors, in two schedules.

const WAIT_ENDS = [1 / 60, 1 / 6, 1, 8];
const WAIT_NAMES = ["< 1 min", "< 10 min", "< 1 h", "< 8 h", "more"];
const waitClass = (wait) => WAIT_ENDS.filter((end) => wait >= end).length;

/** The boxes of one schedule on one day; its `days` says which job is marked. */
class ScheduleChart {
  static LEFT = 46;
  static RIGHT = 4;
  static TOP = 6;
  static BOTTOM = 22;
  static HEIGHT = 250;

  constructor(days, id) {
    this.days = days;
    this.id = id;
    this.width = 0;
    this.title = el("h3", {});
    this.canvas = el("canvas", { tabindex: 0, role: "img" });
    const height = ScheduleChart.TOP + ScheduleChart.HEIGHT + ScheduleChart.BOTTOM;
    this.redraw = surface(this.canvas, height, (pen, width) => this.paint(pen, width));
    this.canvas.addEventListener("pointermove", (event) => days.point(this.jobAt(event)));
    this.canvas.addEventListener("pointerleave", () => days.point(null));
    this.canvas.addEventListener("click", (event) => days.keep(this.jobAt(event)));
    this.canvas.addEventListener("keydown", (event) => this.press(event));
  }

  get boxes() {
    return this.days.day.schedules[this.id] || [];
  }

  /** Return the jobs of the day as they start. */
  get jobs() {
    return [...new Set([...this.boxes].sort((a, b) => a[2] - b[2]).map((box) => box[4]))];
  }

  get plotWidth() {
    return this.width - ScheduleChart.LEFT - ScheduleChart.RIGHT;
  }

  x(seconds) {
    return ScheduleChart.LEFT + (clamp(seconds, 0, DAY) / DAY) * this.plotWidth;
  }

  y(processor) {
    return ScheduleChart.TOP + ScheduleChart.HEIGHT * (1 - processor / this.days.capacity);
  }

  /** Return a box's left, top, width and height. */
  area([first, n, begin, end]) {
    const left = this.x(begin), top = this.y(first + n);
    return [left, top, Math.max(this.x(end) - left, 1), Math.max(this.y(first) - top, 0.75)];
  }

  describe() {
    const { label } = this.days.day, name = nameOf(this.id);
    this.title.textContent = name;
    this.canvas.setAttribute("aria-label",
      `${label}, ${name}: ${this.jobs.length} jobs on ${count(this.days.capacity)} processors. Arrow keys go from job to job.`);
    this.redraw();
  }

  paint(pen, width) {
    this.width = width;
    this.axes(pen);
    const marked = this.days.marked, { jobs } = this.days.day;
    const user = marked == null ? null : jobs[marked].user;
    const edge = colour("box-edge"), mark = colour("mark"), unknown = colour("faint");
    const fills = WAIT_NAMES.map((_name, k) => colour(`k${k}`));
    for (const box of this.boxes) {
      const which = box[4], facts = jobs[which] || {}, wait = (facts.waits || {})[this.id];
      const [left, top, wide, tall] = this.area(box);
      pen.globalAlpha = marked == null || which === marked ? 1 : user && facts.user === user ? 0.85 : 0.28;
      pen.fillStyle = which === marked ? mark : wait == null ? unknown : fills[waitClass(wait)];
      pen.fillRect(left, top, wide, tall);
      if (tall < 3 || wide < 4) continue;
      pen.strokeStyle = edge;
      pen.strokeRect(left + 0.5, top + 0.5, wide - 1, tall - 1);
    }
    pen.globalAlpha = 1;
  }

  axes(pen) {
    const bottom = ScheduleChart.TOP + ScheduleChart.HEIGHT;
    pen.fillStyle = colour("card");
    pen.fillRect(ScheduleChart.LEFT, ScheduleChart.TOP, this.plotWidth, ScheduleChart.HEIGHT);
    pen.fillStyle = colour("soft");
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const tick of ticks(this.days.capacity, 5)) pen.fillText(count(tick), ScheduleChart.LEFT - 8, this.y(tick));
    pen.textBaseline = "alphabetic";
    pen.textAlign = "center";
    const every = this.width > 700 ? 2 : this.width > 420 ? 4 : 6;
    for (let hour = 0; hour <= 24; hour += every) {
      const px = this.x(hour * HOUR), text = `${two(hour)}:00`, most = this.width - 2 - pen.measureText(text).width / 2;
      pen.fillStyle = colour("faint");
      pen.fillRect(Math.round(px), bottom, 1, 4);
      pen.fillStyle = colour("soft");
      pen.fillText(text, Math.min(px, most), bottom + 18);
    }
  }

  /** Return the job under the pointer, or null. */
  jobAt(event) {
    const around = this.canvas.getBoundingClientRect();
    const px = event.clientX - around.left, py = event.clientY - around.top;
    const hit = this.boxes.findLast((box) => {
      const [left, top, wide, tall] = this.area(box);
      return px >= left - 1 && px <= left + wide + 1 && py >= top - 0.5 && py <= top + tall + 0.5;
    });
    return hit ? hit[4] : null;
  }

  press(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") this.days.keep(null);
    if (!step || !this.jobs.length) return;
    event.preventDefault();
    const now = this.jobs.indexOf(this.days.marked), n = this.jobs.length;
    this.days.keep(this.jobs[now < 0 ? 0 : (now + step + n) % n]);
  }
}

/** The chosen day, its two charts, and the facts of the job that is pointed at. */
class DayCharts {
  constructor(box, days) {
    this.all = days;
    this.at = 0;
    this.pointed = null;
    this.kept = null;
    this.ids = [...new Set(days.flatMap((day) => Object.keys(day.schedules)))];
    const tops = days.flatMap((day) => Object.values(day.schedules).flat().map(([first, n]) => first + n));
    this.capacity = tops.reduce((most, top) => Math.max(most, top), (report.queue || {}).capacity || 1);
    const upper = this.ids.includes("recorded") ? "recorded" : this.ids[0];
    const lower = [report.named, "today", ...this.ids].find((id) => id !== upper && this.ids.includes(id));
    this.charts = [upper, lower].filter((id) => id != null).map((id) => new ScheduleChart(this, id));
    this.readout = el("div", { class: "readout", "aria-live": "polite" });
    const legend = WAIT_NAMES.map((text, k) => el("span", { class: `k${k}` }, text));
    box.append(
      this.controls(), this.readout,
      ...this.charts.map(({ title, canvas }) => el("div", { class: "plot" }, title, canvas)),
      el("p", { class: "legend" }, "waited", ...legend));
    document.addEventListener("open-day", (event) => {
      this.go(event.detail);
      document.getElementById("day").scrollIntoView();
    });
    this.go(0);
  }

  get day() {
    return this.all[this.at];
  }

  get marked() {
    return this.pointed == null ? this.kept : this.pointed;
  }

  controls() {
    const labels = this.all.map((day, i) => [String(i), day.label]);
    const choice = select("Day", labels, "0", (value) => this.go(Number(value)));
    this.chooser = choice.querySelector("select");
    this.earlier = button("←", "Day before", () => this.go(this.at - 1));
    this.later = button("→", "Day after", () => this.go(this.at + 1));
    const entries = this.ids.map((id) => [id, nameOf(id)]);
    const schedules = this.charts.map((chart, i) => select(["Above", "Below"][i], entries, chart.id, (id) => {
      chart.id = id;
      chart.describe();
    }));
    return el("div", { class: "controls" }, choice, el("span", { class: "buttons" }, this.earlier, this.later), ...schedules);
  }

  go(day) {
    this.at = clamp(day, 0, this.all.length - 1);
    this.chooser.value = String(this.at);
    this.earlier.disabled = this.at === 0;
    this.later.disabled = this.at === this.all.length - 1;
    this.charts.forEach((chart) => chart.describe());
    this.keep(null);
  }

  point(job) {
    if (job === this.pointed) return;
    this.pointed = job;
    this.show();
  }

  /** Keep a job marked; the same job again is let go. */
  keep(job) {
    this.kept = job === this.kept ? null : job;
    this.pointed = null;
    this.show();
  }

  show() {
    this.charts.forEach((chart) => chart.redraw());
    this.readout.replaceChildren(...(this.marked == null
      ? [el("span", { class: "hint" }, "Point at a job for its facts. Its user's other jobs stay bright.")]
      : this.facts(this.day.jobs[this.marked])));
  }

  facts({ id, user, cpus, limit_h, waits }) {
    const parts = [el("b", {}, `job ${id}`), user, cpus == null ? null : `${count(cpus)} cpus`, limit_h == null ? null : `limit ${hours(limit_h)}`];
    const waited = Object.entries(waits || {}).map(([key, wait]) => el("span", { class: "item" },
      el("i", { class: "chip", style: `background: var(--k${waitClass(wait || 0)})` }), `${nameOf(key)}: waited`, el("b", {}, hours(wait))));
    return [...parts.filter(Boolean).map((part) => el("span", { class: "item" }, part)), ...waited];
  }
}
