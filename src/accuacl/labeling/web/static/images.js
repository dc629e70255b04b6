// Images are loaded before they are needed, and nobody can answer for one that has not been on the screen.
const loaded = new Map(); // item: img

// The image of a pick, loading or loaded; `img.ready` is resolved when it is decoded.
export function imageOf(pick) {
  let img = loaded.get(pick.item);
  if (!img) {
    img = new Image();
    img.alt = `Example ${pick.rank + 1} of ${pick.of}`;
    img.draggable = false;
    img.src = pick.image;
    img.ready = img.decode();
    img.ready.catch(() => {}); // it is said when the image is shown
    loaded.set(pick.item, img);
  }
  return img;
}

// Load what comes next, and let go of everything else.
export function loadAhead(pick, ahead) {
  const wanted = [pick, ...ahead].filter((one) => one?.kind === "image");
  const items = new Set(wanted.map((one) => one.item));
  for (const item of [...loaded.keys()]) if (!items.has(item)) loaded.delete(item);
  for (const one of wanted) imageOf(one);
}

export function forget(pick) {
  loaded.delete(pick.item);
}

// Resolved when what is in the page now has been painted: after the frame that shows it. Hidden pages have no frames.
export const painted = () =>
  new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())));
