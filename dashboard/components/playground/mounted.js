// The playground on a page of the app: its state is the address behind the #, so that a link restores the cloud.

export default (component) => mount(component, (element) => new Mounted(element.querySelector(".ivp-root")));

const REST = 300; // milliseconds of rest before the address follows: browsers limit how often it may change

class Mounted {
  constructor(root) {
    this.root = root;
    this.listen = () => {
      if (this.written !== location.hash) this.playground.set(fromLink(location.hash));
    };
  }

  show({ words, state, linked }) {
    if (this.playground) return;
    this.playground = new Playground(this.root, { words, start: state, state: linked ? { ...state, ...changedBy(location.hash) } : state });
    if (!linked) return;
    globalThis.addEventListener("hashchange", this.listen);
    this.root.addEventListener("playground:change", ({ detail }) => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.write(detail), REST);
    });
  }

  write(state) {
    const link = toLink(state);
    history.replaceState(history.state, "", link ? `#${link}` : location.href.split("#")[0]);
    this.written = location.hash;
  }

  close() {
    clearTimeout(this.timer);
    globalThis.removeEventListener("hashchange", this.listen);
    this.playground?.close();
  }
}

// Only what the link names, so that a page's own start holds for the rest.
function changedBy(hash) {
  const state = fromLink(hash);
  return Object.fromEntries(Object.entries(state).filter(([name]) => new RegExp(`[#&]${name}=`).test(hash)));
}
