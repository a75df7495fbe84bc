"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const boxes = [...document.querySelectorAll("#filter input")];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const views = new Map();

  const shown = () => boxes.filter((box) => box.checked).map((box) => box.value);

  function config() {
    const style = getComputedStyle(document.documentElement);
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
      text: { color: colour("text"), fontSize: 12 },
      rule: { color: colour("text") },
      view: { stroke: null },
      line: { strokeWidth: 2 },
    };
  }

  async function draw(place) {
    views.get(place)?.finalize();
    const spec = charts[Number(place.dataset.chart)];
    const options = { actions: false, renderer: "svg", config: config() };
    const { view } = await vegaEmbed(place, spec, options);
    views.set(place, view);
    await view.signal("shown", shown()).runAsync();
    // The place itself says what the chart shows, and a table below it has the figures.
    place.querySelector("svg").setAttribute("aria-hidden", "true");
    place.dataset.drawn = "yes";
  }

  function offer(place) {
    const bar = document.createElement("div");
    bar.className = "saving";
    const title = place.parentElement.querySelector("strong").textContent;
    for (const type of ["svg", "png"]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `Save as ${type.toUpperCase()}`;
      button.setAttribute("aria-label", `Save ${title} as ${type.toUpperCase()}`);
      button.addEventListener("click", async () => {
        const link = document.createElement("a");
        link.download = `${title}.${type}`;
        link.href = await views.get(place).toImageURL(type, 2);
        link.click();
      });
      bar.append(button);
    }
    place.after(bar);
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
  }

  document.querySelectorAll("[data-chart]").forEach((place) => arriving.observe(place));
  boxes.forEach((box) => box.addEventListener("change", select));
  dark.addEventListener("change", () => [...views.keys()].forEach(draw));
  addEventListener("beforeprint", () => {
    document.querySelectorAll("[data-chart]").forEach((place) => views.has(place) || draw(place));
  });
})();
