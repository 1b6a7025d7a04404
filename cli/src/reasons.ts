import type { Reason } from '#libs/contracts';
import type { Colours } from './io.js';

/** Reasons as lines: which fragment and field, what is wrong, which nodes. */
export function reasonLines(reasons: readonly Reason[], colours: Colours, mark = '✖'): string[] {
  return reasons.map((reason) => {
    const place = [reason.fragment, reason.message.startsWith(reason.field) ? '' : reason.field]
      .filter((part) => part !== '')
      .join(' ');
    const nodes =
      (reason.nodes ?? []).length === 0
        ? ''
        : colours.dim(` (${reason.nodes.join(', ')}${/\(on \d+ nodes\)$/.test(reason.message) ? ', …' : ''})`);
    const sign = mark === '✖' ? colours.red(mark) : colours.yellow(mark);
    return `  ${sign} ${place === '' ? '' : `${colours.bold(place)}: `}${reason.message}${nodes}`;
  });
}
