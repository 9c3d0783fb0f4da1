// Places a canvas over an area ({left, top, width, height} in CSS pixels) at the screen's resolution.
export function fit(canvas, area) {
  const ratio = globalThis.devicePixelRatio || 1;
  const [width, height] = [Math.max(1, Math.round(area.width * ratio)), Math.max(1, Math.round(area.height * ratio))];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  Object.assign(canvas.style, { left: `${area.left}px`, top: `${area.top}px`, width: `${area.width}px`, height: `${area.height}px` });
  return { ratio, width, height };
}
