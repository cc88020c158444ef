"use strict";
(() => {
  const report = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  root.classList.add("js");

  const HOUR = 3600, DAY = 86400;
  const names = new Map((report.options || []).map((row) => [row.id, row.name]));
  const nameOf = (id) => names.get(id) || id;
  const utc = Boolean((report.log || {}).utc);
  const redraws = [];

  // ---- elements and numbers ----

  /** Make an element. Texts become text nodes, so no name from the data is ever read as HTML. */
  function el(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value === true) made.setAttribute(key, "");
      else if (value !== false && value != null) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child != null));
    return made;
  }

  /** Say hours as the tables do. */
  function hours(value) {
    if (value == null) return "–";
    const size = Math.abs(value), minus = value < 0 ? "−" : "";
    if (size * 3600 < 0.5) return "0";
    if (size * 60 < 1) return `${minus}${(size * 3600).toFixed(0)} s`;
    if (size * 60 < 59.5) return `${minus}${(size * 60).toFixed(0)} min`;
    return minus + (size < 48 ? `${size.toFixed(1)} h` : `${(size / 24).toFixed(1)} d`);
  }

  const count = (value) => value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const two = (value) => String(value).padStart(2, "0");

  /** Name an instant: of the calendar, or of the log's days where it has no calendar. */
  function when(seconds, parts = "day time") {
    const at = new Date(seconds * 1000);
    const time = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
    const month = MONTHS[at.getUTCMonth()], year = at.getUTCFullYear();
    const day = utc ? `${at.getUTCDate()} ${month}` : `day ${Math.floor(seconds / DAY) + 1}`;
    if (parts === "time") return time;
    if (parts === "month") return utc ? `${month} ${year}` : day;
    if (parts === "day") return day;
    return `${day}${utc ? ` ${year}` : ""}${parts === "date" ? "" : `, ${time}`}`;
  }

  function select(label, entries, chosen, change) {
    const options = entries.map(([value, text]) => el("option", { value, selected: value === chosen }, text));
    return el("label", {}, label, el("select", { onchange: (event) => change(event.target.value) }, ...options));
  }

  const button = (text, label, press) => el("button", { type: "button", "aria-label": label, onclick: press }, text);

  // ---- tables ----

  function makeSortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const press = el("button", { type: "button", title: "Sort" });
      press.append(...head.childNodes);
      if (!press.textContent) return;
      head.append(press);
      press.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "descending"
          || (!head.hasAttribute("aria-sort") && !head.classList.contains("n"));
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "ascending" : "descending");
        for (const body of table.tBodies) sortRows(body, column, down ? 1 : -1);
      });
    });
  }

  /** Sort the rows of a body; what has no value stays below in either direction. */
  function sortRows(body, column, sign) {
    const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
    const key = (row) => {
      const cell = row.cells[column];
      return cell.dataset.v === undefined ? cell.textContent || null : cell.dataset.v;
    };
    const keyed = rows.map((row) => [key(row), row]);
    const numeric = keyed.every(([value]) => value === null || !Number.isNaN(Number(value)));
    keyed.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (numeric ? a - b : a.localeCompare(b, "en", { numeric: true }));
    });
    body.append(...keyed.map(([, row]) => row));
  }

  function makeFiltered(box) {
    const rows = [...box.querySelectorAll("tbody tr")];
    if (rows.length < 8) return;
    const said = el("span", { class: "count", role: "status" });
    const input = el("input", { type: "search", placeholder: "part of a name", autocomplete: "off" });
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
        shown += !row.hidden;
      }
      said.textContent = wanted ? `${shown} of ${rows.length}` : "";
    });
    box.before(el("div", { class: "controls" }, el("label", {}, "Filter", input), said));
  }

  function makeTabs(tabs, number) {
    const panels = [...tabs.querySelectorAll(":scope > .panel")];
    const buttons = panels.map((panel, i) => {
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", `tab-${number}-${i}`);
      const attributes = { type: "button", role: "tab", id: `tab-${number}-${i}`, "aria-controls": panel.id };
      return el("button", { ...attributes, onclick: () => show(i) }, panel.dataset.title);
    });
    function show(chosen) {
      panels.forEach((panel, i) => {
        panel.hidden = i !== chosen;
        buttons[i].setAttribute("aria-selected", String(i === chosen));
        buttons[i].tabIndex = i === chosen ? 0 : -1;
      });
    }
    const list = el("div", { class: "tablist", role: "tablist", "aria-label": tabs.dataset.label }, ...buttons);
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (buttons.indexOf(document.activeElement) + step + panels.length) % panels.length;
      show(next);
      buttons[next].focus();
    });
    tabs.prepend(list);
    show(Math.max(panels.findIndex((panel) => panel.id === "group-user"), 0));
  }

  // ---- waits by cpus and limit: before, after, and the change ----

  function heatMaps(choice) {
    const maps = [...document.querySelectorAll("#heat-maps .map")];
    const ids = maps.map((map) => map.dataset.option);
    if (ids.length < 2) return;
    const { waits } = report.heat;
    const down = report.heat.n.flatMap((line, i) => (line.some(Boolean) ? [i] : []));
    const across = report.heat.limit.flatMap((_name, j) => (report.heat.n.some((line) => line[j]) ? [j] : []));
    const kept = (grid, i, j) => grid[down[i]][across[j]];
    const changed = maps[0].cloneNode(true);
    changed.removeAttribute("data-option");
    const cells = [...changed.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td")]);
    document.getElementById("heat-maps").append(changed);
    let before = ids.includes("today") ? "today" : ids[0];
    let after = ids.includes(report.best) ? report.best : ids[ids.length - 1];

    function show() {
      maps.forEach((map) => {
        map.hidden = ![before, after].includes(map.dataset.option);
        map.style.order = map.dataset.option === before ? 0 : 1;
      });
      changed.style.order = 2;
      const title = `Change from ${nameOf(before)} to ${nameOf(after)}`;
      changed.querySelector("figcaption").textContent = title;
      changed.querySelector("caption").textContent = title;
      changed.querySelector(".scroll").setAttribute("aria-label", title);
      cells.forEach((line, i) => line.forEach((cell, j) => fill(cell, kept(waits[before], i, j), kept(waits[after], i, j), kept(report.heat.n, i, j))));
    }

    function fill(cell, from, to, jobs) {
      if (from == null || to == null) {
        cell.className = "void";
        cell.textContent = "";
        return;
      }
      const less = from - to, size = Math.abs(less);
      const step = size < 1 / 60 ? 0 : size < 1 ? 1 : 2;
      cell.className = `${step ? `c-${less > 0 ? "p" : "m"}${step}` : "c-0"}${jobs < 10 ? " few" : ""}`;
      cell.textContent = (less > 0 ? hours(-less) : `${step ? "+" : ""}${hours(size)}`).replace(" ", "\u202f");
    }

    maps.forEach((map) => map.querySelectorAll("tbody tr").forEach((row, i) =>
      row.querySelectorAll("td").forEach((cell, j) => { cell.title = `${count(kept(report.heat.n, i, j))} jobs`; })));
    const entries = ids.map((id) => [id, nameOf(id)]);
    choice.append(
      select("Before", entries, before, (id) => { before = id; show(); }),
      select("After", entries, after, (id) => { after = id; show(); }));
    const steps = [["c-p2", "1 h less or better"], ["c-p1", "less"], ["c-0", "the same"], ["c-m1", "more"], ["c-m2", "1 h more or worse"]];
    document.querySelector(".heat-key").after(
      el("p", { class: "legend" }, "change", ...steps.map(([kind, text]) => el("span", { class: kind }, text))));
    show();
  }

  // ---- canvases ----

  /** Keep a canvas as wide as its box; `paint` gets a context in CSS pixels. */
  function surface(canvas, height, paint) {
    const draw = () => {
      const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
      if (!width) return;
      canvas.style.height = `${height}px`;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      pen.font = "12px system-ui, 'Segoe UI', Roboto, 'Noto Sans', Arial, sans-serif";
      paint(pen, width, height);
    };
    let asked = 0;
    const redraw = () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(draw); };
    new ResizeObserver(redraw).observe(canvas);
    redraws.push(redraw);
    return redraw;
  }

  /** Return round steps up to a maximum. */
  function ticks(most, wanted) {
    const raw = most / wanted, power = 10 ** Math.floor(Math.log10(raw));
    const step = Math.max([1, 2, 5, 10].find((factor) => factor * power >= raw) * power, 1);
    return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
  }

  /** Return instants of an axis of time, and how to name them. */
  function timeTicks(begin, end, wanted) {
    const raw = (end - begin) / wanted;
    if (utc && raw > 20 * DAY) {
      const every = [1, 2, 3, 6, 12].find((months) => months * 30 * DAY >= raw) || 12, instants = [];
      const first = new Date(begin * 1000);
      for (let month = 0; ; month++) {
        const at = Date.UTC(first.getUTCFullYear(), month, 1) / 1000;
        if (at > end) return { at: instants, parts: "month" };
        if (at >= begin && month % every === 0) instants.push(at);
      }
    }
    const steps = [HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 56 * DAY, 112 * DAY];
    const step = steps.find((seconds) => seconds >= raw) || Math.ceil(raw / (364 * DAY)) * 364 * DAY;
    const instants = [];
    for (let at = Math.ceil(begin / step) * step; at <= end; at += step) instants.push(at);
    return { at: instants, parts: step < DAY ? "hour" : "day" };
  }

  const tickName = (at, parts) => (parts !== "hour" ? when(at, parts) : at % DAY ? when(at, "time") : when(at, "day"));

  // ---- the queue ----

  function queueChart(box) {
    const { begin, step_s: step, series, capacity } = report.queue, busy = report.queue.cpus || {};
    const ids = Object.keys(series);
    const total = Math.max(...ids.map((id) => series[id].length));
    const shown = new Set(ids.filter((id) => ["recorded", "today"].includes(id)));
    if (!shown.size) shown.add(ids[0]);
    const dashes = [[], [], [6, 3], [2, 3], [8, 3, 2, 3], [1, 3]];
    const split = (report.log || {}).split;
    const has_busy = Object.keys(busy).length > 0;
    const left = 46, top = 22, gap = 34, bottom = 24;
    const heights = [230, has_busy ? 110 : 0];
    const base = top + heights[0] + (has_busy ? gap + heights[1] : 0);
    let low = 0, high = total, hover = null, drag = null, bucket = 1, width = 0;

    const canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": "Waiting jobs and busy processors over time. The table below has the means." });
    const readout = el("div", { class: "readout", "aria-live": "polite" });
    const range = el("span", { class: "count" });
    const x = (at) => left + ((at - low) / (high - low)) * (width - left - 4);
    const stepAt = (px) => low + ((px - left) / (width - left - 4)) * (high - low);

    /** Return means over the steps from a number on; null where nothing is known. */
    function mean(values, from) {
      let sum = 0, known = 0;
      for (let i = from; i < Math.min(from + bucket, values.length); i++) if (values[i] != null) { sum += values[i]; known++; }
      return known ? sum / known : null;
    }

    const redraw = surface(canvas, base + bottom, (pen, wide) => {
      width = wide;
      bucket = Math.max(1, Math.ceil((high - low) / ((wide - left) / 2)));
      panel(pen, series, top, heights[0], "jobs waiting", null);
      if (has_busy) panel(pen, busy, top + heights[0] + gap, heights[1], "processors busy", capacity);
      timeAxis(pen);
      marks(pen);
      range.textContent = `${when(begin + low * step, "date")} to ${when(begin + Math.max(high - 1, low) * step, "date")}`
        + (bucket > 1 ? `, means of ${hours((bucket * step) / HOUR)}` : "");
    });

    function panel(pen, values, y0, height, title, most) {
      const first = Math.floor(low / bucket) * bucket;
      const lines = ids.filter((id) => shown.has(id) && values[id]).map((id) => {
        const points = [];
        for (let from = first; from < high; from += bucket) points.push([from + bucket / 2, mean(values[id], from)]);
        return [id, points];
      });
      const peak = most || Math.max(1, ...lines.flatMap(([, points]) => points.map(([, value]) => value || 0)));
      const y = (value) => y0 + height - (value / peak) * height;
      pen.fillStyle = colour("soft");
      pen.textAlign = "left";
      pen.fillText(title, 0, y0 - 9);
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      for (const tick of ticks(peak, height / 50)) {
        pen.fillStyle = colour(tick ? "rule" : "faint");
        pen.fillRect(left, Math.round(y(tick)), width - left - 4, 1);
        pen.fillStyle = colour("soft");
        pen.fillText(count(tick), left - 8, y(tick));
      }
      pen.textBaseline = "alphabetic";
      pen.save();
      pen.beginPath();
      pen.rect(left, y0 - 4, width - left - 4, height + 8);
      pen.clip();
      lines.reverse();
      for (const [id, points] of lines) {
        const slot = ids.indexOf(id);
        pen.strokeStyle = colour(`s${slot % 6}`);
        pen.lineWidth = slot === 0 ? 1.9 : 1.5;
        pen.setLineDash(dashes[slot % 6]);
        pen.lineJoin = "round";
        pen.beginPath();
        let down = false;
        for (const [at, value] of points) {
          if (value == null) { down = false; continue; }
          if (down) pen.lineTo(x(at), y(value)); else pen.moveTo(x(at), y(value));
          down = true;
        }
        pen.stroke();
      }
      pen.restore();
    }

    function timeAxis(pen) {
      const { at, parts } = timeTicks(begin + low * step, begin + high * step, (width - left) / 95);
      pen.textAlign = "center";
      let free = -Infinity;
      for (const instant of at) {
        const px = x((instant - begin) / step), text = tickName(instant, parts), half = pen.measureText(text).width / 2;
        pen.fillStyle = colour("faint");
        pen.fillRect(Math.round(px), base, 1, 5);
        if (px - half < free || px + half > width) continue;
        pen.fillStyle = colour("soft");
        pen.fillText(text, Math.max(px, half), base + 18);
        free = px + half + 8;
      }
    }

    function marks(pen) {
      const cut = split == null ? -1 : (split - begin) / step;
      if (cut > low && cut < high) {
        pen.strokeStyle = colour("soft");
        pen.setLineDash([3, 3]);
        pen.lineWidth = 1;
        pen.beginPath();
        pen.moveTo(x(cut), 8);
        pen.lineTo(x(cut), base);
        pen.stroke();
        pen.setLineDash([]);
        pen.fillStyle = colour("soft");
        const right = x(cut) > width - 120;
        pen.textAlign = right ? "right" : "left";
        pen.fillText("judged from here", x(cut) + (right ? -5 : 5), 12);
      }
      pen.fillStyle = colour("mark");
      for (const day of report.days || []) {
        const px = x((day.begin + DAY / 2 - begin) / step);
        if (px < left || px > width) continue;
        pen.beginPath();
        pen.moveTo(px - 4, top - 7);
        pen.lineTo(px + 4, top - 7);
        pen.lineTo(px, top);
        pen.fill();
      }
      if (drag) {
        pen.globalAlpha = 0.18;
        pen.fillStyle = colour("s1");
        pen.fillRect(Math.min(drag.from, drag.to), top, Math.abs(drag.to - drag.from), base - top);
        pen.globalAlpha = 1;
      } else if (hover != null) {
        pen.fillStyle = colour("soft");
        pen.fillRect(Math.round(x(hover + bucket / 2)), top, 1, base - top);
      }
    }

    function say() {
      if (hover == null) {
        const days = (report.days || []).length ? " A triangle marks a day with a chart below; click it to go there." : "";
        readout.replaceChildren(el("span", { class: "hint" }, `Point at the chart for its numbers.${days}`));
        return;
      }
      const items = ids.filter((id) => shown.has(id)).map((id) => {
        const waiting = mean(series[id], hover), used = busy[id] ? mean(busy[id], hover) : null;
        const text = `${waiting == null ? "–" : count(waiting)} waiting${used == null ? "" : `, ${count(used)} busy`}`;
        return el("span", { class: "item" }, swatch(id), nameOf(id), el("b", {}, text));
      });
      readout.replaceChildren(el("b", {}, when(begin + hover * step)), ...items);
    }

    function swatch(id) {
      const slot = ids.indexOf(id), kinds = ["solid", "solid", "dashed", "dotted"];
      return el("i", { class: "stroke", style: `border-color: var(--s${slot % 6}); border-top-style: ${kinds[slot] || "dashed"}` });
    }

    function look(from, to) {
      const wide = clamp(to - from, Math.min(6, total), total);
      low = clamp(from, 0, total - wide);
      high = low + wide;
      redraw();
      say();
    }
    const zoom = (factor) => { const middle = (low + high) / 2, half = ((high - low) * factor) / 2; look(middle - half, middle + half); };
    const pan = (part) => { const by = (high - low) * part; look(low + by, high + by); };
    const spanOf = (seconds) => { const middle = hover == null ? (low + high) / 2 : hover, half = seconds / step / 2; look(middle - half, middle + half); };

    const px = (event) => event.clientX - canvas.getBoundingClientRect().left;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      drag = { from: px(event), to: px(event) };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag) drag.to = clamp(px(event), left, width);
      hover = clamp(Math.floor(stepAt(px(event)) / bucket) * bucket, 0, total - 1);
      redraw();
      say();
    });
    canvas.addEventListener("pointerup", () => {
      if (!drag) return;
      const { from, to } = drag;
      drag = null;
      if (Math.abs(to - from) > 5) look(stepAt(Math.min(from, to)), stepAt(Math.max(from, to)));
      else openDay(stepAt(from));
    });
    canvas.addEventListener("pointercancel", () => { drag = null; redraw(); });
    canvas.addEventListener("pointerleave", () => { hover = null; redraw(); say(); });
    canvas.addEventListener("dblclick", () => look(0, total));
    canvas.addEventListener("keydown", (event) => {
      const act = { ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => look(0, total) }[event.key];
      if (act) { event.preventDefault(); act(); }
    });

    function openDay(at) {
      const near = (5 / (width - left)) * (high - low);
      const chosen = (report.days || []).findIndex((day) => Math.abs((day.begin + DAY / 2 - begin) / step - at) < Math.max(near, DAY / step / 2));
      if (chosen >= 0) document.dispatchEvent(new CustomEvent("open-day", { detail: chosen }));
    }

    const toggles = ids.map((id) => {
      const input = el("input", { type: "checkbox", checked: shown.has(id) });
      input.addEventListener("change", () => { if (input.checked) shown.add(id); else shown.delete(id); redraw(); say(); });
      return el("label", {}, input, swatch(id), nameOf(id));
    });
    box.append(
      el("div", { class: "controls" }, ...toggles),
      el("div", { class: "controls" },
        el("span", { class: "buttons", role: "group", "aria-label": "Time shown" },
          button("All", "Show all", () => look(0, total)), button("Month", "Show a month", () => spanOf(30 * DAY)),
          button("Week", "Show a week", () => spanOf(7 * DAY)), button("Day", "Show a day", () => spanOf(DAY))),
        el("span", { class: "buttons", role: "group", "aria-label": "Move and zoom" },
          button("←", "Earlier", () => pan(-0.5)), button("→", "Later", () => pan(0.5)),
          button("+", "Closer", () => zoom(0.5)), button("−", "Wider", () => zoom(2))),
        range),
      el("div", { class: "plot" }, canvas), readout);
    say();
  }

  // ---- a day on the machine ----

  const CLASS_ENDS = [1 / 60, 1 / 6, 1, 8];
  const CLASS_NAMES = ["< 1 min", "< 10 min", "< 1 h", "< 8 h", "more"];
  const classOf = (wait) => CLASS_ENDS.filter((end) => wait >= end).length;

  function dayChart(box) {
    const { days } = report;
    const all = [...new Set(days.flatMap((day) => Object.keys(day.schedules)))];
    const upper = all.includes("recorded") ? "recorded" : all[0];
    const lower = [report.best, "today", ...all].find((id) => id !== upper && all.includes(id));
    const shownIds = [upper, lower].filter((id) => id != null);
    const capacity = Math.max((report.queue || {}).capacity || 1,
      ...days.flatMap((day) => Object.values(day.schedules).flatMap((boxes) => boxes.map(([first, n]) => first + n))));
    const left = 46, top = 6, bottom = 22, height = 250;
    let at = 0, pointed = null, kept = null;
    const marked = () => (pointed == null ? kept : pointed);
    const readout = el("div", { class: "readout", "aria-live": "polite" });

    const charts = shownIds.map((_, slot) => {
      const title = el("h3", {});
      const canvas = el("canvas", { tabindex: 0, role: "img" });
      let width = 0;
      const x = (seconds) => left + (clamp(seconds, 0, DAY) / DAY) * (width - left - 4);
      const y = (processor) => top + height - (processor / capacity) * height;
      const boxes = () => days[at].schedules[shownIds[slot]] || [];
      const redraw = surface(canvas, top + height + bottom, (pen, wide) => {
        width = wide;
        axes(pen);
        const job = marked(), { jobs } = days[at];
        const user = job == null ? null : jobs[job].user;
        const edge = colour("box-edge"), fills = CLASS_NAMES.map((_name, k) => colour(`k${k}`)), unknown = colour("faint");
        for (const [first, n, begin, end, which] of boxes()) {
          const facts = jobs[which] || { waits: {} }, wait = (facts.waits || {})[shownIds[slot]];
          const x0 = x(begin), wide_ = Math.max(x(end) - x0, 1), y0 = y(first + n), tall = Math.max(y(first) - y0, 0.75);
          pen.globalAlpha = job == null || which === job ? 1 : user && facts.user === user ? 0.85 : 0.28;
          pen.fillStyle = which === job ? colour("mark") : wait == null ? unknown : fills[classOf(wait)];
          pen.fillRect(x0, y0, wide_, tall);
          if (tall > 3 && wide_ > 4) {
            pen.strokeStyle = edge;
            pen.lineWidth = 1;
            pen.strokeRect(x0 + 0.5, y0 + 0.5, wide_ - 1, tall - 1);
          }
        }
        pen.globalAlpha = 1;
      });

      function axes(pen) {
        pen.fillStyle = colour("card");
        pen.fillRect(left, top, width - left - 4, height);
        pen.fillStyle = colour("soft");
        pen.textBaseline = "middle";
        pen.textAlign = "right";
        for (const tick of ticks(capacity, 5)) pen.fillText(count(tick), left - 8, y(tick));
        pen.textBaseline = "alphabetic";
        pen.textAlign = "center";
        const every = width > 700 ? 2 : width > 420 ? 4 : 6;
        for (let hour = 0; hour <= 24; hour += every) {
          pen.fillStyle = colour("faint");
          pen.fillRect(Math.round(x(hour * HOUR)), top + height, 1, 4);
          pen.fillStyle = colour("soft");
          const text = `${two(hour)}:00`;
          pen.fillText(text, Math.min(x(hour * HOUR), width - 2 - pen.measureText(text).width / 2), top + height + 18);
        }
      }

      const inside = (event) => {
        const area = canvas.getBoundingClientRect();
        const px = event.clientX - area.left, py = event.clientY - area.top;
        const hit = boxes().filter(([first, n, begin, end]) =>
          px >= x(begin) - 1 && px <= Math.max(x(end), x(begin) + 2) && py >= y(first + n) - 0.5 && py <= y(first) + 0.5);
        return hit.length ? hit[hit.length - 1][4] : null;
      };
      canvas.addEventListener("pointermove", (event) => point(inside(event)));
      canvas.addEventListener("pointerleave", () => point(null));
      canvas.addEventListener("click", (event) => {
        const job = inside(event);
        kept = job === kept ? null : job;
        point(job);
      });
      canvas.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (event.key === "Escape") { kept = null; point(null); }
        if (!step) return;
        event.preventDefault();
        const order = [...new Set([...boxes()].sort((a, b) => a[2] - b[2]).map((drawn) => drawn[4]))];
        const now = order.indexOf(marked());
        kept = order[now < 0 ? 0 : (now + step + order.length) % order.length];
        point(null);
      });
      return { title, canvas, redraw, boxes };
    });

    function point(job) {
      pointed = job;
      charts.forEach((chart) => chart.redraw());
      say();
    }

    function say() {
      const job = marked();
      if (job == null) {
        readout.replaceChildren(el("span", { class: "hint" }, "Point at a job for its facts. Its user's other jobs stay bright."));
        return;
      }
      const facts = days[at].jobs[job];
      const waits = Object.entries(facts.waits || {}).map(([id, wait]) =>
        el("span", { class: "item" }, el("i", { class: "chip", style: `background: var(--k${classOf(wait || 0)})` }), `${nameOf(id)}: waited`, el("b", {}, hours(wait))));
      const parts = [el("b", {}, `job ${facts.id}`), facts.user ? `${facts.user}` : null, `${count(facts.cpus)} cpus`, `limit ${hours(facts.limit_h)}`];
      readout.replaceChildren(...parts.filter(Boolean).map((part) => el("span", { class: "item" }, part)), ...waits);
    }

    function show() {
      kept = pointed = null;
      charts.forEach((chart, slot) => {
        const id = shownIds[slot], jobs = new Set(chart.boxes().map((drawn) => drawn[4])).size;
        chart.title.textContent = nameOf(id);
        chart.canvas.setAttribute("aria-label", `${days[at].label}, ${nameOf(id)}: ${jobs} jobs on ${count(capacity)} processors. Arrow keys go from job to job.`);
        chart.redraw();
      });
      chooser.value = String(at);
      earlier.disabled = at === 0;
      later.disabled = at === days.length - 1;
      say();
    }

    const go = (day) => { at = clamp(day, 0, days.length - 1); show(); };
    const dayChoice = select("Day", days.map((day, i) => [String(i), day.label]), "0", (value) => go(Number(value)));
    const chooser = dayChoice.querySelector("select");
    const earlier = button("←", "Day before", () => go(at - 1)), later = button("→", "Day after", () => go(at + 1));
    const entries = all.map((id) => [id, nameOf(id)]);
    const schedules = shownIds.map((id, slot) =>
      select(slot ? "Below" : "Above", entries, id, (value) => { shownIds[slot] = value; show(); }));
    box.append(
      el("div", { class: "controls" }, dayChoice, el("span", { class: "buttons" }, earlier, later), ...schedules),
      readout,
      ...charts.map(({ title, canvas }) => el("div", { class: "plot" }, title, canvas)),
      el("p", { class: "legend" }, "waited", ...CLASS_NAMES.map((text, k) => el("span", { class: `k${k}` }, text))));
    document.addEventListener("open-day", (event) => {
      go(event.detail);
      document.getElementById("day").scrollIntoView();
    });
    show();
  }

  // ---- the rest ----

  function copyButton(pre) {
    if (!navigator.clipboard) return;
    const press = el("button", { type: "button", class: "copy" }, "Copy");
    press.addEventListener("click", () => navigator.clipboard.writeText(pre.textContent).then(
      () => { press.textContent = "Copied"; }, () => { press.textContent = "Not allowed; select the text"; }));
    pre.after(press);
  }

  function followScrolling(links) {
    const seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const linked = links.find((link) => link.hash === `#${target.id}`);
        if (linked) linked.classList.toggle("here", isIntersecting);
      }
    }, { rootMargin: "-10% 0px -75% 0px" });
    document.querySelectorAll("main > section").forEach((section) => seen.observe(section));
  }

  function withElement(id, make) {
    const element = document.getElementById(id);
    if (element) make(element);
  }

  document.querySelectorAll(".filtered").forEach(makeFiltered);
  withElement("heat-choice", heatMaps);
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  document.querySelectorAll(".tabs").forEach(makeTabs);
  withElement("queue-chart", queueChart);
  withElement("day-chart", dayChart);
  document.querySelectorAll(".command").forEach(copyButton);
  followScrolling([...document.querySelectorAll("nav a")]);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach((redraw) => redraw()));
  root.dataset.ready = "true";
})();
