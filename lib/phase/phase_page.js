const {samples, summary, context} = ff.data;
const main = document.getElementById('main');
const many = samples.length > 1;
const colours = ['--c0', '--c1', '--c2', '--c3', '--c4', '--c5', '--c6', '--c7'].map((name) => `var(${name})`);

// Imports are coloured by package, other kinds of observed calls by kind: in a deep
// stack the parent's colour would say nothing.
function colourOf(name) {
  const [, kind, rest] = name.match(/^(import|load|open|region) ([^.]*)|^(cuda)\./) ?? [];
  if (kind === undefined) return name.startsWith('cuda.') ? colours[1] : undefined;
  if (kind !== 'import') return {load: colours[6], open: colours[2], region: colours[4]}[kind];
  let hash = 7;
  for (const letter of rest) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  return colours[[0, 3, 5, 7][hash % 4]];
}

// Adds children, depth, path, self time and colour to each phase of a sample.
function grow(sample) {
  const byId = new Map(sample.phases.map((phase) => [phase.id, phase]));
  for (const phase of sample.phases) phase.children = [];
  const roots = [];
  for (const phase of sample.phases) {
    let parent = phase.parent_id === null ? undefined : byId.get(phase.parent_id);
    for (let up = parent, steps = 0; up; up = byId.get(up.parent_id)) {
      if (up === phase || ++steps > sample.phases.length) { parent = undefined; break; }
    }
    phase.parent = parent;
    (parent ? parent.children : roots).push(phase);
  }
  const byStart = (a, b) => a.start_offset_ns - b.start_offset_ns;
  const order = [];
  const visit = (list, depth, prefix, colour) => list.sort(byStart).forEach((phase, index) => {
    phase.depth = depth;
    phase.path = prefix + phase.name;
    phase.colour = colourOf(phase.name) ?? colour ?? colours[index % colours.length];
    phase.end_ns = phase.start_offset_ns + phase.duration_ns;
    order.push(phase);
    visit(phase.children, depth + 1, phase.path + '/', depth === 0 && list.length === 1 ? undefined : phase.colour);
    let covered = 0, at = phase.start_offset_ns;
    for (const child of phase.children) {
      if (child.lane !== phase.lane) continue;
      covered += Math.max(0, Math.min(child.end_ns, phase.end_ns) - Math.max(child.start_offset_ns, at));
      at = Math.max(at, child.end_ns);
    }
    phase.self_ns = phase.duration_ns - covered;
  });
  visit(roots, 0, '', undefined);
  const gaps = [];
  let at = 0;
  for (const phase of [...roots, {start_offset_ns: sample.recording_duration_ns, end_ns: 0}]) {
    if (phase.start_offset_ns > at) gaps.push({name: 'gap', start_offset_ns: at, duration_ns: phase.start_offset_ns - at});
    at = Math.max(at, phase.end_ns);
  }
  return {order, roots, gaps, total: Math.max(sample.recording_duration_ns, 1)};
}

const share = (ns, total) => `${(100 * ns / total).toFixed(1)} %`;

function describe(phase, total) {
  const lines = [phase.path ?? phase.name,
    `${ff.duration(phase.duration_ns)} (${share(phase.duration_ns, total)}), from ${ff.duration(phase.start_offset_ns)}`];
  if (phase.children?.length) lines.push(`${ff.duration(phase.self_ns)} in no child of its lane`);
  for (const [name, value] of Object.entries(phase.attributes ?? {})) lines.push(`${name}: ${value}`);
  if (phase.status === 'error') lines.push(`error: ${phase.error}`);
  return lines.join('\n');
}

// Rows of one lane: a phase sits below its ancestors in the lane, and below what it
// overlaps.
function layOut(tree, lane) {
  const rows = [];
  for (const phase of tree.order) {
    if ((phase.lane ?? 0) !== lane) continue;
    let row = phase.parent && (phase.parent.lane ?? 0) === lane ? phase.parent.row + 1 : 0;
    while (rows[row]?.some((other) => phase.start_offset_ns < other.end_ns && other.start_offset_ns < phase.end_ns ||
                                      other.start_offset_ns === phase.start_offset_ns && other.end_ns >= phase.end_ns)) ++row;
    (rows[row] ||= []).push(phase);
    phase.row = row;
  }
  return rows.length;
}

