// Moves the view of the maps and the probe: by mouse, by touch and by keys.

export function steer(stage, canvases, { scene, draw, say }) {
  const down = new Map(); // pointers that are pressed, by id, with their last place

  // Where an event is, as shares of the map under it.
  const place = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
  };

  const zoom = (factor, x, y) => {
    const { view, at } = scene();
    if (x === undefined && at) { // around the probe, where that is in view
      const px = (at.col + 0.5 - view.left) / view.width, py = (at.row + 0.5 - view.top) / view.height;
      if (px >= 0 && px <= 1 && py >= 0 && py <= 1) [x, y] = [px, py];
    }
    view.by(factor, x, y);
    settled();
  };

  // While everything is in view a finger on a map scrolls the page.
  const settled = () => {
    const { view } = scene();
    stage.dataset.zoom = view.zoom.toFixed(2);
    stage.classList.toggle("close", view.zoom > 1);
    draw();
  };

  const move = (event) => {
    if (!scene()) return;
    const now = place(event);
    const last = down.get(event.pointerId);
    if (!last) {
      if (event.pointerType === "mouse") say(scene().view.cell(now.x, now.y));
      return;
    }
    if (down.size === 2) {
      const other = [...down].find(([id]) => id !== event.pointerId)[1];
      const apart = (p) => Math.hypot(p.x - other.x, p.y - other.y);
      scene().view.by(apart(now) / Math.max(apart(last), 1e-3), (now.x + other.x) / 2, (now.y + other.y) / 2);
    } else {
      scene().view.shift(last.x - now.x, last.y - now.y);
    }
    down.set(event.pointerId, now);
    settled();
  };

  const press = (event) => {
    if (!scene() || event.button !== 0) return;
    const now = place(event);
    event.currentTarget.setPointerCapture(event.pointerId);
    down.set(event.pointerId, now);
    say(scene().view.cell(now.x, now.y));
  };

  const release = (event) => down.delete(event.pointerId);

  // The wheel belongs to the page until the maps were clicked or zoomed.
  const wheel = (event) => {
    if (!scene()) return;
    const meant = event.ctrlKey || scene().view.zoom > 1 || document.activeElement === stage;
    if (!meant || (event.deltaY > 0 && scene().view.zoom === 1)) return;
    event.preventDefault();
    const { x, y } = place(event);
    zoom(Math.exp(-Math.max(-100, Math.min(100, event.deltaY)) / 250), x, y);
  };

  for (const canvas of canvases) {
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerdown", press);
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("wheel", wheel, { passive: false });
    canvas.addEventListener("dblclick", (event) => {
      const { x, y } = place(event);
      if (scene()) zoom(2, x, y);
    });
  }

  const arrows = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  stage.addEventListener("keydown", (event) => {
    if (!scene() || event.ctrlKey || event.altKey || event.metaKey) return;
    const { view, map } = scene();
    if (arrows[event.key]) {
      const at = scene().at ?? view.cell(0.5, 0.5);
      const [down, right] = arrows[event.key].map((d) => d * (event.shiftKey ? 10 : 1));
      const next = {
        row: Math.min(map.rows - 1, Math.max(0, at.row + down)), col: Math.min(map.cols - 1, Math.max(0, at.col + right)),
      };
      view.show(next.row, next.col);
      say(next);
    } else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0") {
      view.whole();
      settled();
    } else return;
    event.preventDefault();
  });

  document.getElementById("zoom-in").addEventListener("click", () => scene() && zoom(1.5));
  document.getElementById("zoom-out").addEventListener("click", () => scene() && zoom(1 / 1.5));
  document.getElementById("zoom-all").addEventListener("click", () => {
    if (!scene()) return;
    scene().view.whole();
    settled();
  });
}
