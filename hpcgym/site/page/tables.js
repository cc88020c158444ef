// Tables: sorted by a click, filtered by a text, one tab for each.

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
