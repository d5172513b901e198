// The timeline of a call: a canvas that is panned and zoomed, and a line of text that says what is
// under the pointer or chosen by the keyboard. Everything that comes out of a trace is drawn as
// text on the canvas or set as textContent; nothing here makes markup.
"use strict";

(() => {
  const AXIS = 24;
  const GUTTER = 104;
  const NARROW = 640;
  const SHORTEST_US = 100;
  const SEEN_BLOCK_US = 10000;
  const COLUMNS = ["samples", "lost", "rate", "segment", "source", "fate"];

  // --- Data ------------------------------------------------------------------------------------

  function inflated(id) {
    const text = document.getElementById(id).textContent;
    const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream);
  }

  // Reads int32 columns one after the other, in the order in which the renderer packed them.
  class Columns {
    constructor(numbers) {
      this.numbers = numbers;
      this.at = 0;
    }

    plain(rows) {
      this.at += rows;
      return this.numbers.subarray(this.at - rows, this.at);
    }

    // Seconds and microseconds, to microseconds.
    time(rows) {
      const seconds = this.plain(rows);
      const rest = this.plain(rows);
      return Float64Array.from(seconds, (s, i) => s * 1e6 + rest[i]);
    }

    summed(values) {
      for (let i = 1; i < values.length; i++) values[i] += values[i - 1];
      return values;
    }

    frames({ rows, within }) {
      const from = this.summed(this.time(rows));
      const to = this.time(rows).map((length, i) => from[i] + length);
      const start = this.summed(Float64Array.from(this.plain(rows)));
      const level = { rows, within, from, to, start };
      for (const name of COLUMNS) level[name] = this.plain(rows);
      level.reach = to.slice();
      for (let i = 1; i < rows; i++) level.reach[i] = Math.max(level.reach[i], level.reach[i - 1]);
      return level;
    }

    depth({ rows, within }) {
      return { rows, within, from: this.summed(this.time(rows)), samples: this.plain(rows) };
    }
  }

  // First row whose value is at least x, in a sorted column.
  function firstFrom(column, x) {
    let low = 0;
    let high = column.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (column[middle] < x) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function levelFor(levels, usPerPixel) {
    let chosen = levels[0];
    for (const level of levels) if (level.within <= usPerPixel) chosen = level;
    return chosen;
  }

  // --- Words -----------------------------------------------------------------------------------

  const number = (value, digits) => value.toFixed(digits);

  function instant(us) {
    const ms = us / 1000;
    if (Math.abs(ms) < 60000) return `${number(ms, 1)} ms`;
    const minutes = Math.floor(ms / 60000);
    const seconds = number((ms - minutes * 60000) / 1000, 3).padStart(6, "0");
    return `${minutes}:${seconds} (${number(ms, 1)} ms)`;
  }

  function amount(samples, rate) {
    if (!rate) return `${samples} samples`;
    return `${number((samples * 1000) / rate, 1)} ms (${samples} samples)`;
  }

  const WHAT = {
    captured: "frame captured",
    pushed: "frame pushed",
    sent: "run sent",
    silence: "silence inserted by the source",
  };
  const LOST = { captured: "dropped, never pushed", pushed: "cleared, never sent" };

  function describe(call, id, level, row) {
    const parts = [
      `${WHAT[id]}: ${amount(level.samples[row], level.rate[row])}`,
      `${instant(level.from[row])} to ${instant(level.to[row])}`,
    ];
    const segment = level.segment[row];
    if (segment > 0) parts.push(`segment ${segment}`);
    const { speech } = call.segments[segment - 1] || {};
    if (speech) parts.push(speech);
    if (level.source[row] > 1) parts.push(`source ${level.source[row]}`);
    if (level.start[row] >= 0) {
      parts.push(`positions ${level.start[row]} to ${level.start[row] + level.samples[row]}`);
    }
    if (level.lost[row] > 0) {
      parts.push(`${amount(level.lost[row], level.rate[row])} of it ${LOST[id]}`);
    }
    const fate = call.fates[level.fate[row]];
    if (fate === "refused") parts.push("refused by the source");
    if (fate === "inherited") parts.push("inside when the probe came");
    return parts.join(", ");
  }

  // --- Lanes -----------------------------------------------------------------------------------
  // A lane answers: how many things, what is the nth, which one is at a time.

  class Sparse {
    constructor(id, name, height, items) {
      Object.assign(this, { id, name, items });
      this.from = items.map((item) => item.from);
      this.longest = items.reduce((most, item) => Math.max(most, item.to - item.from), 0);
      this.rowHeight = height;
      this.rows = height ? this.place() : 1;
      this.height = height * this.rows;
    }

    // What overlaps lies below each other, in up to three rows; points have a row of their own.
    place() {
      const ends = [];
      for (const item of this.items) {
        if (item.shape === "point") continue;
        let row = ends.findIndex((end) => end <= item.from);
        if (row < 0) row = Math.min(ends.length, 2);
        ends[row] = item.to;
        item.row = row;
      }
      const points = this.items.filter((item) => item.shape === "point");
      for (const item of points) item.row = ends.length;
      return Math.max(ends.length + (points.length ? 1 : 0), 1);
    }

    get length() {
      return this.items.length;
    }

    thing(row) {
      return this.items[row];
    }

    *between(low, high) {
      for (let i = firstFrom(this.from, low - this.longest); i < this.items.length; i++) {
        if (this.items[i].from > high) return;
        if (this.items[i].to >= low) yield i;
      }
    }

    // The nearest one, in the row that was pointed at if there are several.
    hit(us, slack, row = null) {
      let best = -1;
      let distance = Infinity;
      for (const i of this.between(us - slack, us + slack)) {
        const item = this.items[i];
        if (row !== null && this.rows > 1 && item.row !== row) continue;
        const off = Math.max(item.from - us, us - item.to, 0) * 1e6 + (item.to - item.from);
        if (off < distance) [best, distance] = [i, off];
      }
      return best;
    }
  }

  class Dense {
    constructor(id, name, height, call, levels) {
      Object.assign(this, { id, name, height, call, levels });
      this.from = levels[0].from;
    }

    get length() {
      return this.levels[0].rows;
    }

    thing(row) {
      const [level] = this.levels;
      return {
        from: level.from[row],
        to: level.to[row],
        text: describe(this.call, this.id, level, row),
      };
    }

    hit(us, slack) {
      const { from, to, reach, rows } = this.levels[0];
      let best = -1;
      let distance = Infinity;
      for (let i = firstFrom(reach, us - slack); i < rows && from[i] <= us + slack; i++) {
        const off = Math.max(from[i] - us, us - to[i], 0) * 1e6 + (to[i] - from[i]);
        if (off <= distance) [best, distance] = [i, off];
      }
      return best;
    }
  }

  class Queue {
    constructor(name, height, depths) {
      Object.assign(this, { id: "depth", name, height, depths });
      this.from = depths.length ? depths[0].levels[0].from : new Float64Array(0);
      this.most = 1;
      for (const { levels, rate, queue_ms: capacity } of depths) {
        let most = 0;
        for (const samples of levels[0].samples) most = Math.max(most, samples);
        this.most = Math.max(this.most, (most * 1000) / rate, capacity || 0);
      }
    }

    get length() {
      return this.from.length;
    }

    thing(row) {
      const us = this.from[row];
      return { from: us, to: us, text: this.text(us) };
    }

    text(us) {
      const told = this.depths.map(({ source, rate, levels: [level] }) => {
        const next = firstFrom(level.from, us);
        let samples = 0;
        if (next < level.rows && level.from[next] === us) {
          let last = next;
          while (last + 1 < level.rows && level.from[last + 1] === us) last++;
          samples = level.samples[last];
        } else if (next > 0 && next < level.rows) {
          const share = (us - level.from[next - 1]) / (level.from[next] - level.from[next - 1]);
          const step = level.samples[next] - level.samples[next - 1];
          samples = Math.round(level.samples[next - 1] + share * step);
        } else if (next >= level.rows && level.rows) {
          samples = level.samples[level.rows - 1];
        }
        const which = this.depths.length > 1 ? ` of source ${source}` : "";
        return `${amount(samples, rate)} in the queue${which}`;
      });
      return `${told.join(", ")} at ${instant(us)}`;
    }

    hit(us) {
      return Math.min(firstFrom(this.from, us), this.length - 1);
    }
  }

  // --- The picture -----------------------------------------------------------------------------

  class Picture {
    constructor(root, call, numbers) {
      this.root = root;
      this.call = call;
      this.canvas = root.querySelector("canvas.lanes");
      this.overview = root.querySelector("canvas.overview");
      this.readout = root.querySelector("output");
      this.tip = root.querySelector(".tip");
      this.lanes = this.build(new Columns(numbers));
      const margin = Math.max(call.duration * 0.01, 1000);
      this.whole = [-margin, call.duration + margin];
      this.view = call.view ? this.bounded(...call.view) : this.whole;
      this.chosen = null;
      this.listen();
      this.resize();
      this.root.dataset.ready = "yes";
    }

    build(columns) {
      const { call } = this;
      const sparse = (id, name, height) =>
        call.lanes[id] ? new Sparse(id, name, height, call.lanes[id]) : null;
      const dense = (id, name, height) =>
        new Dense(id, name, height, call, call.dense[id].map((level) => columns.frames(level)));
      // In the order in which the renderer packed them.
      const captured = dense("captured", "captured", 24);
      const pushed = dense("pushed", "pushed", 24);
      const sent = dense("sent", "sent", 38);
      const silence = dense("silence", "silence", 0);
      for (const depth of call.depth) {
        depth.levels = depth.levels.map((level) => columns.depth(level));
      }
      const queue = new Queue("source queue", 54, call.depth);
      this.leaks = sparse("leaks", "leaked", 0);
      this.silence = silence;
      this.sent = sent;
      this.marks = sparse("marks", "marks", 0);
      this.marks.height = 46;
      return [
        this.marks,
        sparse("caller", "caller", 22),
        sparse("agent", "agent", 20),
        sparse("model", "model", 20),
        captured,
        sparse("gate", "gate", 20),
        pushed,
        queue,
        sent,
        this.leaks,
        silence,
        sparse("lost", "lost", 22),
        sparse("claimed", "claimed", 20),
        sparse("stalls", "loop stalled", 16),
      ].filter((lane) => lane !== null);
    }

    // --- Geometry

    resize() {
      this.patterns = {};
      this.colours = {};
      const width = this.canvas.parentElement.clientWidth;
      this.narrow = width < NARROW;
      this.left = this.narrow ? 6 : GUTTER;
      this.right = width - 10;
      let y = AXIS;
      for (const lane of this.lanes) {
        if (!lane.height) continue;
        if (this.narrow) y += 14;
        lane.y = y;
        y += lane.height + (this.narrow ? 3 : 7);
      }
      for (const lane of [this.leaks, this.silence]) {
        if (lane) [lane.y, lane.height] = [this.sent.y, 0];
      }
      this.fit(this.canvas, width, y + 2);
      this.fit(this.overview, width, 30);
      this.paint();
    }

    fit(canvas, width, height) {
      const ratio = Math.max(window.devicePixelRatio || 1, this.printing ? 3 : 1);
      this.ratio = ratio;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }

    x(us) {
      const [from, to] = this.view;
      return this.left + ((us - from) / (to - from)) * (this.right - this.left);
    }

    us(x) {
      const [from, to] = this.view;
      return from + ((x - this.left) / (this.right - this.left)) * (to - from);
    }

    get usPerPixel() {
      return (this.view[1] - this.view[0]) / (this.right - this.left);
    }

    bounded(from, to) {
      const [first, last] = this.whole;
      const length = Math.min(Math.max(to - from, SHORTEST_US), last - first);
      const start = Math.min(Math.max((from + to - length) / 2, first), last - length);
      return [start, start + length];
    }

    show(from, to) {
      this.view = this.bounded(from, to);
      this.paint();
    }

    pan(share) {
      const step = (this.view[1] - this.view[0]) * share;
      this.show(this.view[0] + step, this.view[1] + step);
    }

    zoom(factor, around = (this.view[0] + this.view[1]) / 2) {
      const [from, to] = this.view;
      const length = Math.min(Math.max((to - from) * factor, SHORTEST_US), this.whole[1] - this.whole[0]);
      const share = (around - from) / (to - from);
      this.show(around - share * length, around + (1 - share) * length);
    }

    // --- Choosing

    choose(lane, row, follow = true) {
      if (!lane || row < 0 || row >= lane.length) return;
      const thing = lane.thing(row);
      this.chosen = { lane, row, from: thing.from, to: thing.to };
      this.readout.textContent = `${lane.name}: ${thing.text}`;
      if (follow && (thing.to < this.view[0] || thing.from > this.view[1])) {
        const middle = (thing.from + thing.to) / 2;
        const half = (this.view[1] - this.view[0]) / 2;
        this.show(middle - half, middle + half);
      } else {
        this.request();
      }
    }

    leave() {
      this.chosen = null;
      this.readout.textContent = this.readout.dataset.hint;
      this.request();
    }

    step(by) {
      const lane = this.chosen ? this.chosen.lane : this.marks;
      if (!lane.length) return;
      if (this.chosen) {
        const row = Math.min(Math.max(this.chosen.row + by, 0), lane.length - 1);
        this.choose(lane, row);
      } else {
        this.choose(lane, Math.min(firstFrom(lane.from, this.view[0]), lane.length - 1));
      }
    }

    stepLane(by) {
      const lanes = this.lanes.filter((lane) => lane.length);
      if (!lanes.length) return;
      const at = this.chosen ? lanes.indexOf(this.chosen.lane) : by > 0 ? -1 : lanes.length;
      const lane = lanes[Math.min(Math.max(at + by, 0), lanes.length - 1)];
      const here = this.chosen ? Math.max(this.chosen.from, this.view[0]) : this.view[0];
      this.choose(lane, Math.min(firstFrom(lane.from, here), lane.length - 1));
    }

    stepLeak(by) {
      if (!this.leaks) return;
      const middle = (this.view[0] + this.view[1]) / 2;
      const inLeaks = this.chosen && this.chosen.lane === this.leaks;
      let row = inLeaks ? this.chosen.row + by : firstFrom(this.leaks.from, middle) - (by < 0 ? 1 : 0);
      row = Math.min(Math.max(row, 0), this.leaks.length - 1);
      this.choose(this.leaks, row, false);
      this.closeUp(this.leaks.thing(row));
    }

    closeUp({ from, to }) {
      const room = Math.max((to - from) * 0.6, 3000);
      this.show(from - room, to + room);
    }

    goTo(from, to) {
      this.moment = [from, to];
      const room = Math.max((to - from) * 0.5, 150000);
      this.show(from - room, to + room);
    }

    under(x, y) {
      const us = this.us(x);
      const slack = 4 * this.usPerPixel;
      if (x < this.left - 4 || x > this.right + 4) return null;
      const lane = this.lanes.find((l) => l.height && y >= l.y && y <= l.y + l.height);
      if (!lane) return null;
      const shown = this.leaks && { sent: "sent", pushed: "pushed" }[lane.id];
      if (shown) {
        const row = this.leaks.hit(us, slack / 2);
        if (row >= 0 && this.leaks.items[row].lane === shown) return { lane: this.leaks, row };
      }
      const inLane = lane.rowHeight ? Math.floor((y - lane.y) / lane.rowHeight) : null;
      for (const candidate of lane === this.sent ? [lane, this.silence] : [lane]) {
        const row = candidate.hit(us, slack, inLane);
        if (row >= 0) return { lane: candidate, row, us };
      }
      return null;
    }

    // --- Listening

    listen() {
      const { canvas, root } = this;
      const frame = canvas.parentElement;
      frame.addEventListener("keydown", (event) => this.key(event));
      canvas.addEventListener("pointerdown", (event) => this.press(event));
      canvas.addEventListener("pointermove", (event) => this.move(event));
      for (const name of ["pointerup", "pointercancel"]) {
        canvas.addEventListener(name, (event) => this.release(event));
      }
      canvas.addEventListener("pointerleave", () => this.hideTip());
      canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.us(event.offsetX)));
      canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      this.overview.addEventListener("pointerdown", (event) => this.jump(event));
      this.overview.addEventListener("pointermove", (event) => {
        if (event.buttons) this.jump(event);
      });
      for (const button of root.querySelectorAll("[data-do]")) {
        button.addEventListener("click", () => this.act(button.dataset.do));
      }
      new ResizeObserver(() => this.resize()).observe(frame);
      for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) {
        matchMedia(query).addEventListener("change", () => this.resize());
      }
      matchMedia("print").addEventListener("change", (event) => {
        this.printing = event.matches;
        this.resize();
      });
      this.pointers = new Map();
    }

    act(what) {
      const acts = {
        whole: () => this.show(...this.whole),
        in: () => this.zoom(0.5),
        out: () => this.zoom(2),
        left: () => this.pan(-0.25),
        right: () => this.pan(0.25),
        before: () => this.stepLeak(-1),
        after: () => this.stepLeak(1),
      };
      acts[what]();
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const middle = this.chosen ? (this.chosen.from + this.chosen.to) / 2 : undefined;
      const length = this.view[1] - this.view[0];
      const keys = {
        ArrowLeft: () => (event.shiftKey ? this.step(-1) : this.pan(-0.1)),
        ArrowRight: () => (event.shiftKey ? this.step(1) : this.pan(0.1)),
        ArrowUp: () => this.stepLane(-1),
        ArrowDown: () => this.stepLane(1),
        ",": () => this.step(-1),
        ".": () => this.step(1),
        "+": () => this.zoom(0.5, middle),
        "=": () => this.zoom(0.5, middle),
        "-": () => this.zoom(2, middle),
        _: () => this.zoom(2, middle),
        0: () => this.show(...this.whole),
        Home: () => this.show(this.whole[0], this.whole[0] + length),
        End: () => this.show(this.whole[1] - length, this.whole[1]),
        n: () => this.stepLeak(1),
        p: () => this.stepLeak(-1),
        Enter: () => this.chosen && this.closeUp(this.chosen),
        Escape: () => this.leave(),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    }

    press(event) {
      this.canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, event.offsetX);
      this.pressed = { x: event.offsetX, y: event.offsetY, moved: false };
      this.hideTip();
    }

    move(event) {
      const before = this.pointers.get(event.pointerId);
      if (before === undefined) {
        this.hover(event);
        return;
      }
      if (this.pointers.size === 2) {
        const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId);
        const was = Math.abs(before - other[1]);
        const is = Math.abs(event.offsetX - other[1]);
        if (was > 4 && is > 4) this.zoom(was / is, this.us((event.offsetX + other[1]) / 2));
      } else {
        if (Math.abs(event.offsetX - this.pressed.x) > 3) this.pressed.moved = true;
        const step = (before - event.offsetX) * this.usPerPixel;
        this.view = this.bounded(this.view[0] + step, this.view[1] + step);
        this.request();
      }
      this.pointers.set(event.pointerId, event.offsetX);
    }

    release(event) {
      const alone = this.pointers.size === 1;
      this.pointers.delete(event.pointerId);
      if (!alone || this.pressed.moved || event.type === "pointercancel") return;
      const found = this.under(event.offsetX, event.offsetY);
      if (found) this.choose(found.lane, found.row, false);
      else this.leave();
    }

    wheel(event) {
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      const focused = this.canvas.parentElement.contains(document.activeElement);
      if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
        event.preventDefault();
        const step = sideways * this.usPerPixel;
        this.view = this.bounded(this.view[0] + step, this.view[1] + step);
        this.request();
      } else if (event.ctrlKey || event.metaKey || focused) {
        event.preventDefault();
        this.zoom(Math.exp(Math.max(Math.min(event.deltaY, 200), -200) / 300), this.us(event.offsetX));
      }
    }

    jump(event) {
      const [first, last] = this.whole;
      const share = (event.offsetX - this.left) / (this.right - this.left);
      const middle = first + share * (last - first);
      const half = (this.view[1] - this.view[0]) / 2;
      this.show(middle - half, middle + half);
    }

    hover(event) {
      const found = this.under(event.offsetX, event.offsetY);
      this.canvas.style.cursor = found ? "pointer" : "grab";
      if (!found) {
        this.hideTip();
        return;
      }
      const { lane, row, us } = found;
      this.tip.textContent = lane.id === "depth" ? lane.text(us) : lane.thing(row).text;
      this.tip.hidden = false;
      const room = this.canvas.clientWidth - this.tip.offsetWidth - 4;
      this.tip.style.left = `${Math.max(Math.min(event.offsetX + 14, room), 4)}px`;
      this.tip.style.top = `${event.offsetY + 18}px`;
    }

    hideTip() {
      this.tip.hidden = true;
    }

    // --- Painting

    request() {
      if (this.pending) return;
      this.pending = requestAnimationFrame(() => {
        this.pending = 0;
        this.paint();
      });
    }

    paint() {
      const g = (this.g = this.canvas.getContext("2d"));
      g.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
      this.bottom = Math.max(...this.lanes.map((lane) => (lane.height ? lane.y + lane.height : 0)));
      this.axis();
      for (const lane of this.lanes) if (lane.height) this.ground(lane);
      g.save();
      g.beginPath();
      g.rect(this.left, 0, this.right - this.left, this.bottom + 2);
      g.clip();
      this.lines();
      for (const lane of this.lanes) {
        if (lane instanceof Dense && lane.height) this.dense(lane);
        else if (lane instanceof Queue) this.queue(lane);
        else if (lane === this.marks) this.flags(lane);
        else if (lane.height) this.stretches(lane);
      }
      this.ring();
      g.restore();
      for (const lane of this.lanes) if (lane.height) this.title(lane);
      this.miniature();
      this.tell();
    }

    // What the page's own tests, and scripts, can read off without looking at pixels.
    tell() {
      const { dataset } = this.root;
      dataset.from = this.view[0];
      dataset.to = this.view[1];
      dataset.left = this.left;
      dataset.right = this.right;
      dataset.sentY = this.sent.y;
    }

    // What the style sheet calls by this name; asked once, until the look changes.
    colour(name) {
      if (!this.colours[name]) {
        this.colours[name] = getComputedStyle(this.root).getPropertyValue(`--${name}`).trim();
      }
      return this.colours[name];
    }

    font(size, weight = "") {
      this.g.font = `${weight} ${size}px ${this.colour("font")}`.trim();
    }

    hatch(name, colour, ground, slope = 1) {
      if (this.patterns[name]) return this.patterns[name];
      const { ratio } = this;
      const size = Math.round(7 * ratio);
      const tile = document.createElement("canvas");
      tile.width = tile.height = size;
      const t = tile.getContext("2d");
      if (ground) {
        t.fillStyle = ground;
        t.fillRect(0, 0, size, size);
      }
      t.strokeStyle = colour;
      t.lineWidth = 1.6 * ratio;
      t.beginPath();
      for (const shift of [-size, 0, size]) {
        t.moveTo(shift, slope > 0 ? size : 0);
        t.lineTo(shift + size, slope > 0 ? 0 : size);
      }
      t.stroke();
      const pattern = this.g.createPattern(tile, "repeat");
      pattern.setTransform(new DOMMatrix().scale(1 / ratio));
      this.patterns[name] = pattern;
      return pattern;
    }

    axis() {
      const { g } = this;
      const steps = [1, 2, 5];
      const wanted = this.usPerPixel * (this.narrow ? 70 : 95);
      let step = 10 ** Math.floor(Math.log10(wanted));
      step *= steps.find((s) => step * s >= wanted) || 10;
      if (step > 5e6) {
        const long = [1e7, 1.5e7, 3e7, 6e7, 1.2e8, 3e8, 6e8, 9e8, 1.8e9, 3.6e9];
        step = long.find((s) => s >= wanted) || step;
      }
      g.textBaseline = "middle";
      g.textAlign = "center";
      this.font(11);
      let written = -Infinity;
      for (let us = Math.ceil(this.view[0] / step) * step; us <= this.view[1]; us += step) {
        const x = Math.round(this.x(us)) + 0.5;
        g.strokeStyle = this.colour("grid");
        g.lineWidth = 1;
        g.beginPath();
        g.moveTo(x, AXIS - 5);
        g.lineTo(x, this.bottom + 1);
        g.stroke();
        const label = this.tick(us, step);
        const half = g.measureText(label).width / 2;
        const at = Math.min(Math.max(x, this.left + half), this.right - half);
        if (at - half < written + 6) continue;
        g.fillStyle = this.colour("dim");
        g.fillText(label, at, AXIS - 13);
        written = at + half;
      }
    }

    tick(us, step) {
      if (step >= 1e6 && this.whole[1] > 6e7) {
        const seconds = Math.round(us / 1e6);
        const sign = seconds < 0 ? "-" : "";
        const rest = String(Math.abs(seconds) % 60).padStart(2, "0");
        return `${sign}${Math.floor(Math.abs(seconds) / 60)}:${rest}`;
      }
      if (step >= 1e6) return `${Math.round(us / 1e6)} s`;
      const digits = Math.max(0, Math.ceil(3 - Math.log10(step)));
      return `${number(us / 1000, digits)} ms`;
    }

    ground(lane) {
      const { g } = this;
      g.fillStyle = this.colour("lane");
      if (lane !== this.marks) {
        g.fillRect(this.left, lane.y, this.right - this.left, lane.height);
      }
      if (this.call.untapped.includes(lane.id)) {
        g.textAlign = "left";
        this.font(11, "italic");
        g.fillStyle = this.colour("dim");
        g.fillText("not tapped", this.left + 8, lane.y + lane.height / 2);
      }
    }

    // Names come last: on a narrow screen they stand among the lanes, on ground of their own.
    title(lane) {
      const { g } = this;
      const current = this.chosen && this.rowOf(this.chosen.lane) === lane;
      this.font(12, current ? "600" : "");
      g.textBaseline = "middle";
      g.textAlign = this.narrow ? "left" : "right";
      if (this.narrow) {
        g.fillStyle = this.colour("page");
        g.fillRect(this.left, lane.y - 13, g.measureText(lane.name).width + 5, 12);
      }
      g.fillStyle = this.colour(current ? "ink" : "dim");
      if (this.narrow) g.fillText(lane.name, this.left, lane.y - 7);
      else g.fillText(lane.name, this.left - 10, lane.y + lane.height / 2);
    }

    rowOf(lane) {
      return lane === this.leaks || lane === this.silence ? this.sent : lane;
    }

    fillFor(lane, level, row) {
      if (lane === this.silence) return "silence";
      const fate = this.call.fates[level.fate[row]];
      if (fate === "refused") return "refused";
      if (fate === "inherited") return "inherited";
      const odd = level.segment[row] % 2 ? "one" : "two";
      return fate === "lost" || fate === "partly lost" ? `lost-${odd}` : odd;
    }

    paintOf(fill) {
      const colours = {
        one: () => this.colour("one"),
        two: () => this.colour("two"),
        "lost-one": () => this.hatch("lost-one", this.colour("one"), this.colour("lane")),
        "lost-two": () => this.hatch("lost-two", this.colour("two"), this.colour("lane")),
        refused: () => this.hatch("refused", this.colour("warn"), this.colour("lane"), -1),
        inherited: () => this.colour("inherited"),
        silence: () => this.hatch("silence", this.colour("silence"), this.colour("lane"), -1),
      };
      return colours[fill]();
    }

    dense(lane) {
      if (lane !== this.sent) {
        this.amounts(lane, this.bars(lane, lane.y + 2, lane.height - 4));
        return;
      }
      const silence = this.bars(this.silence, lane.y + 5, lane.height - 10);
      const bars = this.bars(lane, lane.y + 2, lane.height - 4);
      this.blocks(lane);
      const taken = this.leaked();
      this.amounts(this.silence, silence, [...bars.map(({ from, to }) => [from, to]), ...taken]);
      this.amounts(lane, bars, taken);
    }

    // Rows that touch on the screen are one rectangle.
    bars(lane, y, height) {
      const level = levelFor(lane.levels, this.usPerPixel);
      const last = firstFrom(level.from, this.view[1]);
      // Frames are set apart where there is room; runs of what was sent are of no meaning.
      const apart = lane === this.sent || lane === this.silence ? 0 : 1;
      const bars = [];
      let open = null;
      for (let i = firstFrom(level.reach, this.view[0]); i < last; i++) {
        const fill = this.fillFor(lane, level, i);
        const from = this.x(level.from[i]);
        let to = this.x(level.to[i]);
        if (to - from > 5) to -= apart;
        to = Math.max(to, from + 1);
        const owner = level.segment[i] * 256 + level.source[i];
        if (open && open.fill === fill && open.owner === owner && from <= open.to + 0.6) {
          open.to = Math.max(open.to, to);
          open.samples += level.samples[i];
        } else {
          const [samples, rate, segment] = [level.samples[i], level.rate[i], level.segment[i]];
          open = { fill, from, to, owner, samples, rate, segment };
          bars.push(open);
        }
      }
      for (const bar of bars) this.bar(bar, y, height);
      return bars;
    }

    // Writes the amounts where the bars are free, and notes the room it takes.
    amounts(lane, bars, taken = []) {
      if (bars.length + taken.length > 200) return;
      const y = lane === this.silence ? this.sent.y + this.sent.height / 2 : lane.y + lane.height / 2;
      bars.forEach((bar, i) => {
        const next = i + 1 < bars.length ? bars[i + 1].from : this.right;
        const [from, to] = this.free(bar, taken);
        const last = i + 1 === bars.length || bars[i + 1].segment !== bar.segment;
        const told = { ...bar, from, to, last, begin: bar.from, end: bar.to };
        const written = this.amountOn(lane, told, y, next - bar.to);
        if (written) taken.push(written);
      });
    }

    // The widest stretch of a bar that nothing has taken.
    free({ from, to }, taken) {
      const edges = [...taken]
        .filter(([begin, end]) => begin < to && end > from)
        .sort(([a], [b]) => a - b);
      let best = [from, from];
      let at = from;
      for (const [begin, end] of [...edges, [to, to]]) {
        if (begin - at > best[1] - best[0]) best = [at, begin];
        at = Math.max(at, end);
      }
      return best;
    }

    bar({ fill, from, to }, y, height) {
      const { g } = this;
      const begin = Math.max(from, this.left - 20);
      const width = Math.min(to, this.right + 20) - begin;
      g.fillStyle = this.paintOf(fill);
      g.fillRect(begin, y, width, height);
      if (fill !== "silence" && !fill.startsWith("lost")) return;
      g.strokeStyle = this.colour(fill === "silence" ? "silence" : "dim");
      g.lineWidth = 1;
      g.strokeRect(begin + 0.5, y + 0.5, Math.max(width - 1, 0), height - 1);
    }

    // How much audio a bar is. One that is cut off by the view says only whose it is.
    amountTexts(lane, bar) {
      const whole = bar.begin >= this.left && bar.end <= this.right;
      const own = whole && bar.rate ? `${number((bar.samples * 1000) / bar.rate, 1)} ms` : "";
      if (lane === this.silence) return own ? [`silence, ${own}`, own] : [];
      if (bar.segment < 1) return own ? [own] : [];
      return own ? [`segment ${bar.segment}: ${own}`, own] : [`segment ${bar.segment}`];
    }

    // What a segment has captured, behind its last frame: a burst is too short to write on.
    capturedText(bar) {
      const segment = this.call.segments[bar.segment - 1];
      return segment && segment.captured ? `segment ${bar.segment}: ${segment.captured}` : "";
    }

    // On the bar, or behind it where the bar is too short and there is room.
    amountOn(lane, bar, y, room) {
      const { g } = this;
      const texts = this.amountTexts(lane, bar);
      const from = Math.max(bar.from, this.left) + 6;
      const space = Math.min(bar.to, this.right) - from - 4;
      this.font(11);
      g.textBaseline = "middle";
      g.textAlign = "left";
      const plated = lane === this.silence || bar.fill.startsWith("lost");
      const fitting = texts.find((text) => g.measureText(text).width <= space);
      if (fitting) {
        if (plated) this.plate(from, y, g.measureText(fitting).width);
        g.fillStyle = this.colour(plated ? "ink" : bar.fill === "two" ? "on-two" : "on-one");
        g.fillText(fitting, from, y + 0.5);
        return [from - 4, from + g.measureText(fitting).width + 4];
      }
      const beside = lane.id === "captured" && bar.last ? this.capturedText(bar) : "";
      const width = g.measureText(beside).width;
      if (beside && bar.to > this.left && width + 12 <= room) {
        this.plate(bar.to + 5, y, width);
        g.fillStyle = this.colour("dim");
        g.fillText(beside, bar.to + 5, y + 0.5);
      }
      return null;
    }

    // Ground under a text that stands on hatching.
    plate(x, y, width) {
      this.g.fillStyle = this.colour("lane");
      this.g.fillRect(x - 3, y - 7, width + 6, 14);
    }

    // The blocks that the source handed on, where there is room to see them.
    blocks(lane) {
      const { g } = this;
      const level = lane.levels[0];
      if (this.usPerPixel > SEEN_BLOCK_US / 7) return;
      const last = firstFrom(level.from, this.view[1]);
      g.strokeStyle = this.colour("lane");
      g.lineWidth = 1;
      for (let i = firstFrom(level.reach, this.view[0]); i < last; i++) {
        const count = Math.round(((level.to[i] - level.from[i]) * level.rate[i]) / 1e6 / this.call.blocks[level.source[i]]);
        const length = (level.to[i] - level.from[i]) / count;
        if (!(count > 1)) continue;
        g.beginPath();
        for (let k = 1; k < count; k++) {
          const x = Math.round(this.x(level.from[i] + k * length)) + 0.5;
          g.moveTo(x, lane.y + lane.height - 9);
          g.lineTo(x, lane.y + lane.height - 2);
        }
        g.stroke();
      }
    }

    queue(lane) {
      const { g } = this;
      const top = lane.y + 4;
      const bottom = lane.y + lane.height - 1;
      const y = (ms) => bottom - (ms / lane.most) * (bottom - top);
      const capacities = new Set();
      for (const { levels, rate, queue_ms: capacity } of lane.depths) {
        const level = levelFor(levels, this.usPerPixel);
        if (capacity) capacities.add(capacity);
        let i = Math.max(firstFrom(level.from, this.view[0]) - 1, 0);
        const last = Math.min(firstFrom(level.from, this.view[1]) + 1, level.rows);
        if (i >= last) continue;
        g.beginPath();
        g.moveTo(this.x(level.from[i]), bottom);
        for (; i < last; i++) g.lineTo(this.x(level.from[i]), y((level.samples[i] * 1000) / rate));
        g.lineTo(this.x(level.from[last - 1]), bottom);
        g.closePath();
        g.fillStyle = this.colour("queue");
        g.fill();
        if (level.within > 0) continue;
        g.strokeStyle = this.colour("queue-edge");
        g.lineWidth = 1.2;
        g.stroke();
      }
      g.setLineDash([4, 4]);
      g.strokeStyle = this.colour("dim");
      g.lineWidth = 1;
      for (const capacity of capacities) {
        g.beginPath();
        g.moveTo(this.left, y(capacity));
        g.lineTo(this.right, y(capacity));
        g.stroke();
        this.font(10);
        g.fillStyle = this.colour("dim");
        g.textAlign = "left";
        g.textBaseline = "middle";
        const text = `full: ${capacity} ms`;
        const width = g.measureText(text).width;
        const at = this.right - width - 4;
        this.plate(at, y(capacity) + 10, width);
        g.fillStyle = this.colour("dim");
        g.fillText(text, at, y(capacity) + 10);
      }
      g.setLineDash([]);
    }

    stretches(lane) {
      const { g } = this;
      const height = lane.rowHeight;
      const covered = [];
      const captions = [];
      for (const nth of lane.between(this.view[0], this.view[1])) {
        const item = lane.items[nth];
        const y = lane.y + item.row * height;
        const from = Math.max(this.x(item.from), this.left - 20);
        const to = Math.max(Math.min(this.x(item.to), this.right + 20), from + 1.5);
        // From afar a thing that is hidden under the one before is not painted again.
        if (to <= covered[item.row] + 0.5 && to - from < 2) continue;
        const last = captions[item.row];
        if (last) last.room = from;
        covered[item.row] = to;
        if (item.shape === "point") {
          this.point(from, y + height / 2);
          captions[item.row] = { item, from: to + 2, to: to + 2, y: y + height / 2, room: this.right };
          if (last) this.caption(last);
          continue;
        }
        const [fill, edge, ink] = this.look(item.kind);
        g.fillStyle = fill;
        g.fillRect(from, y + 2, to - from, height - 4);
        if (edge) {
          g.strokeStyle = edge;
          g.lineWidth = 1;
          g.strokeRect(from + 0.5, y + 2.5, Math.max(to - from - 1, 0), height - 5);
        }
        captions[item.row] = { item, from, to, y: y + height / 2, ink, edge, room: this.right };
        if (last) this.caption(last);
      }
      for (const last of captions) if (last) this.caption(last);
    }

    // Text on the thing, in full or short, else behind it if there is room before the next one.
    caption({ item, from, to, y, ink, edge, room }) {
      const { g } = this;
      const texts = [item.label, item.short].filter(Boolean);
      this.font(11);
      g.textAlign = "left";
      g.textBaseline = "middle";
      const begin = Math.max(from, this.left) + 6;
      const end = Math.min(to, this.right) - 4;
      for (const text of texts) {
        const width = g.measureText(text).width;
        if (width > end - begin) continue;
        if (edge) this.plate(begin, y, width);
        g.fillStyle = ink;
        g.fillText(text, begin, y + 0.5);
        return;
      }
      for (const text of texts) {
        const width = g.measureText(text).width;
        if (to < this.left || width > room - to - 10) continue;
        this.plate(to + 6, y, width);
        g.fillStyle = this.colour("ink");
        g.fillText(text, to + 6, y + 0.5);
        return;
      }
    }

    point(x, y) {
      const { g } = this;
      g.fillStyle = this.colour("ink");
      g.beginPath();
      g.moveTo(x, y - 6);
      g.lineTo(x + 5, y);
      g.lineTo(x, y + 6);
      g.lineTo(x - 5, y);
      g.closePath();
      g.fill();
    }

    look(kind) {
      const c = (name) => this.colour(name);
      const looks = {
        speaking: () => [c("speak"), "", c("on-speak")],
        thinking: () => [this.hatch("think", c("dim"), c("lane")), c("dim"), c("ink")],
        quiet: () => [c("quiet"), "", c("ink")],
        open: () => [c("quiet"), "", c("ink")],
        closed: () => [this.hatch("closed", c("gate"), c("lane"), -1), c("gate"), c("ink")],
        discarded: () => [this.hatch("discarded", c("dim"), c("lane")), c("dim"), c("ink")],
        swallowed: () => [this.hatch("swallowed", c("warn"), c("lane")), c("warn"), c("ink")],
        claimed: () => [c("claim"), c("claim-edge"), c("ink")],
        response: () => [c("claim"), c("claim-edge"), c("ink")],
        stalled: () => [c("warn"), "", c("page")],
      };
      return looks[kind]();
    }

    lines() {
      const { g } = this;
      const dashes = { commit: [7, 3], clear: [3, 3], pause: [1, 3], resume: [8, 3, 2, 3] };
      const before = {};
      const marks = [...this.marks.between(this.view[0], this.view[1])]
        .map((row) => this.marks.items[row])
        .filter(({ line }) => line);
      // From afar they would hide what they are about.
      this.crowded = marks.length * 12 > this.right - this.left;
      for (const { from, kind } of this.crowded ? [] : marks) {
        const x = Math.round(this.x(from)) + 0.5;
        if (before[kind] === x) continue;
        before[kind] = x;
        g.setLineDash(dashes[kind] || []);
        g.strokeStyle = this.colour(kind === "verdict" ? "verdict" : "mark");
        g.lineWidth = kind === "verdict" ? 2 : 1;
        g.beginPath();
        g.moveTo(x, this.marks.y + 8);
        g.lineTo(x, this.bottom + 1);
        g.stroke();
      }
      g.setLineDash([]);
      if (this.moment) {
        const [from, to] = this.moment.map((us) => this.x(us));
        g.fillStyle = this.colour("moment");
        g.fillRect(from - 3, AXIS, to - from + 6, this.bottom - AXIS);
      }
    }

    // Names of the marks, the weightiest first, in up to three rows; what finds no room is drawn as
    // a tick and named when it is pointed at.
    flags(lane) {
      const { g } = this;
      const rows = [[], [], []];
      const items = [...lane.between(this.view[0], this.view[1])].map((row) => lane.items[row]);
      const order = items.filter((item) => item.weight < (this.crowded ? 1 : 5));
      for (const item of [...order].sort((a, b) => a.weight - b.weight || a.from - b.from)) {
        const strong = item.kind === "verdict";
        this.font(11, strong ? "600" : "");
        const x = this.x(item.from);
        const text = this.crowded ? item.kind : item.label;
        const width = g.measureText(text).width + 8;
        const flip = x + width > this.right;
        const [from, to] = flip ? [x - width, x] : [x, x + width];
        const free = rows.findIndex((taken) => taken.every(([a, b]) => to < a - 2 || from > b + 2));
        if (free < 0) continue;
        rows[free].push([from, to]);
        const y = lane.y + 7 + free * 15;
        g.fillStyle = strong ? this.colour("verdict") : this.colour("page");
        g.fillRect(from, y - 7, width, 14);
        g.strokeStyle = this.colour(strong ? "verdict" : "mark");
        g.lineWidth = 1;
        g.strokeRect(from + 0.5, y - 6.5, width - 1, 13);
        g.fillStyle = this.colour(strong ? "on-verdict" : "ink");
        g.textAlign = "left";
        g.textBaseline = "middle";
        g.fillText(text, from + 4, y + 0.5);
      }
      let last = -Infinity;
      g.fillStyle = this.colour("mark");
      for (const item of items) {
        const x = Math.round(this.x(item.from));
        if (x === last) continue;
        last = x;
        g.fillRect(x, lane.y + lane.height - 4, 1, 4);
      }
    }

    // Paints what leaked; says which stretches of the lane it has taken, its text included.
    leaked() {
      if (!this.leaks) return [];
      const { g } = this;
      const taken = [];
      const spans = [];
      for (const row of this.leaks.between(this.view[0], this.view[1])) {
        const item = this.leaks.items[row];
        const lane = this.lanes.find((l) => l.id === item.lane);
        const from = this.x(item.from);
        const to = Math.max(this.x(item.to), from + 2);
        if (item.lane !== "sent") {
          g.fillStyle = this.colour("leak");
          g.fillRect(from - 1, lane.y + lane.height - 5, to - from + 2, 5);
          continue;
        }
        g.fillStyle = this.colour("leak");
        g.fillRect(from, lane.y, to - from, lane.height);
        if (to - from > 5) {
          g.strokeStyle = this.colour("leak-edge");
          g.lineWidth = 1;
          g.strokeRect(from + 0.5, lane.y + 0.5, to - from - 1, lane.height - 1);
        }
        taken.push([from, to]);
        spans.push({ item, from, to });
      }
      for (const { item, from, to } of spans) {
        this.leakText(item, from, to, this.sent.y + this.sent.height / 2, taken);
      }
      return taken;
    }

    // On the span if there is room, else behind it, else before it.
    leakText({ label, short }, from, to, y, taken) {
      const { g } = this;
      const begin = Math.max(from, this.left);
      const end = Math.min(to, this.right);
      g.textBaseline = "middle";
      g.textAlign = "left";
      this.font(12, "700");
      for (const text of [label, short]) {
        const width = g.measureText(text).width;
        if (end - begin < width + 6) continue;
        g.fillStyle = this.colour("on-leak");
        g.fillText(text, begin + (end - begin - width) / 2, y + 0.5);
        return;
      }
      const width = g.measureText(short).width + 6;
      const at = [end + 2, begin - width - 4].find(
        (x) =>
          x >= this.left &&
          x + width <= this.right &&
          taken.every(([a, b]) => x + width < a || x > b || (a === from && b === to)),
      );
      if (at === undefined) return;
      g.fillStyle = this.colour("page");
      g.fillRect(at, y - 8, width, 16);
      g.fillStyle = this.colour("leak-text");
      g.fillText(short, at + 3, y + 0.5);
      taken.push([at, at + width]);
    }

    ring() {
      if (!this.chosen) return;
      const { g } = this;
      const lane = this.rowOf(this.chosen.lane);
      const from = this.x(this.chosen.from);
      const to = Math.max(this.x(this.chosen.to), from + 3);
      g.lineWidth = 2.5;
      g.strokeStyle = this.colour("ring");
      g.strokeRect(from - 2, lane.y - 1, to - from + 4, lane.height + 2);
    }

    // The whole call in a strip, and where in it one is.
    miniature() {
      const g = this.overview.getContext("2d");
      const [first, last] = this.whole;
      const height = 30;
      const width = this.right - this.left;
      const x = (us) => this.left + ((us - first) / (last - first)) * width;
      g.clearRect(0, 0, this.overview.clientWidth, height);
      g.fillStyle = this.colour("lane");
      g.fillRect(this.left, 4, width, height - 8);
      const level = levelFor(this.sent.levels, (last - first) / width);
      for (let i = 0; i < level.rows; i++) {
        g.fillStyle = this.colour(level.segment[i] % 2 ? "one" : "two");
        const from = Math.floor(x(level.from[i]));
        g.fillRect(from, 9, Math.max(Math.ceil(x(level.to[i])) - from, 1), height - 18);
      }
      for (const item of this.leaks ? this.leaks.items : []) {
        if (item.lane !== "sent") continue;
        g.fillStyle = this.colour("leak");
        g.fillRect(x(item.from) - 0.5, 4, Math.max(x(item.to) - x(item.from), 2), height - 8);
      }
      g.strokeStyle = this.colour("ring");
      g.lineWidth = 2;
      const from = x(this.view[0]);
      g.strokeRect(from + 1, 2, Math.max(x(this.view[1]) - from - 2, 3), height - 4);
      if (!this.narrow) {
        g.fillStyle = this.colour("dim");
        g.textAlign = "right";
        g.textBaseline = "middle";
        g.font = `12px ${this.colour("font")}`;
        g.fillText("whole call", this.left - 10, height / 2);
      }
    }
  }

  // --- The page --------------------------------------------------------------------------------

  const pictures = [];

  function told(root, text) {
    const output = root.querySelector("output");
    output.textContent = text;
    root.classList.add("failed");
  }

  async function draw(root) {
    const number = root.dataset.call;
    try {
      const call = await inflated(`call-${number}`).json();
      const numbers = await inflated(`columns-${number}`).arrayBuffer();
      pictures[number] = new Picture(root, call, new Int32Array(numbers));
    } catch (error) {
      told(root, `The timeline can't be drawn: ${error.message}`);
      throw error;
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-goto]");
    if (!button) return;
    const picture = pictures[button.dataset.goto];
    if (!picture) return;
    picture.goTo(Number(button.dataset.from), Number(button.dataset.to));
    picture.root.scrollIntoView({ block: "nearest" });
    picture.canvas.parentElement.focus({ preventScroll: true });
  });

  for (const root of document.querySelectorAll(".timeline")) draw(root);
})();
