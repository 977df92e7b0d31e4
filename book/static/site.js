// The parts of a page that live without a kernel: explorers, with an address for every state, and questions.

// --- explorers: bare.js keeps the settings that a kernel would keep ---------------------------------------------------------

const EXPLORER_HASH = /^#explorer-(\d+):(.*)$/;

function settingsOf(place) {
  const match = EXPLORER_HASH.exec(location.hash);
  if (!match || Number(match[1]) !== place) return {};
  return Object.fromEntries(new URLSearchParams(match[2]));
}

function addressOf(place, model, names) {
  const values = new URLSearchParams(names.map((name) => [name, JSON.stringify(model.get(name))]));
  return `#explorer-${place}:${values}`;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// A value from an address counts only where the control could stand at it.
function allowed(control, value) {
  if (control.kind === "choice") return control.options.some((option) => option.value === value);
  return typeof value === "number" && value >= (control.least ?? control.stops[0]) && value <= (control.most ?? Infinity);
}

async function mount(holder, place) {
  const state = JSON.parse(holder.querySelector("script").textContent);
  const asked = settingsOf(place);
  for (const control of state.spec.controls) {
    const value = parsed(asked[control.name]);
    if (value !== undefined && allowed(control, value)) state[control.name] = value;
  }
  holder.replaceChildren();
  holder.id = `explorer-${place}`;
  const { model } = await show(state, holder.appendChild(document.createElement("div")), { orphan: true });
  const link = holder.appendChild(document.createElement("button"));
  Object.assign(link, { type: "button", className: "psi-share", textContent: "Link to this state" });
  const names = state.spec.controls.map((control) => control.name);
  link.addEventListener("click", () => {
    history.replaceState(null, "", addressOf(place, model, names));
    link.textContent = "The page's address is the link";
    navigator.clipboard?.writeText(location.href).then(() => (link.textContent = "Copied"), () => {});
  });
  if (Object.keys(asked).length) holder.scrollIntoView();
  return { model, asked, links: JSON.parse(holder.dataset.links), name: holder.dataset.model };
}

// Explorers that share settings, as a dashboard's do: what moves in one moves in the others.
function join(mounted) {
  const models = Object.fromEntries(mounted.map(({ name, model }) => [name, model]));
  for (const { model, asked, links } of mounted) {
    for (const [own, other, theirs] of links) {
      const pass = () => models[other]?.set(theirs, model.get(own));
      model.on(`change:${own}`, pass);
      if (own in asked) pass();
    }
  }
}

// --- questions --------------------------------------------------------------------------------------------------------------

// FNV-1a, as book/forms.py computes it.
function digest(text) {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value.toString(16).padStart(8, "0");
}

// The finding on one part: { right, hint } or { blank } or { unread }.
function marked(exercise, name, key, answer) {
  if (!answer.length || answer[0].trim() === "") return { blank: true };
  if (key.type !== "number") {
    const found = digest(`${exercise}/${name}/${answer.slice().sort().join(",")}`);
    return { right: found === key.value, hint: key.mistakes.find(({ value }) => value === found)?.hint };
  }
  const written = read(answer[0], key.unit);
  if (Number.isNaN(written)) return { unread: true };
  const near = (stated, value) => stated === value || Math.abs(stated - value) <= key.within * Math.abs(value) * (1 + 1e-9);
  const alone = /^[\s\d.,_eE+-]+$/.test(answer[0]) && !near(written, key.value);
  const stated = alone ? written * key.alone : written;
  const close = (value) => near(stated, value);
  return { right: close(key.value), hint: close(key.value) ? undefined : key.mistakes.find(({ value }) => close(value))?.hint };
}

function tell(found, words, key) {
  if (found.blank) return `– ${words.blank}`;
  if (found.unread) return `? ${words.unread} ${key.example}`;
  return `${found.right ? "✓" : "✗"} ${found.right ? words.right : words.wrong}${found.hint ? ` → ${found.hint}` : ""}`;
}

function ask(form) {
  const { id, words, parts } = JSON.parse(form.querySelector("script").textContent);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    for (const field of form.querySelectorAll("fieldset")) {
      const key = parts[field.dataset.part];
      if (!key) continue;
      const inputs = [...field.querySelectorAll("input")];
      const answer = inputs.filter((input) => input.type === "text" || input.checked).map((input) => input.value);
      const found = marked(id, field.dataset.part, key, answer);
      const told = field.querySelector(".psi-told");
      told.textContent = tell(found, words, key);
      told.dataset.right = Boolean(found.right);
    }
  });
}

if (typeof document !== "undefined") {
  Promise.all([...document.querySelectorAll(".psi-mount")].map((holder, i) => mount(holder, i + 1))).then(join);
  document.querySelectorAll(".psi-form").forEach(ask);
}
