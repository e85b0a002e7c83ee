'use strict';
(() => {
  const data = ff.data;
  const main = document.getElementById('main');
  const names = ['abs_mean', 'sum', 'min', 'max', 'mean', 'std'];
  const error = (p) => Math.max(p.statistics || 0, p.elements || 0, p.hard ? 1 : 0);
  const percent = (x) => x === null || x === undefined ? '–' : x === 0 ? '0' : x >= 1e-4 ? `${ff.number(100 * x)} %` : x.toExponential(1);

  main.append(ff.el('div', {class: `verdict ${data.verdict}`}, ff.el('b', {}, data.verdict), data.explanation));
  const card = (value, label) => ff.el('div', {class: 'card'}, ff.el('b', {}, value), ff.el('span', {}, label));
  main.append(ff.el('div', {class: 'cards'},
    card(data.pairs.toLocaleString('en'), 'pairs'), card(data.fired.toLocaleString('en'), 'fired'),
    card(percent(data.worst), 'largest error'), card(data.unmatched.toLocaleString('en'), 'without counterpart')));
  if (data.notes.length) main.append(ff.el('h2', {}, 'Notes'), ff.el('ul', {}, data.notes.map((note) => ff.el('li', {}, note))));
  if (!data.points.length) return;

  // Sub-operations by how far their worst row stands out; eight have a colour.
  const ops = new Map();
  for (const point of data.points) {
    const op = ops.get(point.op) || {name: point.op, rows: 0, jump: 0, error: 0, limit: 0};
    op.rows += 1;
    op.jump = Math.max(op.jump, point.jump, point.hard ? Infinity : 0);
    op.error = Math.max(op.error, error(point));
    op.limit = Math.max(op.limit, point.limit);
    ops.set(point.op, op);
  }
  const ranked = [...ops.values()].sort((a, b) => b.jump - a.jump || b.error - a.error);
  ranked.forEach((op, k) => { op.color = k < 8 ? `var(--c${k})` : 'var(--gap)'; });
  let only = null;
  let chosen = data.first;

  const width = 1180, height = 320, left = 52, right = 10, top = 12, bottom = 24;
  const last = Math.max(1, data.points[data.points.length - 1].i);
  const floor = -9;
  const x = (i) => left + (width - left - right) * i / last;
  const y = (e) => {
    const level = e > 0 ? Math.min(0.5, Math.max(floor, Math.log10(e))) : floor;
    return top + (height - top - bottom) * (0.5 - level) / (0.5 - floor);
  };
  const svg = ff.el('svg', {class: 'depth', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Relative error over depth'});
  for (let power = floor; power <= 0; ++power) {
    const at = y(10 ** power);
    svg.append(ff.el('line', {class: 'grid', x1: left, x2: width - right, y1: at, y2: at}),
      ff.el('text', {x: left - 6, y: at + 4, 'text-anchor': 'end'}, power === floor ? '0' : `1e${power}`));
  }
  svg.append(ff.el('text', {x: width - right, y: height - 6, 'text-anchor': 'end'}, 'pairs in the order of the left trace'));
  if (data.first !== null) svg.append(ff.el('line', {class: 'first', x1: x(data.first), x2: x(data.first), y1: top, y2: height - bottom}));
  const cursor = ff.el('line', {class: 'chosen', y1: top, y2: height - bottom});
  svg.append(cursor);
  const circles = data.points.map((point) => {
    const circle = ff.el('circle', {cx: x(point.i), cy: y(error(point)), r: point.fired ? 4 : 2.6, fill: ops.get(point.op).color,
      class: point.fired ? 'fired' : '', onclick: () => choose(point.i)});
    ff.tip(circle, `${point.place}\nstatistics ${percent(point.statistics)}, elements ${percent(point.elements)}\njump ×${ff.number(point.jump)} over ${percent(point.expected)}`);
    svg.append(circle);
    return circle;
  });
  const legend = ff.el('div', {class: 'legend'}, ranked.slice(0, 8).map((op) => {
    const button = ff.el('button', {onclick: () => { only = only === op.name ? null : op.name; draw(); }}, ff.el('i', {style: `background:${op.color}`}), op.name);
    op.button = button;
    return button;
  }));
  main.append(ff.el('h2', {}, 'Error over depth'), ff.el('div', {class: 'panel'}, svg, legend));

  const detail = ff.el('div', {class: 'panel', id: 'detail'});
  main.append(ff.el('h2', {}, 'Chosen pair'), detail);

  const worst = [...data.points].sort((a, b) => b.fired - a.fired || b.jump - a.jump).slice(0, 60);
  const filter = ff.el('input', {type: 'search', placeholder: 'filter modules', 'aria-label': 'filter modules', oninput: () => draw()});
  const body = ff.el('tbody', {id: 'worst'});
  main.append(ff.el('h2', {}, 'Worst pairs'), ff.el('div', {class: 'toolbar'}, filter),
    ff.el('div', {class: 'panel'}, ff.el('table', {}, ff.el('thead', {}, ff.el('tr', {}, ff.el('th', {}, 'module'),
      ['statistics', 'elements', 'jump', 'expected'].map((head) => ff.el('th', {class: 'num'}, head)), ff.el('th', {}, 'aligned by'))), body)));

  const opBody = ff.el('tbody', {});
  main.append(ff.el('h2', {}, 'Worst sub-operations'), ff.el('div', {class: 'panel'}, ff.el('table', {}, ff.el('thead', {}, ff.el('tr', {},
    ff.el('th', {}, 'sub-operation'), ['pairs', 'largest error', 'largest jump', 'seen from'].map((head) => ff.el('th', {class: 'num'}, head)))), opBody)));
  for (const op of ranked.slice(0, 40)) {
    opBody.append(ff.el('tr', {class: 'row', onclick: () => { only = only === op.name ? null : op.name; draw(); }},
      ff.el('td', {class: 'place mono'}, op.name), ff.el('td', {class: 'num'}, String(op.rows)), ff.el('td', {class: 'num'}, percent(op.error)),
      ff.el('td', {class: 'num'}, op.jump === Infinity ? 'hard' : `×${ff.number(op.jump)}`),
      ff.el('td', {class: 'num', title: 'the smallest change of a statistic that would have been seen at every pair'}, percent(op.limit))));
  }

  function choose(i) { chosen = i; draw(); }

  function draw() {
    data.points.forEach((point, k) => circles[k].classList.toggle('dim', only !== null && point.op !== only));
    for (const op of ranked.slice(0, 8)) op.button.classList.toggle('on', op.name === only);
    const wanted = filter.value.toLowerCase();
    body.replaceChildren(...worst.filter((point) => (only === null || point.op === only) && point.place.toLowerCase().includes(wanted)).map((point) =>
      ff.el('tr', {class: point.i === chosen ? 'row chosen' : 'row', onclick: () => choose(point.i)},
        ff.el('td', {class: 'place mono'}, point.place, ' ', point.fired ? ff.el('span', {class: 'tag bad'}, point.hard ? 'hard' : 'fired') : null),
        ff.el('td', {class: 'num'}, percent(point.statistics)), ff.el('td', {class: 'num'}, percent(point.elements)),
        ff.el('td', {class: 'num'}, `×${ff.number(point.jump)}`), ff.el('td', {class: 'num'}, percent(point.expected)), ff.el('td', {}, point.match))));
    const point = data.points.find((candidate) => candidate.i === chosen);
    cursor.setAttribute('visibility', point ? 'visible' : 'hidden');
    detail.replaceChildren();
    if (!point) { detail.append(ff.el('p', {class: 'soft', style: 'padding:0 12px'}, 'Click a point or a row.')); return; }
    cursor.setAttribute('x1', x(point.i));
    cursor.setAttribute('x2', x(point.i));
    const number = (value) => value === null ? '–' : String(Number(value.toPrecision(9)));
    detail.append(ff.el('table', {}, ff.el('thead', {}, ff.el('tr', {}, ff.el('th', {}, point.place), names.map((name) => ff.el('th', {class: 'num'}, name)))),
      ff.el('tbody', {}, ['left', 'right'].map((side) => ff.el('tr', {}, ff.el('td', {}, side), point[side].map((value) => ff.el('td', {class: 'num mono'}, number(value))))))));
  }
  draw();
})();