function niceStep(span, count) {
  const raw = span / count, power = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= raw);
}

function timeline(sample, tree) {
  const rowHeight = 22, left = 10;
  const lanes = sample.lanes.length ? sample.lanes : [{name: 'main'}];
  const heights = lanes.map((_, lane) => layOut(tree, lane));
  const used = lanes.map((_, lane) => lane).filter((lane) => heights[lane] > 0);
  const svg = ff.el('svg', {class: 'timeline', role: 'img', 'aria-label': 'timeline of the phases'});
  let view = [0, tree.total];
  function draw() {
    const width = Math.max(svg.clientWidth || 1100, 300);
    const x = (ns) => left + (ns - view[0]) / (view[1] - view[0]) * (width - 2 * left);
    svg.replaceChildren();
    const step = niceStep(view[1] - view[0], width / 110);
    let y = 26;
    const body = ff.el('g');
    for (const lane of used) {
      if (used.length > 1) {
        body.append(ff.el('text', {class: 'lane', x: left, y: y + 12}, lanes[lane].name));
        y += 18;
      }
      if (lane === used[0]) {
        for (const gap of tree.gaps) {
          const a = Math.max(x(gap.start_offset_ns), left), b = Math.min(x(gap.start_offset_ns + gap.duration_ns), width - left);
          if (b - a < 1) continue;
          body.append(ff.tip(ff.el('rect', {x: a, y, width: b - a, height: rowHeight - 3, rx: 2, fill: 'url(#hatch)'}), `gap: no phase\n${ff.duration(gap.duration_ns)} from ${ff.duration(gap.start_offset_ns)}`));
        }
      }
      for (const phase of tree.order) {
        if ((phase.lane ?? 0) !== lane) continue;
        const a = Math.max(x(phase.start_offset_ns), left - 4), b = Math.min(x(phase.end_ns), width - left + 4);
        if (b < left - 4 || a > width - left + 4) continue;
        const w = Math.max(b - a, 1.5), top = y + phase.row * rowHeight;
        const rect = ff.el('rect', {
          class: phase.status === 'error' ? 'slice failed' : 'slice', x: a, y: top, width: w, height: rowHeight - 3, rx: 2,
          fill: phase.colour, 'fill-opacity': Math.max(1 - 0.16 * phase.depth, 0.5),
          onclick: () => { view = phase.duration_ns > 0 ? [phase.start_offset_ns, phase.end_ns] : view; draw(); },
        });
        rect.dataset.path = phase.path;
        body.append(ff.tip(rect, () => describe(phase, tree.total)));
        const fits = Math.floor((w - 8) / 6.6);
        if (fits > 2) body.append(ff.el('text', {class: 'name', x: a + 5, y: top + 13.5}, phase.name.length > fits ? phase.name.slice(0, fits - 1) + '…' : phase.name));
      }
      y += heights[lane] * rowHeight + 8;
    }
    const hatch = document.createElementNS('http://www.w3.org/2000/svg', 'pattern');
    for (const [name, value] of Object.entries({id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)'})) hatch.setAttribute(name, value);
    hatch.append(ff.el('rect', {width: 3, height: 6, fill: 'var(--gap)'}));
    svg.append(hatch);
    for (let tick = Math.ceil(view[0] / step) * step; tick <= view[1]; tick += step) {
      svg.append(ff.el('line', {class: 'grid', x1: x(tick), x2: x(tick), y1: 18, y2: y}));
      if (x(tick) < width - 56) svg.append(ff.el('text', {x: x(tick) + 3, y: 12}, ff.duration(tick)));
    }
    svg.append(body);
    svg.setAttribute('height', y + 4);
  }
  svg.addEventListener('dblclick', () => { view = [0, tree.total]; draw(); });
  svg.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const at = view[0] + (event.offsetX - left) / Math.max(svg.clientWidth - 2 * left, 1) * (view[1] - view[0]);
    const factor = event.deltaY > 0 ? 1.25 : 0.8;
    view = [Math.max(0, at - (at - view[0]) * factor), Math.min(tree.total, at + (view[1] - at) * factor)];
    draw();
  }, {passive: false});
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(svg);
  draw();
  return {svg, reset: () => { view = [0, tree.total]; draw(); }};
}

