// What charts on a canvas share: size, ticks, colours by wait.

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
