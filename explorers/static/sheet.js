// A picture that is repainted in place: the same key keeps the same SVG element, so nothing flickers and nothing piles up.

const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

class Sheet {
  constructor(title, id) {
    this.root = document.createElementNS(SVG, "svg");
    this.root.setAttribute("role", "img");
    this.root.setAttribute("aria-labelledby", `${id}-title`);
    this.root.setAttribute("aria-describedby", `${id}-desc`);
    this.title = this.root.appendChild(document.createElementNS(SVG, "title"));
    this.desc = this.root.appendChild(document.createElementNS(SVG, "desc"));
    this.title.id = `${id}-title`;
    this.desc.id = `${id}-desc`;
    this.title.textContent = title;
    this.kept = new Map();
  }

  begin(width, height, description) {
    this.used = new Set();
    set(this.root, { viewBox: `0 0 ${width} ${height}`, width, height });
    if (this.desc.textContent !== description) this.desc.textContent = description;
  }

  end() {
    for (const [key, node] of this.kept) {
      if (!this.used.has(key)) {
        node.remove();
        this.kept.delete(key);
      }
    }
  }

  draw(tag, key, attributes, text) {
    let node = this.kept.get(key);
    if (!node) {
      node = document.createElementNS(SVG, tag);
      this.kept.set(key, node);
      this.root.append(node);
    }
    this.used.add(key);
    set(node, attributes);
    if (text !== undefined && node.textContent !== text) node.textContent = text;
    return node;
  }
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    const text = typeof value === "number" ? String(Math.round(value * 100) / 100) : value;
    if (node.getAttribute(name) !== text) node.setAttribute(name, text);
  }
}

// The ends of an axis from 0 to at least `top`, and the step of its ticks, in round figures.
function roundAxis(top, ticks = 5) {
  const rough = top / ticks;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999) * power;
  return { step, top: Math.ceil(top / step - 0.0001) * step };
}

// How wide a text is, a little too much rather than too little: to measure it the browser would have to lay out the page.
const LETTERS = [[/[ .,:;/|'()fijlrtI]/g, 0.38], [/[mwMW%]/g, 0.98], [/[A-Z]/g, 0.73], [/./g, 0.64]]; // of the size of the font

function widthOf(text, { size = 12, bold = false } = {}) {
  let [wide, rest] = [0, text];
  for (const [kind, share] of LETTERS) {
    const others = rest.replace(kind, "");
    wide += share * (rest.length - others.length);
    rest = others;
  }
  return wide * size * (bold ? 1.1 : 1);
}

// How figures in a picture of this width look, as the style sheet has it.
const figureLook = (width, bold) => ({ size: width <= 480 ? 12 : 13, bold });

const widest = (texts, look) => Math.max(...texts.map((text) => widthOf(text, look)));

// The stretch from `left` that is so wide, moved so far that it lies between `from` and `to`.
function stretch(left, wide, from, to) {
  const start = Math.max(from, Math.min(left, to - wide));
  return { left: start, middle: start + wide / 2, right: start + wide };
}

// What an axis is marked with from 0 on; the end counts in spite of rounding.
const ticksUpTo = (end, step) => Array.from({ length: Math.floor((end / step) * 1.0001) + 1 }, (_, i) => i * step);

const apart = (one, other) => !one || one.right + 4 <= other.left;

// Labels [x, text] in one line: all of them, or every other, third, … as there is room between `from` and `to`.
function drawLabels(sheet, key, labels, y, from, to) {
  const spans = labels.map(([x, text]) => ({ text, ...stretch(x - widthOf(text) / 2, widthOf(text), from, to) }));
  const some = (every) => spans.filter((_, i) => i % every === 0);
  let every = 1;
  while (!some(every).every((span, i, all) => apart(all[i - 1], span))) every += 1;
  some(every).forEach(({ middle, text }, i) => sheet.draw("text", `${key}${i}`, { x: middle, y, class: "psi-tick", "text-anchor": "middle" }, text));
}

// The line that each stretch stands in, from 0, where they cannot all stand in one.
function linesOf(spans) {
  const last = [];
  return spans.map((span) => {
    const line = last.findIndex((before) => apart(before, span));
    const taken = line < 0 ? last.length : line;
    last[taken] = span;
    return taken;
  });
}

const covers = (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

// The first of these places that covers none of those taken; it is taken then.
function firstFree(taken, places) {
  const free = places.find((place) => !taken.some((other) => covers(place, other))) ?? places[0];
  taken.push(free);
  return free;
}

const LIMIT_ROOM = 76; // pixels, enough for four figures and a unit; less would make the picture jump

const roomOfLimit = (label, figure) => Math.max(LIMIT_ROOM, 10 + widthOf(label), 10 + widthOf(figure, { bold: true }));

// A line that the picture should stay under, named in the margin to its right.
function drawLimit(sheet, box, at, label, figure) {
  sheet.draw("line", "limit", { x1: box.left, x2: box.right, y1: at, y2: at, class: "psi-limit" });
  sheet.draw("text", "limit label", { x: box.right + 6, y: at - 2, class: "psi-tick" }, label);
  sheet.draw("text", "limit figure", { x: box.right + 6, y: at + 12, class: "psi-tick psi-bold" }, figure);
}
