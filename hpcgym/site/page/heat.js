// Maps of waits by cpus and limit: before, after, and the change.

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
  let after = ids.includes(report.named) ? report.named : ids[ids.length - 1];

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
