// The playground on a page of the app. The address after the # holds its state, so that a link restores the cloud.

export default (component) => mount(component, (element) => new Mounted(element.querySelector(".ivp-root")));

const ADDRESS_DELAY = 300; // milliseconds without a change before the address is updated: browsers limit the rate

class Mounted {
  constructor(root) {
    this.root = root;
    this.onHashChange = () => {
      if (this.writtenHash !== location.hash) this.playground.follow(location.hash);
    };
  }

  show({ words, state, measures }) {
    if (this.playground) return;
    this.playground = new Playground(this.root, { words, measures, start: state, state: { ...state, ...stateInLink(location.hash) } });
    this.playground.parts.numbers.mark(location.hash);
    globalThis.addEventListener("hashchange", this.onHashChange);
    this.root.addEventListener("playground:change", ({ detail }) => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.write(detail), ADDRESS_DELAY);
    });
  }

  write(state) {
    const link = toLink(state);
    history.replaceState(history.state, "", link ? `#${link}` : location.href.split("#")[0]);
    this.writtenHash = location.hash;
  }

  close() {
    clearTimeout(this.timer);
    globalThis.removeEventListener("hashchange", this.onHashChange);
    this.playground?.close();
  }
}

// The part of the state that the link sets; the page's initial state applies to the rest.
function stateInLink(hash) {
  const state = fromLink(hash);
  return Object.fromEntries(Object.entries(state).filter(([name]) => new RegExp(`[#&]${name}=`).test(hash)));
}