// One dot a run on an axis from 0 to the phase's largest sample; a line at the median.
function dots(row) {
  const largest = Math.max(...row.samples_ns, 1);
  const at = (ns) => `left: ${(100 * ns / largest).toFixed(2)}%`;
  const strip = ff.el('div', {class: 'dots'}, row.samples_ns.map((ns) => ff.el('i', {style: at(ns)})), ff.el('u', {style: at(row.median_ns)}));
  return ff.tip(strip, `${row.samples_ns.length} runs, 0 to ${ff.duration(largest)}\n` + row.samples_ns.map(ff.duration).join(', '));
}

function table(tree) {
  const statistics = new Map(summary.phases.map((row) => [row.path, row]));
  // A long table begins with its upper levels.
  const folded = new Set(tree.order.length > 300 ? tree.order.filter((phase) => phase.depth >= 4) : []);
  const head = ['phase', 'start', 'time', 'in no child', 'share'];
  const body = ff.el('tbody');
  const bar = (item, hatch) => ff.el('td', {class: 'span'}, ff.el('div', {class: 'track'}, ff.el('i', {
    class: hatch ? 'hatch' : null,
    style: `left: ${100 * item.start_offset_ns / tree.total}%; width: ${100 * item.duration_ns / tree.total}%;` +
      (hatch ? '' : `background: ${item.status === 'error' ? 'var(--bad)' : item.colour}`)})));
  const light = (path, on) => document.querySelectorAll('.slice').forEach((slice) => slice.classList.toggle('lit', on && slice.dataset.path === path));
  function phaseRow(phase) {
    const isFolded = folded.has(phase);
    const fold = phase.children.length
      ? ff.el('button', {class: 'fold', 'aria-expanded': String(!isFolded), 'aria-label': `children of ${phase.name}`,
        onclick: () => { isFolded ? folded.delete(phase) : folded.add(phase); draw(); }}, isFolded ? '▸' : '▾')
      : ff.el('span', {class: 'fold'});
    const name = ff.el('td', {class: 'name', style: `padding-left: ${12 + 18 * Math.min(phase.depth, 12)}px`}, fold, phase.name);
    if (phase.status === 'error') name.append(' ', ff.el('span', {class: 'tag bad'}, 'error'));
    const row = statistics.get(phase.path);
    return ff.el('tr', {onpointerenter: () => light(phase.path, true), onpointerleave: () => light(phase.path, false)},
      ff.tip(name, () => describe(phase, tree.total)),
      ff.el('td', {class: 'num soft'}, ff.duration(phase.start_offset_ns)),
      ff.el('td', {class: 'num'}, ff.duration(phase.duration_ns)),
      ff.el('td', {class: 'num soft'}, phase.children.length ? ff.duration(phase.self_ns) : ''),
      ff.el('td', {class: 'num'}, share(phase.duration_ns, tree.total)),
      many ? [row?.min_ns, row?.median_ns, row?.p95_ns].map((ns) => ff.el('td', {class: 'num'}, ff.duration(ns))) : null,
      many ? ff.el('td', {}, row ? dots(row) : '') : null,
      bar(phase, false));
  }
  function gapRow(gap) {
    return ff.el('tr', {class: 'gap'}, ff.el('td', {class: 'name', style: 'padding-left: 28px'}, 'gap'),
      ff.el('td', {class: 'num'}, ff.duration(gap.start_offset_ns)), ff.el('td', {class: 'num'}, ff.duration(gap.duration_ns)), ff.el('td'),
      ff.el('td', {class: 'num'}, share(gap.duration_ns, tree.total)), many ? ff.el('td', {colspan: 4}) : null, bar(gap, true));
  }
  function draw() {
    const rows = [];
    const visit = (phase) => { rows.push(phaseRow(phase)); if (!folded.has(phase)) phase.children.forEach(visit); };
    const top = [...tree.roots.map((item) => ({item})), ...tree.gaps.filter((gap) => gap.duration_ns >= 0.002 * tree.total).map((item) => ({item, gap: true}))];
    top.sort((a, b) => a.item.start_offset_ns - b.item.start_offset_ns);
    for (const {item, gap} of top) gap ? rows.push(gapRow(item)) : visit(item);
    body.replaceChildren(...rows);
  }
  draw();
  return ff.el('table', {class: 'phases'}, ff.el('thead', {}, ff.el('tr', {},
    head.map((text, index) => ff.el('th', {class: index ? 'num' : null}, text)),
    many ? ['min', 'median', 'p95'].map((text) => ff.el('th', {class: 'num'}, text)) : null,
    many ? ff.el('th', {}, 'runs') : null, ff.el('th', {}, ''))), body);
}

