// Runs in the browser for tools/site_check.py, which states what is checked. Owns: the measurements.
// Each page is loaded into a frame of the width to check, so that its media queries see that width.
const found = [];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function load(path, width) {
  return new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.style.cssText = `width:${width}px;height:900px;border:0`;
    frame.onload = () => resolve(frame);
    frame.src = SETTINGS.base + path;
    document.body.append(frame);
  });
}

function overflows(element) {
  return element.scrollWidth > element.clientWidth + 1;
}

function luminance([r, g, b]) {
  const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}

function rgba(text) {
  const canvas = rgba.canvas ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
}

function over([r, g, b, a], under) {
  return [r, g, b].map((c, i) => c * a + under[i] * (1 - a));
}

// The background colour of an element: its backgrounds and those of its ancestors, blended.
function background(element, view) {
  const layers = [];
  for (let at = element; at; at = at.parentElement) layers.push(rgba(view.getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
}

function contrasts(path, page, view) {
  const seen = new Map();
  for (const scheme of ["default", "slate"]) {
    page.body.setAttribute("data-md-color-scheme", scheme);
    for (const element of page.querySelectorAll(".md-content :is(p, li, td, th, a, h1, h2, h3, code, code span, em, strong)")) {
      const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
      if (!text || !element.getClientRects().length || element.matches(".headerlink, .mermaid *")) continue;
      const style = view.getComputedStyle(element);
      const under = background(element, view);
      const [a, b] = [luminance(over(rgba(style.color), under)), luminance(under)].sort((x, y) => y - x);
      const ratio = (a + 0.05) / (b + 0.05);
      const large = parseFloat(style.fontSize) >= 24;
      const key = `${scheme} ${element.tagName.toLowerCase()}.${element.className} ${style.color}`;
      if (ratio < (large ? 3 : SETTINGS.contrast) && !seen.has(key)) {
        seen.set(key, `${path}: contrast ${ratio.toFixed(2)} of ${key}: ${element.textContent.trim().slice(0, 40)}`);
      }
    }
  }
  found.push(...seen.values());
}

async function check(path, width, links) {
  const frame = await load(path, width);
  const [page, view] = [frame.contentDocument, frame.contentWindow];
  const style = page.createElement("style");
  style.textContent = "* { transition: none !important; animation: none !important }";
  page.head.append(style);
  await page.fonts.ready;
  await pause(50);
  const where = `${path} at ${width}`;
  const root = page.documentElement;
  if (overflows(root)) {
    const wide = [...page.body.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > width + 1);
    found.push(`${where}: the page is ${root.scrollWidth} px wide: ${wide.slice(-1).map((e) => e.outerHTML.slice(0, 80))}`);
  }
  for (const code of page.querySelectorAll("pre > code")) {
    if (overflows(code)) found.push(`${where}: a code block scrolls: ${code.textContent.trim().slice(0, 60)}`);
  }
  for (const code of page.querySelectorAll("td code")) {
    if (!code.textContent.includes(" ") && code.getClientRects().length > 1) {
      found.push(`${where}: a name in a table is broken: ${code.textContent}`);
    }
  }
  for (const image of page.querySelectorAll(".md-content img")) {
    image.loading = "eager";
    await image.decode().catch(() => found.push(`${where}: an image does not load: ${image.src}`));
  }
  if (width === SETTINGS.widths[0]) {
    contrasts(path, page, view);
    for (const link of page.querySelectorAll("a[href]")) {
      if (link.href.startsWith(location.origin)) links.set(link.href, path);
    }
  }
  frame.remove();
}

async function checkLinks(links) {
  const pages = new Map();
  for (const [href, path] of links) {
    const [address, anchor] = href.split("#");
    if (!pages.has(address)) {
      const answer = await fetch(address);
      pages.set(address, answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null);
    }
    const page = pages.get(address);
    if (!page) found.push(`${path}: ${href} is a broken link`);
    else if (anchor && !page.getElementById(decodeURIComponent(anchor))) found.push(`${path}: ${href}: no such anchor`);
  }
}

async function checkSearch() {
  const frame = await load(`index.html?q=${SETTINGS.words}`, SETTINGS.widths[0]);
  for (let round = 0; round < 100; round += 1) {
    if (frame.contentDocument.querySelector(".md-search-result__item a")) return frame.remove();
    await pause(200);
  }
  found.push(`the search finds nothing for ${SETTINGS.words}`);
}

async function checkMissing(links) {
  const frame = await load("no/such/page.html", SETTINGS.widths[0]);
  const text = frame.contentDocument.querySelector(".md-content")?.textContent ?? "";
  if (!text.includes("404")) found.push("a wrong address does not show the site's page 404");
  if (!frame.contentDocument.querySelector(".md-content a[href]")) found.push("404.html has no link in its text");
  for (const link of frame.contentDocument.querySelectorAll("a[href]")) {
    if (link.href.startsWith(SETTINGS.site)) links.set(link.href.replace(SETTINGS.site, location.origin + SETTINGS.base), "404.html");
    if (link.href.startsWith(location.origin)) links.set(link.href, "404.html");
  }
  frame.remove();
}

addEventListener("load", async () => {
  const links = new Map();
  try {
    for (const path of SETTINGS.pages) for (const width of SETTINGS.widths) await check(path, width, links);
    await checkMissing(links);
    await checkLinks(links);
    await checkSearch();
    found.unshift(`checked ${SETTINGS.pages.length} pages and ${links.size} links`);
  } catch (error) {
    found.push(`the check failed: ${error.stack}`);
  }
  await fetch(`${SETTINGS.base}__report__`, { method: "POST", body: JSON.stringify(found) });
});
