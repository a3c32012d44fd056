// The part of the grid that all maps show, in cells. Maps have the shape of
// the whole grid, so one number says how far they are zoomed in.
export class View {
  constructor(rows, cols) {
    Object.assign(this, { rows, cols, zoom: 1, left: 0, top: 0 });
  }

  get width() { return this.cols / this.zoom; }

  get height() { return this.rows / this.zoom; }

  // At the closest the view is eight cells wide or high.
  get closest() { return Math.max(1, Math.min(this.rows, this.cols) / 8); }

  // Zooms by a factor around a place, given as shares of the view.
  by(factor, x = 0.5, y = 0.5) {
    const col = this.left + x * this.width, row = this.top + y * this.height;
    this.zoom = Math.min(this.closest, Math.max(1, this.zoom * factor));
    this.left = col - x * this.width;
    this.top = row - y * this.height;
    this.keepInside();
  }

  // Moves by shares of the view.
  shift(x, y) {
    this.left += x * this.width;
    this.top += y * this.height;
    this.keepInside();
  }

  whole() {
    this.zoom = 1;
    this.keepInside();
  }

  // Moves so that a cell is in view.
  show(row, col) {
    const margin = Math.min(2, this.width / 4, this.height / 4);
    this.left = Math.min(col - margin, Math.max(this.left, col + 1 + margin - this.width));
    this.top = Math.min(row - margin, Math.max(this.top, row + 1 + margin - this.height));
    this.keepInside();
  }

  // The cell at shares of the view.
  cell(x, y) {
    const bound = (v, n) => Math.min(n - 1, Math.max(0, Math.floor(v)));
    return { row: bound(this.top + y * this.height, this.rows), col: bound(this.left + x * this.width, this.cols) };
  }

  keepInside() {
    this.left = Math.min(this.cols - this.width, Math.max(0, this.left));
    this.top = Math.min(this.rows - this.height, Math.max(0, this.top));
  }
}
