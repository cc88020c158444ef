// Put each part where the page has it.

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
withElement("queue-chart", (box) => new QueueChart(box, report.queue));
withElement("day-chart", (box) => new DayCharts(box, report.days));
document.querySelectorAll(".command").forEach(copyButton);
followScrolling([...document.querySelectorAll("nav a")]);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach((redraw) => redraw()));
root.dataset.ready = "true";
