// Elements, numbers and times, as every part of the page uses them.

const report = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
root.classList.add("js");

const HOUR = 3600, DAY = 86400;
const names = new Map((report.options || []).map((row) => [row.id, row.name]));
const nameOf = (id) => names.get(id) || id;
const utc = Boolean((report.log || {}).utc);
const redraws = [];

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
