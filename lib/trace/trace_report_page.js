'use strict';
// Draws the summaries of ff.data (schema firstframe.trace_report).
(() => {
  const main = document.getElementById('main');
  const el = ff.el;
  const percent = (part, whole) => (whole > 0 ? `${(100 * part / whole).toFixed(1)} %` : '–');

  // A bar of shares; parts are [label, ns, colour].
  const bar = (parts, whole) => el('div', {class: 'bar'}, parts.filter((part) => part[1] > 0).map(
      ([label, ns, colour]) => ff.tip(
          el('i', {style: `width:${Math.max(100 * ns / whole, 0.3)}%;background:${colour}`}),
          `${label}: ${ff.duration(ns)} (${percent(ns, whole)})`)));

  const card = (value, label) => el('div', {class: 'card'}, el('b', {}, value), el('span', {}, label));

  // A table whose columns sort on a click. Columns: [title, row => value, show, isNumber].
  const table = (columns, rows) => {
    const body = el('tbody', {});
    const fill = (sorted) => body.replaceChildren(...sorted.map((row) => el('tr', {}, columns.map(
        ([, value, show, isNumber]) => el('td', {class: isNumber ? 'num' : null},
            show ? show(value(row), row) : value(row))))));
    const direction = {};
    const heads = columns.map(([title, value, , isNumber], index) => el('th', {class: isNumber ? 'num' : null},
        el('button', {class: 'sort', onclick: () => {
          direction[index] = -(direction[index] || (isNumber ? 1 : -1));
          fill([...rows].sort((a, b) => {
            const [x, y] = [value(a), value(b)];
            return direction[index] * (isNumber ? x - y : String(x).localeCompare(String(y)));
          }));
        }}, title)));
    fill(rows);
    return el('div', {class: 'panel'}, el('table', {}, el('thead', {}, el('tr', {}, heads)), body));
  };

  const name = (text) => el('span', {class: 'mono kernel', title: text}, text || '(no operator)');

  const devices = (trace) => trace.devices.map((gpu) => [
    el('h2', {}, `GPU ${gpu.device}`),
    el('div', {class: 'cards'},
        card(ff.duration(gpu.total_ns), 'first to last event'),
        card(percent(gpu.busy_ns, gpu.total_ns), 'busy'),
        card(percent(gpu.launch_bound_ns, gpu.total_ns), 'idle, host was late'),
        card(ff.duration(gpu.exposed_copy_ns), 'exposed copies'),
        card(ff.duration(gpu.exposed_comm_ns), 'exposed collectives'),
        card(ff.number(gpu.event_count, 7), 'events')),
    bar([['compute', gpu.compute_ns, 'var(--c0)'],
         ['exposed collectives', gpu.exposed_comm_ns, 'var(--c3)'],
         ['exposed copies', gpu.exposed_copy_ns, 'var(--c1)'],
         ['idle, host was late', gpu.launch_bound_ns, 'var(--c4)'],
         ['idle, other', gpu.idle_ns - gpu.launch_bound_ns, 'var(--gap)']], gpu.total_ns),
  ]);

  const regions = (trace) => {
    if (!trace.regions.length) return [];
    return [
      el('h2', {}, trace.has_named_regions ? 'Regions' : 'Annotations'),
      table([
        ['name', (r) => r.name, name],
        ['entries', (r) => r.count, (x) => ff.number(x, 9), true],
        ['p50', (r) => r.p50_ns, ff.duration, true],
        ['p95', (r) => r.p95_ns, ff.duration, true],
        ['window', (r) => r.window_ns, ff.duration, true],
        ['GPU busy', (r) => r.busy_ns, ff.duration, true],
        ['idle', (r) => r.idle_ns, ff.duration, true],
        ['host was late', (r) => r.launch_bound_ns, ff.duration, true],
        ['copies', (r) => r.copy_ns, ff.duration, true],
        ['GPU events', (r) => r.gpu_event_count, (x) => ff.number(x, 9), true],
        ['', (r) => r.busy_ns, (_, r) => bar(
            [['GPU busy', r.busy_ns, 'var(--c0)'],
             ['idle, host was late', r.launch_bound_ns, 'var(--c4)'],
             ['idle, other', Math.max(r.idle_ns - r.launch_bound_ns, 0), 'var(--gap)']], r.window_ns)],
      ], trace.regions),
      el('p', {class: 'soft'}, `${trace.gpu_outside_regions} of ${trace.gpu_event_count} GPU events lie in none.`),
      ...trace.regions.filter((r) => r.kernels.length).map((r) => el('details', {},
          el('summary', {}, `Kernels of ${r.name}`), work(r.kernels, r.kernel_ns + r.copy_ns + r.memset_ns, false))),
    ];
  };

  const work = (rows, whole, withPlace) => table([
    ['name', (r) => r.name, name],
    ...(withPlace ? [['operator', (r) => r.op, name], ['class', (r) => r.class],
                     ['stream', (r) => r.stream, null, true]] : []),
    ['count', (r) => r.count, (x) => ff.number(x, 9), true],
    ['total', (r) => r.total_ns, ff.duration, true],
    ['share', (r) => r.total_ns, (x) => percent(x, whole), true],
    ['mean', (r) => r.total_ns / r.count, ff.duration, true],
    ['max', (r) => r.max_ns, ff.duration, true],
  ], rows);

  for (const trace of ff.data.traces) {
    main.append(el('h2', {}, trace.path + (trace.rank === null ? '' : `, rank ${trace.rank}`)));
    main.append(...devices(trace).flat());
    if (!trace.devices.length) main.append(el('p', {class: 'soft'}, 'No GPU events.'));
    main.append(...regions(trace));
    const odd = Object.entries(trace.oddities);
    if (odd.length) {
      main.append(el('p', {class: 'bad'}, 'Odd in the file: ',
                     odd.map(([what, note]) => `${what} (${note.count}, first at byte ${note.first_offset})`).join(', ')));
    }
    if (!trace.work.length) continue;
    const whole = trace.work.reduce((sum, row) => sum + row.total_ns, 0);
    main.append(el('h2', {}, 'Operator classes'),
                table([['class', (r) => r.name], ['count', (r) => r.count, null, true],
                       ['total', (r) => r.total_ns, ff.duration, true],
                       ['share', (r) => r.total_ns, (x) => percent(x, whole), true]], trace.classes));
    const holder = el('div', {});
    const show = (filter) => {
      const rows = trace.work.filter((row) => `${row.name} ${row.op}`.toLowerCase().includes(filter));
      holder.replaceChildren(work(rows.slice(0, 500), whole, true));
    };
    main.append(el('h2', {}, 'Kernels and copies'),
                el('input', {type: 'search', placeholder: 'filter by name', 'aria-label': 'filter by name',
                             oninput: (event) => show(event.target.value.toLowerCase())}), holder);
    show('');
  }
})();
