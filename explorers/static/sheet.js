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

// A line that the picture should stay under, named in the margin to its right.
function drawLimit(sheet, box, at, label, figure) {
  sheet.draw("line", "limit", { x1: box.left, x2: box.right, y1: at, y2: at, class: "psi-limit" });
  sheet.draw("text", "limit label", { x: box.right + 6, y: at - 2, class: "psi-tick" }, label);
  sheet.draw("text", "limit figure", { x: box.right + 6, y: at + 12, class: "psi-tick psi-bold" }, figure);
}
