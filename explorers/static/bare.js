// An explorer on a page without Jupyter: a widget model that keeps its state and tells its listeners, and nothing else.

class BareModel {
  constructor(state) {
    this.state = structuredClone(state);
    this.listeners = {};
    this.saves = 0;
  }

  get(name) {
    return this.state[name];
  }

  set(name, value) {
    if (Object.is(this.state[name], value)) return;
    this.state[name] = value;
    (this.listeners[`change:${name}`] ?? []).forEach((listener) => listener());
  }

  on(event, listener) {
    (this.listeners[event] ??= []).push(listener);
  }

  off(event, listener) {
    this.listeners[event] = (this.listeners[event] ?? []).filter((known) => known !== listener);
  }

  save_changes() {
    this.saves += 1;
    if (this.orphan) throw new Error("no kernel");
  }
}

async function show(state, place, { orphan = false } = {}) {
  const address = URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" }));
  const style = document.head.appendChild(document.createElement("style"));
  style.textContent = state._css;
  const model = new BareModel(state);
  model.orphan = orphan;
  const widget = await import(address);
  const close = widget.default.render({ model, el: place });
  return { model, close };
}
