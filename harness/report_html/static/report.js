// Draws the charts and makes the page's filter, links and tables work. Whatever text comes from the
// data is only ever set as text.
"use strict";

const views = [];

// --- Words on hover --------------------------------------------------------------------------------

const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true");  // the marks themselves are described
document.body.append(tip);

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function showTip(_handler, event, item) {
  const told = item?.datum?.tip;
  tip.hidden = !told;
  if (!told) return;
  const facts = document.createElement("dl");
  for (const [name, value] of told.facts ?? []) facts.append(element("dt", name), element("dd", value));
  tip.replaceChildren(element("strong", told.title), facts);
  if (told.text) tip.append(element("p", told.text));
  const room = 8;
  const box = tip.getBoundingClientRect();
  const right = event.clientX + 14 + box.width > innerWidth - room;
  const low = event.clientY + 14 + box.height > innerHeight - room;
  const x = right ? event.clientX - 14 - box.width : event.clientX + 14;
  const y = low ? event.clientY - 14 - box.height : event.clientY + 14;
  tip.style.left = `${Math.max(room, Math.min(x, innerWidth - room - box.width))}px`;
  tip.style.top = `${Math.max(room, y)}px`;
}

/** What a mark says to a screen reader. */
function saying(told) {
  if (!told) return "";
  return [told.title, ...(told.facts ?? []).map(([name, value]) => `${name} ${value}`)].join("; ");
}

// --- What came packed --------------------------------------------------------------------------------

const pack = document.getElementById("pack");
let unpacked;

