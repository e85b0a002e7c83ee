'use strict';
const ff = {
  data: JSON.parse(document.getElementById('data').textContent),

  // ff.el('td', {class: 'num'}, 'text', otherElement): text is never parsed as HTML.
  el(tag, attributes, ...children) {
    const svg = ['svg', 'g', 'rect', 'line', 'path', 'text', 'circle', 'title', 'polyline'].includes(tag);
    const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  },

  number(x, digits = 3) {
    if (x === null || x === undefined || !Number.isFinite(x)) return '–';
    return Number(x.toPrecision(digits)).toLocaleString('en', {maximumFractionDigits: 6});
  },

  duration(ns) {
    if (ns === null || ns === undefined) return '–';
    const size = Math.abs(ns);
    if (size < 1e3) return `${Math.round(ns)} ns`;
    if (size < 1e6) return `${(ns / 1e3).toFixed(1)} µs`;
    if (size < 1e9) return `${(ns / 1e6).toFixed(size < 1e7 ? 2 : 1)} ms`;
    return `${(ns / 1e9).toFixed(2)} s`;
  },

  bytes(n) {
    if (n === null || n === undefined) return '–';
    const units = ['B', 'kB', 'MB', 'GB', 'TB'];
    let unit = 0;
    while (Math.abs(n) >= 1000 && unit < units.length - 1) { n /= 1000; ++unit; }
    return `${ff.number(n)} ${units[unit]}`;
  },

  // Shows `text` beside the pointer while it is over `element`.
  tip(element, text) {
    element.addEventListener('pointermove', (event) => {
      ff.tipElement ||= document.body.appendChild(ff.el('div', {class: 'tip'}));
      const tip = ff.tipElement;
      tip.textContent = typeof text === 'function' ? text() : text;
      tip.hidden = false;
      const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
      const y = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8);
      tip.style.left = `${Math.max(x, 4)}px`;
      tip.style.top = `${Math.max(y, 4)}px`;
    });
    element.addEventListener('pointerleave', () => { if (ff.tipElement) ff.tipElement.hidden = true; });
    return element;
  },
};
