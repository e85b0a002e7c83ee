const main = document.getElementById('main');
const {requests, training} = ff.data;
const seconds = (s) => ff.duration(s === null ? null : s * 1e9);
const percent = (x) => x === null ? '–' : `${ff.number(x * 100)} %`;
const card = (value, label) => ff.el('div', {class: 'card'}, ff.el('b', {}, value), ff.el('span', {}, label));

// Bars stacked from parts, one a record, with the parts named under the pointer.
// What the parts leave of the total is `restName`.
function plot(title, series, partsOf, totalOf, restName, nameOf) {
  const shown = series.slice(-400);
  if (!shown.length) return;
  const names = [...new Set(shown.flatMap((record) => Object.keys(partsOf(record))))];
  const colour = (name) => `var(--c${names.indexOf(name) % 8})`;
  const width = 1160, height = 220, bottom = 24, left = 64;
  const top = Math.max(...shown.map(totalOf), 1e-12) * 1.05;
  const head = 14;
  const y = (value) => head + (height - bottom - head) * (1 - value / top);
  const step = (width - left) / shown.length;
  const chart = ff.el('svg', {viewBox: `0 0 ${width} ${height}`, width: '100%', role: 'img', 'aria-label': title});
  for (let i = 0; i <= 4; ++i) {
    const value = top * i / 4;
    chart.append(
        ff.el('line', {x1: left, x2: width, y1: y(value), y2: y(value), stroke: 'var(--line)'}),
        ff.el('text', {x: left - 8, y: y(value) + 4, 'text-anchor': 'end', fill: 'var(--soft)', 'font-size': 11}, seconds(value)));
  }
  shown.forEach((record, i) => {
    const bar = ff.el('g', {});
    const x = left + i * step + step * 0.1;
    bar.append(ff.el('rect', {x, width: Math.max(step * 0.8, 0.5), y: y(totalOf(record)), height: Math.max(height - bottom - y(totalOf(record)), 0), fill: 'var(--gap)'}));
    let sum = 0;
    for (const name of names) {
      const value = partsOf(record)[name] || 0;
      bar.append(ff.el('rect', {x, width: Math.max(step * 0.8, 0.5), y: y(sum + value), height: Math.max(y(sum) - y(sum + value), 0), fill: colour(name)}));
      sum += value;
    }
    ff.tip(bar, [`${nameOf(record)}: ${seconds(totalOf(record))}`, ...names.filter((name) => partsOf(record)[name]).map((name) => `${name}: ${seconds(partsOf(record)[name])}`)].join('\n'));
    chart.append(bar);
  });
  const legend = ff.el('p', {class: 'soft'}, names.map((name) => ff.el('span', {}, ff.el('span', {style: `color: ${colour(name)}`}, '■ '), `${name}  `)),
      ff.el('span', {style: 'color: var(--gap)'}, '■ '), restName);
  main.append(ff.el('h2', {}, title + (shown.length < series.length ? ` (the last ${shown.length} of ${series.length})` : '')), ff.el('div', {class: 'panel', style: 'padding: 12px'}, chart, legend));
}

function table(title, head, rows) {
  if (!rows.length) return;
  const cell = (tag, value, i) => ff.el(tag, {class: i ? 'num' : null}, value);
  main.append(ff.el('h2', {}, title), ff.el('div', {class: 'panel'}, ff.el('table', {},
      ff.el('thead', {}, ff.el('tr', {}, head.map((text, i) => cell('th', text, i)))),
      ff.el('tbody', {}, rows.map((row) => ff.el('tr', {}, row.map((value, i) => cell('td', value, i))))))));
}

const rankRows = (ranks) => ranks.length < 2 ? [] : ranks.map((rank) => [`rank ${rank.rank}${rank.straggler ? ' – straggler' : ''}`, rank.count, seconds(rank.p50_s), percent(rank.ratio)]);
const changeRows = (changes) => changes.map((change) => [`at ${change.index}`, seconds(change.before_s), seconds(change.after_s), percent(change.after_s / change.before_s - 1)]);

if (requests) {
  main.append(ff.el('div', {class: 'cards'},
      card(requests.e2e_s.count, 'requests measured'), card(seconds(requests.e2e_s.p50), 'end to end, p50'),
      card(seconds(requests.e2e_s.p95), 'p95'), card(seconds(requests.e2e_s.p99), 'p99'),
      card(ff.number(requests.requests_per_hour), 'requests/hour a rank'), card(percent(requests.dit.mfu), 'transformer MFU'),
      card(ff.bytes(requests.peak_alloc_bytes), 'peak allocated')));
  plot('Requests', ff.data.request_series, (r) => r.stages, (r) => r.e2e_s, 'end to end', (r) => `request ${r.req}, rank ${r.rank}`);
  table('Stages', ['stage', 'calls', 'total', 'share', 'mean', 'p50', 'p95', 'p99', 'max'], requests.stages.map((stage) => [stage.name, stage.calls, seconds(stage.total_s), percent(stage.share), ...['mean', 'p50', 'p95', 'p99', 'max'].map((key) => seconds(stage.call_ms[key] / 1e3))]));
  table('Ranks', ['rank', 'requests', 'p50', 'of the median'], rankRows(requests.ranks));
  table('Changes of level', ['request', 'before', 'after', 'change'], changeRows(requests.changes));
}
if (training) {
  main.append(ff.el('div', {class: 'cards'},
      card(training.steps, 'steps measured'), card((training.step_s_is_estimate ? '~' : '') + seconds(training.step_s_p50), 'step, p50'),
      card((training.step_s_is_estimate ? '~' : '') + seconds(training.step_s_p95), 'p95'), card(ff.number(training.samples_per_s), 'samples/s'),
      card(percent(training.dit.mfu), 'MFU'), card(percent(training.dit.hfu), 'HFU'), card(ff.bytes(training.peak_alloc_bytes), 'peak allocated')));
  plot('Training windows', ff.data.window_series, (w) => w.phases_s, (w) => w.p95_s, 'p95 of the steps', (w) => `steps ${w.step_first} to ${w.step_last}, rank ${w.rank}, p50 ${seconds(w.p50_s)}, p95`);
  const sum = Object.values(training.phases_s).reduce((a, b) => a + b, 0);
  table('Phases', ['phase', 'a step', 'share'], Object.entries(training.phases_s).map(([name, value]) => [name, seconds(value), percent(value / sum)]));
  table('Ranks', ['rank', 'steps', 'p50', 'of the median'], rankRows(training.ranks));
  table('Changes of level', ['window', 'before', 'after', 'change'], changeRows(training.changes));
}
