// The figures beside a picture: a headline, a lamp in words, a table that is also the picture's legend, and a sentence read aloud.

const SPEAK_AFTER = 400; // ms of rest before a change is announced, so that a moving slider is not

class Report {
  constructor() {
    this.headline = element("p", { class: "psi-headline" });
    this.detail = element("p", { class: "psi-detail" });
    this.lamp = element("p", { class: "psi-lamp" });
    this.body = element("tbody");
    this.head = element("tr");
    this.aloud = element("output", { class: "psi-aloud", "aria-live": "polite" });
    const table = element("table", {}, element("thead", {}, this.head), this.body);
    this.root = element("div", { class: "psi-report" }, this.headline, this.detail, this.lamp, table, this.aloud);
  }

  // { headline, detail, lamp: { good, text } or null, head: texts, rows: [{ colour, cells, chosen }], sentence }
  show({ headline, detail, lamp, head, rows, sentence }) {
    put(this.headline, headline);
    put(this.detail, detail);
    this.lamp.hidden = !lamp;
    if (lamp) {
      this.lamp.dataset.good = lamp.good;
      put(this.lamp, lamp.text);
    }
    fill(this.head, head.length, (i) => element("th", { scope: "col" }));
    head.forEach((text, i) => put(this.head.children[i], text));
    fill(this.body, rows.length, (i) => legendRow(rows[i]));
    rows.forEach((row, i) => showRow(this.body.children[i], row));
    this.speak(sentence);
  }

  speak(sentence) {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => put(this.aloud, sentence), SPEAK_AFTER);
  }
}

function legendRow({ colour, cells }) {
  const swatch = element("span", { class: "psi-swatch", "aria-hidden": "true" });
  if (colour) swatch.style.background = colour;
  const name = element("th", { scope: "row" }, ...(colour ? [swatch] : []), element("span"));
  return element("tr", {}, name, ...cells.slice(1).map(() => element("td")));
}

function showRow(row, { cells, chosen }) {
  row.classList.toggle("psi-chosen", Boolean(chosen));
  put(row.querySelector("th > span:last-child"), cells[0]);
  cells.slice(1).forEach((text, i) => put(row.children[i + 1], text));
}

function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function fill(parent, length, make) {
  while (parent.children.length > length) parent.lastChild.remove();
  while (parent.children.length < length) parent.append(make(parent.children.length));
}