function flatten(value, prefix = '') {
  if (value === null || typeof value !== 'object') return [[prefix, String(value ?? '–')]];
  if (Array.isArray(value)) {
    if (value.every((item) => item === null || typeof item !== 'object')) return [[prefix, value.join(' ')]];
    const rows = value.slice(0, 12).map((item, i) => [`${prefix}[${i}]`, Object.entries(item).map(([key, inner]) => `${key} ${inner}`).join(', ')]);
    return value.length > 12 ? [...rows, [prefix, `… ${value.length - 12} more in the JSON`]] : rows;
  }
  return Object.entries(value).flatMap(([key, inner]) => flatten(inner, prefix ? `${prefix}.${key}` : key));
}

function show(index) {
  const sample = samples[index];
  main.replaceChildren();
  if (!sample) { main.append(ff.el('p', {class: 'soft'}, 'no run was recorded')); return; }
  const tree = grow(sample);
  const unnamed = tree.gaps.reduce((sum, gap) => sum + gap.duration_ns, 0);
  const failed = tree.order.filter((phase) => phase.status === 'error');
  const longest = [...tree.roots].sort((a, b) => b.duration_ns - a.duration_ns)[0];
  const card = (value, what, kind) => ff.el('div', {class: 'card'}, ff.el('b', {class: kind}, value), ff.el('span', {}, what));
  main.append(ff.el('div', {class: 'cards'},
    card(ff.duration(sample.recording_duration_ns), many ? `this run (${index + 1} of ${samples.length})` : 'from start to end'),
    many ? card(`${ff.duration(summary.recording_duration.median_ns)}`, `median; min ${ff.duration(summary.recording_duration.min_ns)}, p95 ${ff.duration(summary.recording_duration.p95_ns)}`) : null,
    card(share(tree.total - unnamed, tree.total), 'of it named by phases'),
    longest ? card(longest.name, `longest: ${ff.duration(longest.duration_ns)}`) : null,
    card(String(failed.length), failed.length === 1 ? 'failed phase' : 'failed phases', failed.length ? 'bad' : 'good')));
  for (const phase of failed) main.append(ff.el('p', {class: 'error'}, `${phase.path}: ${phase.error ?? ''}`));
  const {svg, reset} = timeline(sample, tree);
  main.append(ff.el('div', {class: 'bar-head'}, ff.el('h2', {}, 'Timeline'),
    many ? ff.el('select', {'aria-label': 'run', onchange: (event) => show(Number(event.target.value))},
      samples.map((run, i) => ff.el('option', {value: i, selected: i === index ? '' : null}, `run ${i + 1}: ${ff.duration(run.recording_duration_ns)}`))) : null,
    ff.el('button', {onclick: reset}, 'whole run'),
    ff.el('span', {class: 'soft'}, 'click a phase to zoom in, Ctrl and wheel to zoom, double click for the whole; hatched: in no phase')),
  ff.el('div', {class: 'panel'}, svg),
  ff.el('h2', {}, 'Phases'), ff.el('div', {class: 'panel'}, table(tree)));
  const facts = [...flatten(context ?? {}), ...flatten(sample.facts ?? {})].filter(([key]) => key);
  if (facts.length) {
    main.append(ff.el('h2', {}, 'Context'), ff.el('div', {class: 'panel'}, ff.el('table', {}, ff.el('tbody', {},
      facts.map(([key, value]) => ff.el('tr', {}, ff.el('td', {class: 'soft'}, key), ff.el('td', {class: 'mono'}, value)))))));
  }
}

// The run in the middle says most.
const byLength = samples.map((_, i) => i).sort((a, b) => samples[a].recording_duration_ns - samples[b].recording_duration_ns);
show(byLength[Math.floor((byLength.length - 1) / 2)] ?? 0);
