"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const charts = read("charts");
  const source = read("source");
  const baseline = document.getElementById("baseline");
  const boxes = [...document.querySelectorAll("#filter input")];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const views = new Map();

  const shown = () => boxes.filter((box) => box.checked).map((box) => box.value);

  function config(style) {
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const category = [];
    while (colour(`colour-${category.length}`)) {
      category.push(colour(`colour-${category.length}`));
    }
    const words = { labelColor: colour("text"), titleColor: colour("text"), labelFontSize: 12 };
    return {
      background: "transparent",
      font: "system-ui, sans-serif",
      range: { category },
      axis: { ...words, gridColor: colour("line"), domainColor: colour("faint"),
              tickColor: colour("faint") },
      legend: { ...words, symbolSize: 80 },
      title: { anchor: "start", color: colour("text"), subtitleColor: colour("faint") },
      text: { color: colour("text"), fontSize: 12 },
      rule: { color: colour("text") },
      point: { color: colour("text") },
      view: { stroke: null },
      line: { strokeWidth: 2 },
    };
  }

  async function draw(place) {
    views.get(place)?.finalize();
    const style = getComputedStyle(document.documentElement);
    const options = { actions: false, renderer: "svg", config: config(style) };
    const { view } = await vegaEmbed(place, charts[Number(place.dataset.chart)], options);
    views.set(place, view);
    await view.signal("shown", shown()).runAsync();
    place.dataset.drawn = "yes";
  }

  // A saved picture is looked at without its page, so it gets a title and light colours.
  async function save(place, type) {
    const figure = place.closest("figure");
    const title = figure.querySelector("strong").textContent;
    const subtitle = [figure.querySelector("figcaption span").textContent, ...source];
    const spec = { ...charts[Number(place.dataset.chart)], width: 640, title: { text: title, subtitle } };
    const paper = document.createElement("div");
    paper.className = "paper";
    paper.hidden = true;
    document.body.append(paper);
    const light = { ...config(getComputedStyle(paper)), background: "#ffffff", padding: 16 };
    const { view } = await vegaEmbed(paper, spec, { actions: false, renderer: "none", config: light });
    await view.signal("shown", shown()).runAsync();
    const link = document.createElement("a");
    link.download = `${title}.${type}`;
    link.href = await view.toImageURL(type, 2);
    link.click();
    view.finalize();
    paper.remove();
  }

  function offer(place) {
    const bar = document.createElement("div");
    bar.className = "saving";
    const title = place.closest("figure").querySelector("strong").textContent;
    for (const type of ["svg", "png"]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `Save as ${type.toUpperCase()}`;
      button.setAttribute("aria-label", `Save ${title} as ${type.toUpperCase()}`);
      button.addEventListener("click", () => save(place, type));
      bar.append(button);
    }
    place.parentElement.after(bar);
  }

  const arriving = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting && !views.has(target)) {
        views.set(target, undefined);
        draw(target).then(() => offer(target));
      }
    }
  }, { rootMargin: "400px" });

  function select() {
    const names = new Set(shown());
    for (const [, view] of views) {
      view?.signal("shown", [...names]).runAsync();
    }
    for (const cell of document.querySelectorAll("[data-contender]")) {
      cell.hidden = !names.has(cell.dataset.contender);
    }
    for (const comparison of document.querySelectorAll("[data-sides]")) {
      comparison.hidden = !JSON.parse(comparison.dataset.sides).every((name) => names.has(name));
    }
    for (const view of document.querySelectorAll("[data-baseline]")) {
      view.hidden = view.dataset.baseline !== baseline.value;
    }
  }

  function choose(percentile) {
    for (const shown of document.querySelectorAll("[data-percentile]")) {
      shown.hidden = shown.dataset.percentile !== percentile.value;
    }
  }

  function unfold() {
    let fold = document.getElementById(location.hash.slice(1))?.closest("details");
    for (; fold; fold = fold.parentElement.closest("details")) {
      fold.open = true;
    }
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }

  function sort(body, heads, number) {
    const falling = heads[number].getAttribute("aria-sort") !== "descending" && number > 0;
    const key = (row) => number ? Number(row.cells[number].dataset.value || 0) : Number(row.dataset.place);
    const rows = [...body.rows].sort((one, other) => key(one) - key(other));
    body.append(...(falling ? rows.reverse() : rows));
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[number].setAttribute("aria-sort", falling ? "descending" : "ascending");
  }

  for (const matrix of document.querySelectorAll(".matrix")) {
    const [body, heads] = [matrix.tBodies[0], [...matrix.tHead.rows[0].cells]];
    [...body.rows].forEach((row, place) => { row.dataset.place = place; });
    heads.forEach((head, number) => head.addEventListener("click", () => sort(body, heads, number)));
  }
  document.querySelectorAll("[data-chart]").forEach((place) => arriving.observe(place));
  boxes.forEach((box) => box.addEventListener("change", select));
  document.getElementById("filter").hidden = boxes.length === 1 && !document.querySelector("select");
  baseline?.addEventListener("change", select);
  select();
  const percentile = document.getElementById("percentile");
  if (percentile) {
    percentile.addEventListener("change", () => choose(percentile));
    choose(percentile);
  }
  addEventListener("hashchange", unfold);
  unfold();
  dark.addEventListener("change", () => [...views.keys()].forEach(draw));
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details.part, details.inner").forEach((part) => { part.open = true; });
    document.querySelectorAll("[data-chart]").forEach((place) => views.has(place) || draw(place));
  });
})();
