// While a slider is held, its value is sent again and again. The slider sends at the end of a drag, so each time the drag is ended
// and begun anew where the thumb is; the visitor's next move continues from there.

const LOOK_MS = 100;
const LONGEST_MS = 600; // after which the page's work for the last value is interrupted

export default function ({ data }) {
  const app = document.querySelector(".stApp");
  let pointer = null;
  let sent = null; // the value, and when
  const noted = (event) => {
    if (event.isTrusted) pointer = event;
  };
  const look = () => {
    const thumb = document.querySelector(`.st-key-${data.container} .stSlider [data-dragging]`);
    if (!thumb || !pointer) return;
    const { value } = thumb.querySelector("input");
    const idle = app.dataset.testScriptState === "notRunning" || performance.now() - (sent?.at ?? 0) > LONGEST_MS;
    if (!idle || value === sent?.value) return;
    sent = { value, at: performance.now() };
    const { x, y, width, height } = thumb.getBoundingClientRect();
    const { pointerId, pointerType } = pointer;
    const place = { clientX: x + width / 2, clientY: y + height / 2, pointerId, pointerType, bubbles: true, cancelable: true };
    for (const kind of ["pointerup", "pointerdown"]) thumb.dispatchEvent(new PointerEvent(kind, place));
  };
  window.addEventListener("pointermove", noted, true);
  const timer = setInterval(look, LOOK_MS);
  return () => {
    clearInterval(timer);
    window.removeEventListener("pointermove", noted, true);
  };
}