async function unpack() {
  const bytes = Uint8Array.from(atob(pack.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** The page's code and its charts' data. */
function content() {
  return unpacked ??= unpack();
}

// --- Charts ----------------------------------------------------------------------------------------

/** A group of marks that has none is nothing that a screen reader should come across. */
function hideEmptyGroups(container) {
  for (const group of container.querySelectorAll("g.role-mark[role]")) {
    group.toggleAttribute("aria-hidden", false);
    if (!group.hasChildNodes()) group.setAttribute("aria-hidden", "true");
  }
}

async function draw(figure) {
  const container = figure.querySelector(".view");
  try {
    const { rows, signals } = (await content()).pieces[Number(container.dataset.piece)];
    for (const row of rows) {
      if (row.tip) row.say = saying(row.tip);
    }
    const specification = structuredClone(window.CHARTS[figure.dataset.kind]);
    specification.data.find((one) => one.name === "rows").values = rows;
    for (const signal of specification.signals) {
      if (signal.name in signals) signal.value = signals[signal.name];
    }
    specification.description = container.getAttribute("aria-label");
    // The expressions are interpreted: the page's policy lets nothing become code.
    const { view } = await vegaEmbed(container, specification, {
      mode: "vega", renderer: "svg", ast: true, actions: false, hover: true, tooltip: showTip,
      logLevel: 1,  // errors: that a chart has no marks of some kind is no matter
    });
    view.addEventListener("click", (_event, item) => {
      if (item?.datum?.href) location.href = item.datum.href;
    });
    views.push({ view, container, signals: specification.signals.map((signal) => signal.name) });
    hideEmptyGroups(container);
  } catch (error) {
    const said = element("p", `This chart cannot be drawn here: ${error.message}`);
    said.className = "unavailable";
    container.replaceChildren(said);
    console.error(error);
  }
}

// --- The filter ------------------------------------------------------------------------------------

const filter = document.querySelector(".filter");

function remembered(name) {
  try {
    return sessionStorage.getItem(`rekernel-${name}`) ?? "";
  } catch {
    return "";
  }
}

function remember(name, value) {
  try {
    sessionStorage.setItem(`rekernel-${name}`, value);
  } catch {
    // Without storage, the next page begins unfiltered.
  }
}

function applyFilter() {
  const chosen = Object.fromEntries(new FormData(filter));
  const words = (chosen.words ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  document.querySelectorAll("details.group").forEach((group) => { group.hidden = false; });
  for (const one of document.querySelectorAll("main [data-device], main [data-problem]")) {
    one.hidden = ["device", "problem"].some(
      (name) => chosen[name] && one.dataset[name] && one.dataset[name] !== chosen[name]);
  }
  for (const one of document.querySelectorAll("details.entry")) {
    const told = one.querySelectorAll(":scope > summary, :scope > blockquote, :scope > dl");
    const text = [one.id, ...Array.from(told, (part) => part.textContent)].join(" ").toLowerCase();
    one.hidden = !words.every((word) => text.includes(word));
  }
  for (const group of document.querySelectorAll("details.group")) {
    const found = group.querySelector("details.entry:not([hidden])") !== null;
    if (words.length > 0) group.open = found;
    if (!found) group.hidden = true;
  }
  for (const { view, container, signals } of views) {
    for (const [name, value] of Object.entries(chosen)) {
      if (signals.includes(name)) view.signal(name, value);
    }
    view.runAsync().then(() => hideEmptyGroups(container));
  }
}

function startFilter() {
  if (!filter) return;
  filter.hidden = false;
  for (const select of filter.querySelectorAll("select")) {
    const last = remembered(select.name);
    if ([...select.options].some((option) => option.value === last)) select.value = last;
    select.addEventListener("change", () => remember(select.name, select.value));
  }
  filter.addEventListener("input", applyFilter);
  filter.addEventListener("submit", (event) => event.preventDefault());
  applyFilter();
}

// --- Code, which waits packed until it is to be seen ------------------------------------------------

/** A block of lines. They are HTML that the report made of escaped text. */
function codeBlock(label, html, numbers) {
  const block = document.createElement("div");
  block.className = "code";
  if (numbers) {
    const gutter = element("pre", Array.from({ length: numbers }, (_, i) => i + 1).join("\n"));
    gutter.className = "numbers";
    gutter.setAttribute("aria-hidden", "true");
    block.append(gutter);
  }
  const text = document.createElement("pre");
  text.tabIndex = 0;
  text.setAttribute("role", "region");
  text.setAttribute("aria-label", label);
  const code = document.createElement("code");
  code.innerHTML = html;
  text.append(code);
  block.append(text);
  return block;
}

function differenceLines({ lines, pieces }, { before, after, hunks }) {
  const of = (piece, number) => lines[pieces[piece].lines[number]];
  const html = [];
  for (const [firstBefore, firstAfter, operations] of hunks) {
    let [old, now] = [firstBefore - 1, firstAfter - 1];
    html.push(`<b>@@ ${firstBefore} → ${firstAfter}\n</b>`);
    for (const [, count, operation] of operations.matchAll(/(\d+)([=+-])/g)) {
      for (let i = 0; i < Number(count); ++i) {
        if (operation === "-") html.push(`<del>-${of(before, old++)}\n</del>`);
        if (operation === "+") html.push(`<ins>+${of(after, now++)}\n</ins>`);
        if (operation === "=") html.push(` ${of(after, now++)}\n`), ++old;
      }
    }
  }
  return html.join("");
}

async function showCode(place) {
  if (place.dataset.shown !== undefined) return;
  place.dataset.shown = "";
  try {
    const all = await content();
    const piece = all.pieces[Number(place.dataset.piece)];
    if (piece.hunks) {
      place.replaceChildren(codeBlock(piece.label, differenceLines(all, piece), 0));
      return;
    }
    const html = piece.lines.map((number) => all.lines[number]);
    place.replaceChildren(piece.ended  // each line ends itself, within its element
      ? codeBlock(piece.label, html.join(""), 0)
      : codeBlock(piece.label, `${html.join("\n")}\n`, html.length));
    if (!piece.whole) place.append(element("p", "The rest is too long for this page."));
  } catch (error) {
    place.replaceChildren(element("p", `This code cannot be shown here: ${error.message}`));
    console.error(error);
  }
}

function startCode() {
  if (!pack) return;
  const seen = (folded) => {
    for (const place of folded.querySelectorAll(".packed")) {
      if (place.closest("details:not([open])") === null) showCode(place);
    }
  };
  for (const folded of document.querySelectorAll("details")) {
    if (folded.querySelector(".packed")) {
      folded.addEventListener("toggle", () => folded.open && seen(folded));
    }
  }
  seen(document);
}

// --- Links to what is folded -------------------------------------------------------------------------

function unfold() {
  const id = decodeURIComponent(location.hash.slice(1));
  const target = id && document.getElementById(id);
  if (!target) return;
  for (let one = target; one; one = one.parentElement) {
    if (one instanceof HTMLDetailsElement) one.open = true;
    one.hidden = false;
  }
  target.scrollIntoView({ block: "start" });
  target.querySelector("summary")?.focus({ preventScroll: true });
}

// --- Tables ----------------------------------------------------------------------------------------

function sortKey(cell) {
  const number = Number.parseFloat(cell.textContent.replace(/[\s\u202f]/g, ""));
  return cell.classList.contains("number") ? (Number.isNaN(number) ? -Infinity : number)
                                           : cell.textContent.trim().toLowerCase();
}

function makeSortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = element("button", heading.textContent);
    button.type = "button";
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const rising = heading.getAttribute("aria-sort") !== "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => [sortKey(row.cells[column]), row]);
      rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (rising ? 1 : -1));
      body.append(...rows.map(([, row]) => row));
    });
  });
}

// --- Light and dark --------------------------------------------------------------------------------

function startTheme() {
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const show = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    const chosen = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    try {
      localStorage.setItem("rekernel-theme", chosen);
    } catch {
      // It holds for this page then.
    }
    show();
  });
  dark.addEventListener("change", show);
  show();
}

async function start() {
  startTheme();
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  startCode();
  await Promise.all([...document.querySelectorAll("figure.chart")].map(draw));
  startFilter();
  unfold();
  addEventListener("hashchange", unfold);
  document.documentElement.dataset.ready = "";
}

start();
