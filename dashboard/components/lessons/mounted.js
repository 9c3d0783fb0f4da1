// The lessons on a page of the app. The address after the # holds the lesson and step.

export default (component) => mount(component, (element) => new MountedLessons(element.querySelector(".ivl-root")));

class MountedLessons {
  constructor(root) {
    this.root = root;
    this.onHashChange = () => {
      const place = placeOf(location.hash);
      if (place && location.hash !== this.writtenHash) this.lessons.open(place.lesson, place.step);
    };
  }

  show({ lessons, words, mayOpen }) {
    if (this.lessons) return;
    const place = placeOf(location.hash);
    const hidden = place?.hidden ?? [];
    this.lessons = new Lessons(this.root, { lessons, words, hidden, printable: false }); // printing would include the app around it
    this.root.addEventListener("lessons:place", ({ detail }) => {
      history.replaceState(history.state, "", hashOf(detail, hidden));
      this.writtenHash = location.hash;
    });
    globalThis.addEventListener("hashchange", this.onHashChange);
    this.lessons.open(place?.lesson ?? loadMember()?.lesson, place?.step);
    this.classroom = new Classroom(this.lessons, { mayOpen, code: new URLSearchParams(location.search).get("class") });
  }

  close() {
    globalThis.removeEventListener("hashchange", this.onHashChange);
    this.classroom?.close();
    this.lessons?.close();
  }
}
