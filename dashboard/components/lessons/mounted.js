// The lessons on a page of the app: which lesson and step is the address behind the #.

export default (component) => mount(component, (element) => new MountedLessons(element.querySelector(".ivl-root")));

class MountedLessons {
  constructor(root) {
    this.root = root;
    this.follow = () => {
      const place = placeOf(location.hash);
      if (place && location.hash !== this.written) this.lessons.open(place.lesson, place.step);
    };
  }

  show({ lessons, words, mayOpen }) {
    if (this.lessons) return;
    const place = placeOf(location.hash);
    const hidden = place?.hidden ?? [];
    this.lessons = new Lessons(this.root, { lessons, words, hidden, printable: false }); // around it stands the app
    this.root.addEventListener("lessons:place", ({ detail }) => {
      history.replaceState(history.state, "", hashOf(detail, hidden));
      this.written = location.hash;
    });
    globalThis.addEventListener("hashchange", this.follow);
    this.lessons.open(place?.lesson, place?.step);
    this.classroom = new Classroom(this.lessons, { mayOpen, code: new URLSearchParams(location.search).get("class") });
    this.classroom.ready.then((lesson) => lesson && !place && this.lessons.open(lesson));
  }

  close() {
    globalThis.removeEventListener("hashchange", this.follow);
    this.classroom?.close();
    this.lessons?.close();
  }
}
